// The local graph, drawn as in the paper: mentioned entity, relation, entity, next word.
// A row is a fact, and a button to edit it. Narrow screens show the same rows as a list.

import { arrows, fill, h, name, percent, s, wordText } from "/page/dom.js";
import { openCard } from "/page/entity.js";
import { arrow, factText, relationText, typeOf } from "/page/reason.js";

const ROW = 34;
const TOP = 30;
const MAX_DRAWN = 14; // probable facts that are drawn at first
const NARROW = 560;

const keyOf = (parent, relation, entity) => `${parent}\n${relation}\n${entity}`;

/**
 * `openedWord`: an answer or a next word with its reasons; its path is highlighted. `unfolded`: parents with all facts shown.
 * `edit({parent, relation, entity})` and `fold(parent)`: callbacks.
 */
export function drawGraph(container, { graph, openedWord, unfolded, edit, fold }) {
  const width = container.clientWidth;
  const plan = layout(graph, openedWord, unfolded);
  const drawn = width >= NARROW && plan.parents.length ? picture(plan, openedWord, width, edit, fold) : rows(plan, openedWord, edit, fold);
  fill(container,
    !plan.parents.length && h("p", { class: "muted" }, plan.quiet.length ? "No fact of the mentioned entities is probable here." : "No entity of the graph is mentioned yet, so no fact leads to the next word."),
    drawn, also(plan.quiet, fold), graph.left_out > 0
    && h("p", { class: "muted note" }, `${graph.left_out.toLocaleString("en")} less probable facts are not shown.`));
  const stops = () => [...drawn.querySelectorAll("[data-stop]")];
  stops().forEach((stop, k) => stop.setAttribute("tabindex", k ? "-1" : "0"));
  arrows(drawn, stops);
}

/** Facts by parent and relation, the probable ones first; and the reasons of the word that are not facts. */
function layout(graph, openedWord, unfolded) {
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const shares = new Map();
  const routes = [];
  for (const reason of openedWord?.reasons ?? []) {
    const share = openedWord.p > 0 ? reason.p / openedWord.p : 0;
    const type = typeOf(reason);
    if (reason.type === "related") {
      const key = keyOf(reason.parent.id, reason.relation.id, reason.entity.id);
      shares.set(key, (shares.get(key) ?? 0) + share);
    } else if (share >= 0.02) {
      const same = routes.find((route) => route.type === type && route.entity?.id === reason.entity?.id);
      if (same) same.share += share;
      else routes.push({ type, entity: reason.entity, share });
    }
  }
  const facts = graph.edges.map((edge) => ({
    parent: nodes.get(edge.parent), relation: edge.relation, entity: nodes.get(edge.entity), p: edge.p,
    share: shares.get(keyOf(edge.parent, edge.relation.id, edge.entity)) ?? 0,
  })).filter((fact) => fact.parent && fact.entity).sort((a, b) => b.p - a.p);
  const maxP = Math.max(facts[0]?.p ?? 0, 1e-9);
  const drawn = new Set(facts.filter((fact, k) => fact.share >= 0.02 || (k < MAX_DRAWN && fact.p >= Math.max(maxP / 500, 0.0005))).concat(facts.slice(0, 6)));
  const parents = [];
  for (const fact of facts) {
    let parent = parents.find((each) => each.node === fact.parent);
    if (!parent) parents.push(parent = { node: fact.parent, p: 0, share: 0, relations: [], hidden: 0, extra: 0 });
    parent.p += fact.p;
    parent.share += fact.share;
    if (!drawn.has(fact)) {
      parent[unfolded.has(fact.parent.id) ? "extra" : "hidden"] += 1;
      if (parent.hidden) continue;
    }
    let relation = parent.relations.find((each) => each.relation.id === fact.relation.id);
    if (!relation) parent.relations.push(relation = { relation: fact.relation, p: 0, share: 0, facts: [] });
    relation.p += fact.p;
    relation.share += fact.share;
    relation.facts.push(fact);
  }
  const without = graph.nodes.filter((node) => node.kind === "mentioned" && !parents.some((parent) => parent.node === node))
    .map((node) => ({ node, p: 0, share: 0, relations: [], hidden: 0, extra: 0 }));
  const shown = parents.filter((parent) => parent.relations.length);
  return { parents: shown, quiet: [...parents.filter((parent) => !shown.includes(parent)), ...without], routes, maxP };
}

/** Mentioned entities without a probable fact. */
function also(quiet, fold) {
  return quiet.length > 0 && h("p", { class: "also" }, h("span", { class: "muted" }, "Also mentioned:"), quiet.map((parent) => h("button", {
    type: "button", class: "chip", "data-parent": parent.node.id, onclick: () => (parent.hidden ? fold(parent.node.id) : openCard(parent.node.id)),
    "aria-label": parent.hidden ? `Show ${parent.hidden} less probable facts of ${parent.node.label}` : `Show the card of ${parent.node.label}`,
  }, name(parent.node), parent.hidden > 0 && h("small", {}, ` +${parent.hidden}`))));
}

