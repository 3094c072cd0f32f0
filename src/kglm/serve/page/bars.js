// The distribution of the next word: one bar per word, with its reasons and its probability before the edits.

import { arrows, count, fill, h, percent, word, wordText } from "/page/dom.js";
import { chain, factText, isFact, legend, shares, swatch, typeOf, TYPES } from "/page/reason.js";

const SHOWN = 10;
const MIN_SHOWN = 4; // words that are shown even if they are improbable
const SAME = 0.0005; // a smaller change of a probability is not visible
const MIN_SHARE = 0.005; // a reason with a smaller share of its word's probability is counted, not listed

/**
 * `before`: the completion without the edits, if there are any. `opened`: the word whose reasons are shown.
 * `open(word | null)`, `edit(reason)`, `append(word)`: callbacks.
 */
export function bars(container, { answer, before, opened, open, edit, append }) {
  const words = mergeBefore(answer, before);
  const list = h("ol", { class: `bars${before ? " compared" : ""}`, "aria-label": "Next words" },
    words.map((found, k) => bar(found, k, { opened, open, edit, append, before, answer })));
  arrows(list, () => [...list.querySelectorAll("[data-stop]")]);
  list.addEventListener("keydown", (event) => {
    const button = event.target.closest("button.bar");
    if (!button) return;
    const isOpen = button.getAttribute("aria-expanded") === "true";
    if ((event.key === "ArrowRight" && !isOpen) || (event.key === "ArrowLeft" && isOpen)) {
      event.preventDefault();
      open(isOpen ? null : button.dataset.word);
    }
  });
  const types = new Set(words.flatMap(({ p, reasons }) => reasons.filter((reason) => reason.p >= MIN_SHARE * p).map(typeOf)));
  const present = Object.keys(TYPES).filter((type) => types.has(type));
  fill(container, before && change(answer, before, words), list, rest(answer, words.reduce((sum, found) => sum + found.p, 0)), legend(present));
}

/** Upper bound of the probability of a word that an answer does not list. */
const below = ({ words }) => `< ${percent(Math.max(words.at(-1)?.p ?? 0, 0.001))}`;

/** The words of the answer with their probability before the edits, and the words that left the list. */
function mergeBefore(answer, before) {
  const was = new Map((before?.words ?? []).map((found) => [found.word, found.p]));
  const now = answer.words.slice(0, SHOWN).filter((found, k) => k < MIN_SHOWN || found.p >= SAME).map((found) => ({ ...found, was: before ? was.get(found.word) ?? 0 : null, fresh: !was.has(found.word) }));
  const there = new Map(answer.words.map((found) => [found.word, found]));
  const shown = new Set(now.map((found) => found.word));
  const gone = (before?.words ?? []).slice(0, 5).filter((found) => found.p >= 0.01 && !shown.has(found.word))
    .map((found) => ({ reasons: [], p: 0, gone: !there.has(found.word), ...(there.get(found.word) ?? { word: found.word }), was: found.p }));
  return [...now, ...gone];
}

function bar(found, k, { opened, open, edit, append, before, answer }) {
  const isOpen = found.word === opened;
  const parts = shares(found.reasons);
  const explained = parts.reduce((sum, [, p]) => sum + p, 0);
  if (found.p > explained) parts.push(["other", found.p - explained]);
  const changed = before && Math.abs(found.p - found.was) >= SAME;
  const numbers = changed
    ? h("span", { class: "p" }, h("s", {}, h("span", { class: "unseen" }, "before "), found.fresh ? below(before) : percent(found.was)), " → ", h("b", {}, found.gone ? below(answer) : percent(found.p)))
    : h("span", { class: "p" }, percent(found.p));
  return h("li", { class: isOpen ? "opened" : null },
    h("button", {
      type: "button", class: "bar", "data-stop": true, "data-word": found.word, tabindex: isOpen || (k === 0 && opened === null) ? "0" : "-1",
      "aria-expanded": String(isOpen), "aria-controls": `why-${k}`, onclick: () => open(isOpen ? null : found.word),
    },
    h("span", { class: "word" }, word(found.word)),
    h("span", { class: "track", "aria-hidden": "true" },
      before && h("span", { class: "ghost", vars: { p: found.was } }),
      h("span", { class: "fill" }, parts.map(([type, p]) => h("span", { class: `part t-${type}`, vars: { p } })))),
    numbers),
    h("div", { class: "why", id: `why-${k}`, hidden: !isOpen }, isOpen && why(found, edit, append)));
}

function why(found, edit, append) {
  const listed = found.reasons.filter((reason, k) => k === 0 || reason.p >= MIN_SHARE * found.p);
  const further = { count: found.reasons.length - listed.length + (found.further_reasons?.count ?? 0), p: found.p - listed.reduce((sum, reason) => sum + reason.p, 0) };
  return [
    h("ul", { class: "reasons" }, listed.map((reason) => h("li", {},
      swatch(typeOf(reason)),
      h("span", { class: "reason" }, chain(reason), " ", h("span", { class: "p" }, percent(reason.p))),
      isFact(reason) && h("button", {
        type: "button", class: "small", "aria-label": `Edit the fact ${factText(reason)}`,
        onclick: () => edit(reason),
      }, "Edit fact")))),
    found.reasons.length === 0 && h("p", { class: "muted" }, "Not among the likely words any more."),
    further.count > 0 && h("p", { class: "muted" }, `and ${count(further.count, "further reason")}, together ${percent(Math.max(0, further.p))}`),
    !found.word.startsWith("@@") && h("button", { type: "button", class: "small", onclick: () => append(found.word) }, "Add “", h("bdi", {}, wordText(found.word)), "” to the text"),
  ];
}

function change(answer, before, words) {
  const [was, is] = [before.words[0], answer.words[0]];
  if (!was || !is) return null;
  if (words.every((found) => Math.abs(found.p - found.was) < SAME)) return h("p", { class: "change" }, "Your edits do not change the next word here.");
  return h("p", { class: "change" },
    h("span", { class: "muted" }, "Before your edits "), h("b", {}, word(was.word)), ` ${percent(was.p)}`,
    h("span", { class: "to" }, " → "),
    h("span", { class: "muted" }, "now "), h("b", {}, word(is.word)), ` ${percent(is.p)}`);
}

function rest(answer, total) {
  const { new: fresh = 0, related = 0 } = answer.rest;
  const others = Math.max(0, 1 - total - fresh - related);
  const parts = [[others, "other words"], [fresh, "further new entities"], [related, "further facts"]].filter(([p]) => p >= 0.0005);
  return parts.length > 0 && h("p", { class: "rest muted" }, "The rest: ", parts.map(([p, what]) => `${percent(p)} ${what}`).join(", "), ".");
}
