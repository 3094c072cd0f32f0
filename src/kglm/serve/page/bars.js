// Answers or next words: one bar for each, with its reasons and its probability before the edits.

import { arrows, count, fill, h, percent, word, wordText } from "/page/dom.js";
import { chain, factText, isFact, legend, shares, swatch, typeOf, TYPES } from "/page/reason.js";

const SHOWN = 10;
const MIN_SHOWN = 4; // words that are shown even if they are improbable
const SAME = 0.0005; // a smaller change of a probability is not visible
const MIN_SHARE = 0.005; // a reason with a smaller share of its word's probability is counted, not listed

/**
 * `shown`: answers or words {key, word, p, reasons}, `before`: those without the edits, if there are any. `opened`: the
 * key of the one whose reasons are shown. `label`: what they are called; `rest`: [p, what] of what is not in the list.
 * `open(key | null)`, `edit(reason)`, `append(entry)`: callbacks.
 */
export function bars(container, { label, shown, before, rest, opened, open, edit, append }) {
  const entries = mergeBefore(shown, before);
  const list = h("ol", { class: `bars${before ? " compared" : ""}`, "aria-label": label },
    entries.map((entry, k) => bar(entry, k, { label, opened, open, edit, append, before, shown, first: entries.every(({ key }) => key !== opened) })));
  arrows(list, () => [...list.querySelectorAll("[data-stop]")]);
  list.addEventListener("keydown", (event) => {
    const button = event.target.closest("button.bar");
    if (!button) return;
    const isOpen = button.getAttribute("aria-expanded") === "true";
    if ((event.key === "ArrowRight" && !isOpen) || (event.key === "ArrowLeft" && isOpen)) {
      event.preventDefault();
      open(isOpen ? null : button.dataset.key);
    }
  });
  const types = new Set(entries.flatMap(({ p, reasons }) => reasons.filter((reason) => reason.p >= MIN_SHARE * p).map(typeOf)));
  const present = Object.keys(TYPES).filter((type) => types.has(type));
  const total = entries.reduce((sum, entry) => sum + entry.p, 0);
  fill(container, before && change(label, shown, before, entries), list, theRest(rest(total)), legend(present));
}

/** Upper bound of the probability of an entry that a list does not have. */
const below = (list) => `< ${percent(Math.max(list.at(-1)?.p ?? 0, 0.001))}`;

/** The entries with their probability before the edits, and those that left the list. */
function mergeBefore(shown, before) {
  const was = new Map((before ?? []).map((entry) => [entry.key, entry.p]));
  const now = shown.slice(0, SHOWN).filter((entry, k) => k < MIN_SHOWN || entry.p >= SAME).map((entry) => ({ ...entry, was: before ? was.get(entry.key) ?? 0 : null, fresh: !was.has(entry.key) }));
  const there = new Map(shown.map((entry) => [entry.key, entry]));
  const listed = new Set(now.map((entry) => entry.key));
  const gone = (before ?? []).slice(0, 5).filter((entry) => entry.p >= 0.01 && !listed.has(entry.key))
    .map((entry) => ({ key: entry.key, reasons: [], p: 0, gone: !there.has(entry.key), ...(there.get(entry.key) ?? { word: entry.word }), was: entry.p }));
  return [...now, ...gone];
}

function bar(entry, k, { label, opened, open, edit, append, before, shown, first }) {
  const isOpen = entry.key === opened;
  const id = `why-${label.replace(" ", "-")}-${k}`;
  const parts = shares(entry.reasons);
  const explained = parts.reduce((sum, [, p]) => sum + p, 0);
  if (entry.p > explained) parts.push(["other", entry.p - explained]);
  const changed = before && Math.abs(entry.p - entry.was) >= SAME;
  const numbers = changed
    ? h("span", { class: "p" }, h("s", {}, h("span", { class: "unseen" }, "before "), entry.fresh ? below(before) : percent(entry.was)), " → ", h("b", {}, entry.gone ? below(shown) : percent(entry.p)))
    : h("span", { class: "p" }, percent(entry.p));
  return h("li", { class: isOpen ? "opened" : null },
    h("button", {
      type: "button", class: "bar", "data-stop": true, "data-word": entry.word, "data-key": entry.key, tabindex: isOpen || (k === 0 && first) ? "0" : "-1",
      "aria-expanded": String(isOpen), "aria-controls": id, onclick: () => open(isOpen ? null : entry.key),
    },
    h("span", { class: "word" }, word(entry.word)),
    h("span", { class: "track", "aria-hidden": "true" },
      before && h("span", { class: "ghost", vars: { p: entry.was } }),
      h("span", { class: "fill" }, parts.map(([type, p]) => h("span", { class: `part t-${type}`, vars: { p } })))),
    numbers),
    h("div", { class: "why", id, hidden: !isOpen }, isOpen && why(entry, edit, append)));
}

function why(entry, edit, append) {
  const listed = entry.reasons.filter((reason, k) => k === 0 || reason.p >= MIN_SHARE * entry.p);
  const further = { count: entry.reasons.length - listed.length + (entry.further_reasons?.count ?? 0), p: entry.p - listed.reduce((sum, reason) => sum + reason.p, 0) };
  return [
    h("ul", { class: "reasons" }, listed.map((reason) => h("li", {},
      swatch(typeOf(reason)),
      h("span", { class: "reason" }, chain(reason), " ", h("span", { class: "p" }, percent(reason.p))),
      isFact(reason) && h("button", {
        type: "button", class: "small", "aria-label": `Edit the fact ${factText(reason)}`,
        onclick: () => edit(reason),
      }, "Edit fact")))),
    entry.reasons.length === 0 && h("p", { class: "muted" }, "Not among the likely ones any more."),
    further.count > 0 && h("p", { class: "muted" }, `and ${count(further.count, "further reason")}, together ${percent(Math.max(0, further.p))}`),
    !entry.word.startsWith("@@") && h("button", { type: "button", class: "small", onclick: () => append(entry) }, "Add “", h("bdi", {}, wordText(entry.word)), "” to the text"),
  ];
}

function change(label, shown, before, entries) {
  const [was, is] = [before[0], shown[0]];
  if (!was || !is) return null;
  if (entries.every((entry) => Math.abs(entry.p - entry.was) < SAME)) return h("p", { class: "change" }, `Your edits do not change the ${label} here.`);
  return h("p", { class: "change" },
    h("span", { class: "muted" }, "Before your edits "), h("b", {}, word(was.word)), ` ${percent(was.p)}`,
    h("span", { class: "to" }, " → "),
    h("span", { class: "muted" }, "now "), h("b", {}, word(is.word)), ` ${percent(is.p)}`);
}

function theRest(parts) {
  const shown = parts.filter(([p]) => p >= 0.0005);
  return shown.length > 0 && h("p", { class: "rest muted" }, "The rest: ", shown.map(([p, what]) => `${percent(p)} ${what}`).join(", "), ".");
}
