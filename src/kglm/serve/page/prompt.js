// The prompt: a text, and below it whom its names are taken for, as one types. Another entity is a click away.

import * as api from "/page/api.js";
import { combobox } from "/page/combobox.js";
import { announce, arrows, fill, freshId, h, isAbort, later, name, percent, trouble } from "/page/dom.js";
import { openCard, searchEntities } from "/page/entity.js";

/** Where each word of the tokenised text stands in it. */
function places(text, words) {
  let at = 0;
  return words.map((word) => {
    const found = text.indexOf(word, at);
    if (found < 0 || found - at > 8) return [at, at];
    at = found + word.length;
    return [found, at];
  });
}

/** Mentions of the server's JSON (one entry a candidate) as one entry a name, with its candidates. */
export function byName(mentions) {
  const names = new Map();
  for (const { start, end, text, ...candidate } of mentions) {
    const key = `${start}:${end}`;
    if (!names.has(key)) names.set(key, { start, end, text, candidates: [] });
    names.get(key).candidates.push(candidate);
  }
  return [...names.values()];
}

/**
 * `change({text, entities}, step)` is called when the text is linked, and with an empty text when it is emptied;
 * `step`: whether it is one to come back to, and not a letter more.
 */
export function promptBox({ label, hint, examples = [], change }) {
  const id = freshId("prompt");
  let given = []; // {start, end, id, label}: whom a person said
  let known = { text: "", words: [], mentions: [], places: [] };
  let open = null; // the mention whose candidates are shown, "start:end"
  let controller = null;

  const area = h("textarea", { id, rows: 2, dir: "auto", spellcheck: "false", autocapitalize: "off", placeholder: hint });
  const echo = h("div", { class: "echo", dir: "auto", "aria-label": "Names found in the text", role: "group" });
  const choices = h("div", { class: "choices", hidden: true });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Examples" },
    examples.map((text) => h("button", { type: "button", class: "chip", onclick: () => { set(text, [], true); area.focus(); } }, h("bdi", {}, text))));
  const element = h("div", { class: "prompt" },
    h("label", { for: id, class: "title" }, label), area, echo, choices,
    examples.length > 0 && h("div", { class: "examples" }, h("span", { class: "muted" }, "Try"), chips));

  const value = () => ({
    text: area.value.trim(),
    entities: given.map(({ start, end, id: who }) => ({ start, end, id: who })),
  });

  async function link(step = false) {
    controller?.abort();
    controller = new AbortController();
    const asked = value();
    const text = area.value;
    if (!asked.text) {
      known = { text, words: [], mentions: [], places: [] };
      show();
      change(asked, step);
      return;
    }
    element.setAttribute("aria-busy", "true");
    try {
      const { prompt: words, mentions } = await api.post("/api/link", { text, entities: asked.entities }, { signal: controller.signal });
      known = { text, words, mentions: byName(mentions), places: places(text, words) };
      show();
      change(asked, step);
    } catch (error) {
      if (isAbort(error)) return;
      fill(echo, trouble(error, () => { given = []; link(); }));
    } finally {
      element.removeAttribute("aria-busy");
    }
  }

  const soon = later(220, () => link());
  area.addEventListener("input", () => {
    // Whom a person said stays as long as nothing changed up to the end of the name.
    const now = area.value;
    let same = 0;
    while (same < now.length && now[same] === known.text[same]) same += 1;
    given = given.filter(({ end }) => {
      const stop = known.places[end - 1]?.[1] ?? 0;
      return stop <= same && !/[\p{L}\p{N}]/u.test(now[stop] ?? "");
    });
    open = null;
    soon();
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      soon.cancel();
      link();
    }
  });

  function show() {
    const parts = [];
    let at = 0;
    for (const mention of known.mentions) {
      const start = known.places[mention.start]?.[0];
      const end = known.places[mention.end - 1]?.[1];
      if (start === undefined || end === undefined || start < at) continue;
      parts.push(known.text.slice(at, start), gloss(mention, known.text.slice(start, end) || mention.text));
      at = end;
    }
    parts.push(known.text.slice(at));
    fill(echo, known.mentions.length ? parts
      : known.text.trim() && h("span", { class: "muted" }, "No name of the graph in this text yet: what comes next are plain words and new entities."));
    showChoices();
  }

  const key = ({ start, end }) => `${start}:${end}`;
  const givenFor = (mention) => given.find((span) => key(span) === key(mention));

  function gloss(mention, text) {
    const best = mention.candidates[0];
    const said = givenFor(mention);
    const sure = said ? "you said so" : percent(best?.p ?? 0);
    return h("button", {
      type: "button", class: `gloss${said ? " said" : ""}`, "data-stop": true, "data-key": key(mention),
      "aria-expanded": String(open === key(mention)),
      "aria-label": `${text}: taken for ${best?.label ?? "nothing"}, ${sure}. Choose another entity`,
      onclick: () => { open = open === key(mention) ? null : key(mention); show(); refocus(mention); },
    }, h("span", { class: "said-text" }, text),
    best && h("span", { class: "who" }, best.label === text ? best.id : name(best), " ", h("span", { class: "p" }, said ? "✓" : percent(best.p))));
  }

  const refocus = (mention) => (open
    ? choices.querySelector("button")
    : echo.querySelector(`[data-key="${key(mention)}"]`))?.focus();

  function choose(mention, entity) {
    given = given.filter((span) => span.end <= mention.start || span.start >= mention.end);
    if (entity) given.push({ start: mention.start, end: mention.end, id: entity.id, label: entity.label });
    open = null;
    announce(entity ? `${mention.text} is now ${entity.label}` : `${mention.text}: the model decides`);
    link(true).then(() => echo.querySelector(`[data-key="${key(mention)}"]`)?.focus());
  }

  function showChoices() {
    const mention = known.mentions.find((each) => key(each) === open);
    choices.hidden = !mention;
    if (!mention) {
      choices.replaceChildren();
      return;
    }
    const said = givenFor(mention);
    const search = combobox({
      label: "Another entity", placeholder: "Search all entities", search: searchEntities, pick: (entity) => choose(mention, entity),
    });
    const list = h("div", { class: "candidates", role: "group", "aria-label": `What is meant by “${mention.text}”?` },
      mention.candidates.map((candidate, k) => h("div", { class: "candidate", vars: { p: candidate.p } },
        h("button", {
          type: "button", class: "pick", "data-stop": true, tabindex: k ? "-1" : "0",
          "aria-pressed": String(candidate.id === (said?.id ?? null)), onclick: () => choose(mention, candidate),
        }, name(candidate), h("small", {}, candidate.id), h("span", { class: "p" }, percent(candidate.p))),
        h("button", { type: "button", class: "quiet", "aria-label": `About ${candidate.label}`, onclick: () => openCard(candidate.id) }, "ⓘ"))));
    arrows(list, () => [...list.querySelectorAll("[data-stop]")]);
    fill(choices,
      h("p", { class: "title" }, "What is meant by ", h("q", {}, mention.text), "?"), list, search.element,
      h("div", { class: "buttons" },
        said && h("button", { type: "button", class: "small", onclick: () => choose(mention, null) }, "Let the model decide"),
        h("button", { type: "button", class: "small", onclick: () => close(mention) }, "Close")));
  }

  function close(mention) {
    open = null;
    show();
    refocus(mention);
  }
  choices.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const mention = known.mentions.find((each) => key(each) === open);
    if (mention) close(mention);
  });
  arrows(echo, () => [...echo.querySelectorAll("[data-stop]")], { horizontal: true });

  function set(text, spans = [], step = false) {
    soon.cancel();
    area.value = text;
    given = spans;
    open = null;
    return link(step);
  }

  return { element, area, value, set, again: () => link() };
}

/** "0:2=Q76" as a deep link has it, and back. */
export function parseSpan(text) {
  const match = /^(\d{1,6}):(\d{1,6})=(\S{1,200})$/.exec(text);
  return match && { start: Number(match[1]), end: Number(match[2]), id: match[3] };
}
export const writeSpan = ({ start, end, id }) => `${start}:${end}=${id}`;