const lit = (share) => (share >= 0.02 ? " lit" : "");
const strength = (p, maxP) => Math.sqrt(Math.max(0, p) / maxP);
const foldText = (parent) => (parent.hidden ? `+ ${parent.hidden} less probable` : "Show fewer");
const ROUTES = { none: "no entity", new: "new", continue: "more of" };

// The picture

const measuring = document.createElement("canvas").getContext("2d");
function cut(text, width, font) {
  measuring.font = font;
  if (measuring.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && measuring.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end).trimEnd()}…`;
}

function picture(plan, openedWord, width, edit, fold) {
  const family = getComputedStyle(document.body).fontFamily;
  const fonts = { small: `13px ${family}`, strong: `600 13px ${family}` };
  const tail = openedWord ? Math.min(120, width * 0.15) : 0;
  const room = width - tail - (openedWord ? 26 : 0);
  const x = { parent: 0, parentEnd: room * 0.24, relation: room * 0.31, relationEnd: room * 0.59, entity: room * 0.65, entityEnd: room, word: width - tail };
  let y = TOP;
  const under = [];
  const over = [];
  const ends = []; // where the highlighted entities connect to the word
  const curve = (x1, y1, x2, y2) => `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`;

  for (const parent of plan.parents) {
    const first = y;
    const starts = []; // where the names of the relations start
    for (const relation of parent.relations) {
      const middle = y + (relation.facts.length * ROW) / 2;
      const label = cut(relationText(relation.relation), x.relationEnd - x.relation - 10, relation.share >= 0.02 ? fonts.strong : fonts.small);
      const half = measuring.measureText(label).width / 2 + 7;
      const centre = (x.relation + x.relationEnd) / 2;
      for (const fact of relation.facts) {
        const at = y + ROW / 2;
        y += ROW;
        if (fact.share >= 0.02) ends.push({ y: at, share: fact.share, type: fact.parent === fact.entity ? "again" : "related" });
        over.push(factNode(fact, at, curve(centre + half, middle, x.entity, at), x, fonts, plan.maxP, edit));
      }
      starts.push({ relation, x: centre - half, y: middle });
      over.push(s("g", { class: `relation${lit(relation.share)}` },
        s("title", {}, relation.relation.label), s("text", { x: centre, y: middle + 4, "text-anchor": "middle" }, label)));
    }
    if (parent.hidden || parent.extra) {
      const at = y + ROW / 2;
      y += ROW;
      starts.push({ relation: null, x: x.relation, y: at });
      over.push(button({ class: "fold", "data-fold": parent.node.id, "aria-label": `${foldText(parent)}: facts of ${parent.node.label}` }, () => fold(parent.node.id),
        s("rect", { x: x.relation, y: at - 12, width: x.relationEnd - x.relation, height: 24, rx: 12 }),
        s("text", { x: (x.relation + x.relationEnd) / 2, y: at + 4, "text-anchor": "middle" }, foldText(parent))));
    }
    if (y === first) y += ROW;
    const weight = (relation) => 1e-6 + (openedWord && parent.share > 0 ? relation?.share ?? 0 : relation?.p ?? 0);
    const total = starts.reduce((sum, { relation }) => sum + weight(relation), 0);
    const centre = total ? starts.reduce((sum, start) => sum + start.y * weight(start.relation), 0) / total : (first + y) / 2;
    for (const start of starts) {
      under.push(s("path", {
        class: `edge${start.relation ? lit(start.relation.share) : " folded"}`, d: curve(x.parentEnd, centre, start.x, start.y),
        vars: { s: start.relation ? strength(start.relation.p, plan.maxP).toFixed(3) : 0 },
      }));
    }
    over.push(parentNode(parent, centre, x, fonts));
    y += 12;
  }
  for (const route of plan.routes) {
    const at = y + ROW / 2;
    y += ROW;
    ends.push({ y: at, share: route.share, type: route.type });
    over.push(s("g", { class: `route lit t-${route.type}` },
      s("rect", { x: x.entity, y: at - 14, width: x.entityEnd - x.entity, height: 28, rx: 14 }),
      s("text", { x: x.entity + 12, y: at + 4 }, cut([ROUTES[route.type], route.entity?.label].filter(Boolean).join(" "), x.entityEnd - x.entity - 24, fonts.small))));
  }
  if (openedWord) {
    const total = ends.reduce((sum, end) => sum + end.share, 0) || 1;
    const at = ends.length ? ends.reduce((sum, end) => sum + end.y * end.share, 0) / total : TOP + ROW / 2;
    for (const end of ends) {
      under.push(s("path", { class: `edge lit t-${end.type}`, d: curve(x.entityEnd, end.y, x.word, at), vars: { s: Math.sqrt(end.share).toFixed(3) } }));
    }
    over.push(s("g", { class: "next-word" }, s("title", {}, wordText(openedWord.word)),
      s("rect", { x: x.word, y: at - 19, width: tail, height: 38, rx: 8 }),
      s("text", { x: x.word + tail / 2, y: at - 1, "text-anchor": "middle", class: "strong" }, cut(wordText(openedWord.word), tail - 12, fonts.strong)),
      s("text", { x: x.word + tail / 2, y: at + 13, "text-anchor": "middle", class: "p" }, percent(openedWord.p))));
  }
  const heads = [["mentioned", (x.parent + x.parentEnd) / 2], ["relation", (x.relation + x.relationEnd) / 2], ["entity", (x.entity + x.entityEnd) / 2]];
  if (openedWord) heads.push([openedWord.kind, x.word + tail / 2]);
  return s("svg", { class: `graph${openedWord ? " path" : ""}`, viewBox: `0 0 ${width} ${y}`, width, height: y, role: "group", "aria-label": "Local graph: facts, most probable first; arrow keys move, Enter edits" },
    heads.map(([text, at]) => s("text", { x: at, y: 12, "text-anchor": "middle", class: "head" }, text)), under, over);
}

function button(attributes, act, ...children) {
  return s("g", {
    ...attributes, role: "button", "data-stop": true, onclick: act,
    onkeydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act();
    },
  }, ...children);
}

function factNode(fact, at, line, x, fonts, maxP, edit) {
  const wide = x.entityEnd - x.entity;
  const again = fact.parent === fact.entity;
  return button({ class: `fact${lit(fact.share)}${again ? " again" : ""}`, "aria-label": `${factText(fact)}, ${percent(fact.p)}. Edit`, vars: { s: strength(fact.p, maxP).toFixed(3) } },
    () => edit(fact),
    s("title", {}, `${factText(fact)} — ${percent(fact.p)}`),
    s("path", { class: `edge${lit(fact.share)}`, d: line, vars: { s: strength(fact.p, maxP).toFixed(3) } }),
    s("rect", { x: x.entity, y: at - 14, width: wide, height: 28, rx: 14 }),
    s("text", { x: x.entity + 12, y: at + 4 }, cut(fact.entity.label, wide - 68, fact.share >= 0.02 ? fonts.strong : fonts.small)),
    s("text", { x: x.entityEnd - 10, y: at + 4, "text-anchor": "end", class: "p" }, percent(fact.p)));
}

function parentNode(parent, at, x, fonts) {
  const wide = x.parentEnd - x.parent;
  const unsure = parent.node.p < 0.995;
  const open = () => openCard(parent.node.id);
  return s("g", {
    class: `parent${lit(parent.share)}`, role: "button", tabindex: "0", onclick: open, "aria-label": `${parent.node.label}, mentioned. Show its card`,
    onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } },
  },
  s("title", {}, unsure ? `${parent.node.label}: the mention refers to it with probability ${percent(parent.node.p)}` : parent.node.label),
  s("rect", { x: x.parent + 1, y: at - 19, width: wide - 1, height: 38, rx: 8 }),
  s("text", { x: x.parent + wide / 2, y: at + (unsure ? -1 : 4), "text-anchor": "middle", class: "strong" }, cut(parent.node.label, wide - 16, fonts.strong)),
  unsure && s("text", { x: x.parent + wide / 2, y: at + 13, "text-anchor": "middle", class: "p" }, `${percent(parent.node.p)} sure`));
}

// The list

function rows(plan, openedWord, edit, fold) {
  return h("div", { class: "graph-list" },
    plan.parents.map((parent) => h("section", {},
      h("h3", {}, h("button", { type: "button", class: "plain", onclick: () => openCard(parent.node.id) }, name(parent.node)),
        parent.node.p < 0.995 && h("small", {}, ` ${percent(parent.node.p)} sure`)),
      parent.relations.flatMap((relation) => relation.facts).map((fact) => h("button", {
        type: "button", class: `fact-line${lit(fact.share)}`, "data-stop": true, "aria-label": `${factText(fact)}, ${percent(fact.p)}. Edit`,
        onclick: () => edit(fact), vars: { s: strength(fact.p, plan.maxP).toFixed(3) },
      }, arrow(fact.relation), h("span", { class: "entity" }, name(fact.entity)), h("span", { class: "p" }, percent(fact.p)))),
      (parent.hidden || parent.extra) > 0 && h("button", { type: "button", class: "small", "data-fold": parent.node.id, onclick: () => fold(parent.node.id) }, foldText(parent)))),
    plan.routes.length > 0 && h("section", {}, h("h3", {}, "Without a fact"),
      plan.routes.map((route) => h("p", { class: `fact-line lit t-${route.type}` },
        h("span", { class: "relation" }, ROUTES[route.type]), route.entity && h("span", { class: "entity" }, name(route.entity)), h("span", { class: "p" }, percent(route.share * openedWord.p))))));
}
