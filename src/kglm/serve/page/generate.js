// The second view: generated text, word by word, each mention with the fact behind it.

import * as api from "/page/api.js";
import { announce, arrows, blanks, count, fill, h, inlineButton, isAbort, moveStop, name, percent, trouble } from "/page/dom.js";
import { NO_ENTITY, byName, parseSpan, promptBox, writeSpan } from "/page/prompt.js";
import { chain, fact, isFact, legend, swatch, typeOf, TYPES, withNames } from "/page/reason.js";
import { hideTip, withTip } from "/page/tip.js";

const END = "@@END@@";
const UNSUPPORTED = "No fact of the graph and no word of the prompt supports this.";
const SEEN = 320; // pixels of the text that must be visible

export function generateView(root, health, go) {
  let controller = null;
  let shown = null; // the query of the text that is shown
  const box = promptBox({ label: "Start of the text", hint: "Barack Obama", examples: health.examples, change: () => undefined });
  const number = (label, id, attributes, hint) => {
    const input = h("input", { type: "number", id: `g-${id}`, name: id, ...attributes });
    return { input, element: h("div", { class: "field" }, h("label", { for: `g-${id}` }, label), input, hint && h("small", { class: "muted" }, hint)) };
  };
  const fields = {
    words: number("Words", "words", { min: 1, max: 200, value: 40, required: true }),
    temperature: number("Temperature", "temperature", { min: 0, max: 2, step: 0.1, value: 0.7, required: true }, "0: greedy"),
    seed: number("Seed", "seed", { min: 0, max: 4294967295, step: 1, value: 0, required: true }, "changes the text"),
    beam: number("Beam", "beam", { min: 0, max: 8, step: 1, value: 0, required: true }, "0: sampling"),
  };
  const start = h("button", { class: "primary" }, "Generate");
  const stop = h("button", { type: "button", hidden: true, onclick: () => controller?.abort() }, "Stop");
  const other = h("button", { type: "button", onclick: () => { fields.seed.input.value = String((Number(fields.seed.input.value) + 1) % 4294967296); form.requestSubmit(); } }, "Another");
  const form = h("form", { class: "card", onsubmit: (event) => { event.preventDefault(); run(true); reveal(); } },
    box.element,
    h("div", { class: "fields" }, Object.values(fields).map((field) => field.element), h("div", { class: "buttons" }, start, other, stop)));
  const text = h("div", { class: "text", dir: "auto", "aria-label": "Generated text", role: "group" });
  const status = h("p", { class: "muted" });
  const colours = h("div", {});
  const used = h("div", {});
  const output = h("section", { class: "card", hidden: true, "aria-labelledby": "out-title" },
    h("h2", { id: "out-title" }, "Text"), text, status, colours, used);
  arrows(text, () => [...text.querySelectorAll("[data-stop]")], { horizontal: true });
  root.append(h("h1", {}, "Generate text"), h("p", { class: "lead" }, "Tap or point at a coloured mention, or move through them with the arrow keys, to see the fact behind it."), form, output);

  /** Scroll to the text if it is out of sight: on a phone it is below the fields. */
  function reveal() {
    if (output.getBoundingClientRect().top > window.innerHeight - SEEN) output.scrollIntoView({ block: "start" });
  }

  async function run(step = false) {
    controller?.abort();
    controller = new AbortController();
    const mine = controller;
    const prompt = box.value();
    const settings = Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, Number(field.input.value)]));
    const query = new URLSearchParams({ text: prompt.text, ...settings });
    for (const span of prompt.entities) query.append("entity", writeSpan(span));
    shown = query.toString();
    go("generate", query, { push: step });
    const page = writer(text);
    hideTip();
    output.hidden = false;
    output.setAttribute("aria-busy", "true");
    stop.hidden = false;
    fill(used);
    fill(colours);
    fill(status, "Writing …");
    try {
      for await (const line of api.lines("/api/generate", { ...prompt, ...settings }, mine.signal)) {
        if (line.error) throw new Error(line.error.message);
        if (line.prompt) page.prompt(line.prompt, byName(line.mentions ?? []));
        else if (line.done) announce(`Done. ${line.text ?? ""}`);
        else page.add({ ...line, reason: withNames(line.reason) });
      }
      fill(status, `${count(page.words(), "word")}, ${count(page.mentions(), "mention")}.`);
    } catch (error) {
      if (isAbort(error)) {
        if (mine !== controller) return;
        fill(status, `Stopped after ${count(page.words(), "word")}.`);
      } else fill(status, trouble(error, () => run()));
    } finally {
      if (mine === controller) {
        stop.hidden = true;
        output.removeAttribute("aria-busy");
        fill(colours, page.types().length > 0 && legend(page.types()));
        fill(used, factsUsed(page.facts()));
      }
    }
  }

  return {
    title: "Generate",
    async show(query) {
      if (query.get("text") === null || query.toString() === shown) {
        if (shown) go("generate", new URLSearchParams(shown));
        else if (!box.area.value) await box.set(health.examples[0]?.split(" ").slice(0, 2).join(" ") ?? "");
        return;
      }
      for (const [key, { input }] of Object.entries(fields)) if (query.has(key)) input.value = query.get(key);
      await box.set(query.get("text"), query.getAll("entity").map(parseSpan).filter(Boolean));
      if (form.reportValidity()) run();
    },
  };
}

