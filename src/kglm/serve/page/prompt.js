// The prompt: a text, and below it the entities its names are linked to, updated while typing.

import * as api from "/page/api.js";
import { combobox } from "/page/combobox.js";
import { announce, arrows, fill, freshId, h, isAbort, later, name, percent, trouble } from "/page/dom.js";
import { openCard, searchEntities } from "/page/entity.js";

export const NO_ENTITY = "no entity";

/** Positions [start, end) of each word in the text. */
function places(text, words) {
  let at = 0;
  return words.map((word) => {
    const found = text.indexOf(word, at);
    if (found < 0 || found - at > 8) return [at, at];
    at = found + word.length;
    return [found, at];
  });
}

/** Mentions of the server's JSON (one entry per candidate) as one entry per name, with its candidates. */
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
 * `change({text, entities}, step)` is called when the text is linked, or is empty.
 * `step`: true for a change that the Back button undoes, false for typing.
 */
export function promptBox({ label, hint, examples = [], change }) {
  const id = freshId("prompt");
  let given = []; // {start, end, id, label}: entities that the user chose
  let linked = { text: "", words: [], mentions: [], places: [] };
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
    entities: given.map(({ start, end, id: entity }) => ({ start, end, id: entity })),
  });

  async function link(step = false) {
    controller?.abort();
    controller = new AbortController();
    const request = value();
    const text = area.value;
    if (!request.text) {
      linked = { text, words: [], mentions: [], places: [] };
      show();
      change(request, step);
      return;
    }
    element.setAttribute("aria-busy", "true");
    try {
      const { prompt: words, mentions } = await api.post("/api/link", { text, entities: request.entities }, { signal: controller.signal });
      linked = { text, words, mentions: byName(mentions), places: places(text, words) };
      show();
      change(request, step);
    } catch (error) {
      if (isAbort(error)) return;
      fill(echo, trouble(error, () => { given = []; link(); }));
    } finally {
      element.removeAttribute("aria-busy");
    }
  }

  const soon = later(220, () => link());
  area.addEventListener("input", () => {
    // A chosen entity stays as long as the text up to the end of its name does not change.
    const now = area.value;
    let same = 0;
    while (same < now.length && now[same] === linked.text[same]) same += 1;
    given = given.filter(({ end }) => {
      const stop = linked.places[end - 1]?.[1] ?? 0;
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
    for (const mention of linked.mentions) {
      const start = linked.places[mention.start]?.[0];
      const end = linked.places[mention.end - 1]?.[1];
      if (start === undefined || end === undefined || start < at) continue;
      parts.push(linked.text.slice(at, start), gloss(mention, linked.text.slice(start, end) || mention.text));
      at = end;
    }
    parts.push(linked.text.slice(at));
    fill(echo, linked.mentions.length ? parts
      : linked.text.trim() && h("span", { class: "muted" }, "No name of the graph in this text yet; the next word is a plain word or a new entity."));
    showChoices();
  }

  const key = ({ start, end }) => `${start}:${end}`;
  const givenFor = (mention) => given.find((span) => key(span) === key(mention));

  function gloss(mention, text) {
    const best = mention.candidates[0];
    const chosen = givenFor(mention);
    const sure = chosen ? "your choice" : percent(best?.p ?? 0);
    return h("button", {
      type: "button", class: `gloss${chosen ? " chosen" : ""}`, "data-stop": true, "data-key": key(mention),
      "aria-expanded": String(open === key(mention)),
      "aria-label": `${text}: linked to ${best?.label ?? "no entity"}, ${sure}. Choose another entity`,
      onclick: () => { open = open === key(mention) ? null : key(mention); show(); refocus(mention); },
    }, h("span", { class: "mention-text" }, text),
    best && h("span", { class: "linked-entity", title: best.description || "" }, entityName(best, text), " ", h("span", { class: "p" }, chosen ? "✓" : percent(best.p))));
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
    const mention = linked.mentions.find((each) => key(each) === open);
    choices.hidden = !mention;
    if (!mention) {
      choices.replaceChildren();
      return;
    }
    const chosen = givenFor(mention);
    const search = combobox({
      label: "Another entity", placeholder: "Search all entities", search: searchEntities, pick: (entity) => choose(mention, entity),
    });
    const list = h("div", { class: "candidates", role: "group", "aria-label": `Which entity is “${mention.text}”?` },
      mention.candidates.filter((candidate) => candidate.id).map((candidate, k) => h("div", { class: "candidate", vars: { p: candidate.p } },
        h("button", {
          type: "button", class: "pick", "data-stop": true, tabindex: k ? "-1" : "0",
          "aria-pressed": String(candidate.id === (chosen?.id ?? null)), onclick: () => choose(mention, candidate),
        }, name(candidate), h("small", {}, candidate.description || candidate.id), h("span", { class: "p" }, percent(candidate.p))),
        h("button", { type: "button", class: "quiet", "aria-label": `About ${candidate.label}`, onclick: () => openCard(candidate.id) }, "ⓘ"))));
    arrows(list, () => [...list.querySelectorAll("[data-stop]")]);
    const nil = mention.candidates[0]?.p_nil ?? 0;
    fill(choices,
      h("p", { class: "title" }, "Which entity is ", h("q", {}, mention.text), "?"), list,
      nil >= 0.005 && h("p", { class: "muted" }, `No entity of the graph: ${percent(nil)}`), search.element,
      h("div", { class: "buttons" },
        chosen && h("button", { type: "button", class: "small", onclick: () => choose(mention, null) }, "Let the model decide"),
        h("button", { type: "button", class: "small", onclick: () => close(mention) }, "Close")));
  }

  function close(mention) {
    open = null;
    show();
    refocus(mention);
  }
  choices.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const mention = linked.mentions.find((each) => key(each) === open);
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

/** What a name is linked to; an entity of the same name is told by its description. */
function entityName(candidate, text) {
  if (!candidate.id) return NO_ENTITY;
  return candidate.label === text ? h("bdi", {}, candidate.description || candidate.id) : name(candidate);
}

/** Parse and write "0:2=Q76", the form of an entity in the address. */
export function parseSpan(text) {
  const match = /^(\d{1,6}):(\d{1,6})=(\S{1,200})$/.exec(text);
  return match && { start: Number(match[1]), end: Number(match[2]), id: match[3] };
}
export const writeSpan = ({ start, end, id }) => `${start}:${end}=${id}`;
