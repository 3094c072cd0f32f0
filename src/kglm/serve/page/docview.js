// A document with its mentions, coloured by source, and the details of one mention.

import { arrows, blanks, count, fill, h, inlineButton, moveStop, name, running } from "/page/dom.js";
import { openCard, wikidata } from "/page/entity.js";
import { fact, REFLEXIVE } from "/page/reason.js";

export const SOURCES = {
  WIKI: "link in the article",
  NEL: "entity linker",
  KG: "match with the local graph",
  COREF: "coreference",
};
const CONTEXT = 60; // words before a mention that form the prompt for the model

const HEADING = 8; // a sentence of at most this many words, without a full stop, is a heading

/** `query`: the filters, to mark their matches. `chosen`: start of the open mention; `choose(start)` is called for another. */
export function documentView(container, view, { query, head, chosen = null, choose = () => undefined }) {
  const words = view.sentences.flat();
  const mentions = view.mentions.filter((mention) => mention.start < mention.end && mention.end <= words.length).sort((a, b) => a.start - b.start);
  const buttons = [];
  const detail = h("aside", { class: "detail", "aria-label": "The mention", "aria-live": "polite" });
  const text = h("div", { class: "text", dir: "auto", role: "group", "aria-label": "Text; arrow keys move between mentions" });
  const prefixes = (query.get("q") ?? "").toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const matches = (word) => prefixes.some((start) => word.toLocaleLowerCase().startsWith(start));
  const marked = (word) => (matches(word) ? h("mark", {}, word) : word);
  const ends = (sentence) => /[.!?…:;。！？"'”’)\]]$/u.test(sentence.at(-1) ?? "");
  const stops = view.sentences.some(ends); // else headings cannot be recognised
  let place = 0;
  let next = 0;
  for (const sentence of view.sentences) {
    const line = h("span", { class: stops && sentence.length <= HEADING && !ends(sentence) ? "sentence heading" : "sentence" });
    const end = place + sentence.length;
    const blank = blanks();
    while (place < end) {
      while (next < mentions.length && mentions[next].start < place) next += 1; // it overlaps the last one
      const mention = mentions[next]?.start === place ? mentions[next] : null;
      const stop = mention ? Math.min(mention.end, end) : place + 1;
      const [first, ...more] = words.slice(place, stop).map((word) => [blank(word), word]);
      const shown = [marked(first[1]), ...more.flatMap(([space, word]) => [space, marked(word)])];
      line.append(first[0], ...(mention ? [mentionButton(mention, shown)] : shown));
      place = stop;
    }
    text.append(line, " ");
  }

  function mentionButton(mention, shown) {
    const values = { entity: [mention.entity.id], source: [mention.source], relation: mention.reasons.map(({ relation }) => relation.id) };
    const filters = Object.keys(values).filter((key) => query.get(key));
    const wanted = filters.length > 0 && filters.every((key) => values[key].includes(query.get(key)));
    const button = inlineButton({
      class: `mention s-${mention.source}${wanted ? " wanted" : ""}`, tabindex: buttons.length ? "-1" : "0",
      "aria-pressed": "false", title: mention.entity.label, onclick: () => { select(mention, button); choose(mention.start); },
    }, ...shown);
    button.addEventListener("focus", () => moveStop(buttons.map((each) => each.button), button));
    buttons.push({ button, mention });
    return button;
  }

  function select(mention, button) {
    for (const each of buttons) {
      each.button.setAttribute("aria-pressed", String(each.button === button));
      each.button.classList.toggle("same", each.mention.entity.id === mention.entity.id && each.button !== button);
      each.button.classList.toggle("parent", mention.reasons.some(({ parent, relation }) => relation.id !== REFLEXIVE && parent.id === each.mention.entity.id) && each.mention.start < mention.start);
    }
    fill(detail, about(mention, button));
    detail.classList.add("open");
  }

  /** The last mention of an entity before a place. */
  const earlier = (id, start) => buttons.filter((each) => each.mention.entity.id === id && each.mention.start < start).at(-1)?.button;

  function about(mention, button) {
    const { entity } = mention;
    const again = mention.reasons.some(({ relation }) => relation.id === REFLEXIVE);
    const facts = mention.reasons.filter(({ relation }) => relation.id !== REFLEXIVE);
    return [
      h("div", { class: "sheet-head" }, h("h3", {}, name(entity)),
        h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => { close(); button.focus(); } }, "✕")),
      h("p", {}, h("span", { class: `source s-${mention.source}` }, mention.source), " ", SOURCES[mention.source] ?? ""),
      facts.length > 0 && [h("p", { class: "title" }, "Facts that lead to it"), h("ul", { class: "leading-facts" }, facts.map(({ parent, relation }) => {
        const there = earlier(parent.id, mention.start);
        return h("li", {}, fact(parent, relation, entity), there && h("button", { type: "button", class: "small", onclick: () => there.focus() }, "Go to ", name(parent)));
      }))],
      again && h("p", {}, "Mentioned before. ", earlier(entity.id, mention.start) && h("button", { type: "button", class: "small", onclick: () => earlier(entity.id, mention.start).focus() }, "Go there")),
      !mention.reasons.length && h("p", {}, "New here: no fact of an entity mentioned before leads to it."),
      h("ul", { class: "ways" },
        h("li", {}, h("button", { type: "button", class: "link", onclick: () => openCard(entity.id) }, "Its facts and names")),
        h("li", {}, h("a", { href: `#/explore?${new URLSearchParams({ entity: entity.id })}` }, "All documents that mention it")),
        h("li", {}, h("a", { href: `#/complete?${new URLSearchParams({ text: leading(mention) })}` }, "What does the model predict here?")),
        wikidata(entity.id) && h("li", {}, wikidata(entity.id))),
    ];
  }

  /** The text up to a mention, from the start of a sentence. */
  function leading(mention) {
    let start = 0;
    let at = 0;
    for (const sentence of view.sentences) {
      if (at < mention.start && mention.start - at <= CONTEXT) { start = at; break; }
      at += sentence.length;
    }
    if (mention.start - start > CONTEXT) start = mention.start - CONTEXT;
    return running(words.slice(start, mention.start)) || view.title;
  }

  function close() {
    detail.classList.remove("open");
    fill(detail, h("p", { class: "muted" }, "Choose a coloured mention to see its entity and the facts that lead to it."));
    for (const { button } of buttons) {
      button.setAttribute("aria-pressed", "false");
      button.classList.remove("same", "parent");
    }
    choose(null);
  }

  const present = Object.keys(SOURCES).filter((source) => mentions.some((mention) => mention.source === source));
  const legend = h("div", { class: "sources", role: "group", "aria-label": "Sources of mentions" }, present.map((source) => h("button", {
    type: "button", class: `toggle s-${source}`, "aria-pressed": "true", title: SOURCES[source],
    onclick: (event) => {
      const off = text.classList.toggle(`no-${source}`);
      event.currentTarget.setAttribute("aria-pressed", String(!off));
    },
  }, h("span", { class: `source s-${source}` }, source), ` ${SOURCES[source]} `, h("span", { class: "p" }, mentions.filter((mention) => mention.source === source).length))));
  arrows(text, () => buttons.map((each) => each.button), { horizontal: true });
  detail.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const pressed = buttons.find(({ button }) => button.getAttribute("aria-pressed") === "true")?.button;
    close();
    pressed?.focus();
  });
  const opened = buttons.find(({ mention }) => mention.start === chosen);
  if (opened) select(opened.mention, opened.button);
  else close();
  fill(container, head,
    h("h2", { class: "doc-title" }, h("bdi", {}, view.title || "Your text")),
    h("p", { class: "muted" }, `${count(words.length, "word")}, ${count(mentions.length, "mention")} of ${count(new Set(mentions.map((mention) => mention.entity.id)).size, "entity", "entities")}`),
    legend, h("div", { class: "doc-split" }, text, detail));
  return { first: () => (opened ?? buttons.find(({ button }) => button.classList.contains("wanted")))?.button };
}