/** Append words to `element`; the words of a mention form one button. */
function writer(element) {
  const blank = blanks();
  let mention = null; // {button, entity}
  let words = 0;
  const found = [];
  const types = new Set();
  fill(element);

  function piece(type, content, ...tip) {
    types.add(type);
    const button = inlineButton({ class: `mention t-${type}`, tabindex: element.querySelector("[data-stop]") ? "-1" : "0" }, content);
    withTip(button, () => [h("p", {}, swatch(type), TYPES[type]), ...tip]);
    button.addEventListener("focus", () => moveStop([...element.querySelectorAll("[data-stop]")], button));
    return button;
  }

  return {
    prompt(given, mentions) {
      const box = h("span", { class: "given" });
      element.append(box);
      for (let at = 0; at < given.length;) {
        const named = mentions.find(({ start }) => start === at);
        const stop = Math.max(named?.end ?? 0, at + 1);
        const [first, ...more] = given.slice(at, stop).filter((word) => word !== END).map((word) => [blank(word), word]);
        if (first) {
          const text = first[1] + more.flat().join("");
          const links = named?.candidates.slice(0, 3).map((candidate) => h("p", { class: "strong" }, "linked to ", candidate.id ? name(candidate) : NO_ENTITY, ` ${percent(candidate.p)}`));
          box.append(first[0], links ? piece("given", text, ...links) : text);
        }
        at = stop;
      }
    },
    add({ word, p, reason, text, supported }) {
      if (word === END) { mention = null; return; }
      words += 1;
      const before = text == null ? blank(word) : text.slice(0, text.length - word.length);
      const type = typeOf(reason);
      if (type === "none" || type === "missing") {
        mention = null;
        element.append(before, supported === false ? h("span", { class: "unsupported", title: UNSUPPORTED }, word) : word);
      } else if (type === "continue" && mention && mention.entity === reason.entity?.id) {
        mention.button.append(before + word);
      } else {
        element.append(before);
        const button = piece(type, word, h("p", { class: "strong" }, chain(reason)), h("p", { class: "muted" }, `this word: ${percent(p)}`));
        element.append(button);
        mention = { button, entity: reason.entity?.id };
        found.push(reason);
      }
    },
    words: () => words,
    mentions: () => found.length,
    types: () => Object.keys(TYPES).filter((type) => types.has(type)),
    facts: () => found.filter(isFact),
  };
}

function factsUsed(reasons) {
  const seen = new Map();
  for (const reason of reasons) {
    const key = `${reason.parent.id} ${reason.relation.id} ${reason.entity.id}`;
    if (!seen.has(key)) seen.set(key, reason);
  }
  return seen.size > 0 && [
    h("h3", {}, "Facts used"),
    h("ul", { class: "facts-used" }, [...seen.values()].map((reason) => h("li", {}, swatch("related"), h("span", {}, fact(reason.parent, reason.relation, reason.entity))))),
  ];
}
