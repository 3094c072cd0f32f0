// The first view: a prompt, its answers and next words with their reasons, the local graph, and edits of its facts.

import * as api from "/page/api.js";
import { askBox } from "/page/ask.js";
import { bars } from "/page/bars.js";
import { announce, fill, h, isAbort, percent, trouble, wordText } from "/page/dom.js";
import { editing } from "/page/edit.js";
import { drawGraph } from "/page/graph.js";
import { parseSpan, promptBox, writeSpan } from "/page/prompt.js";
import { chainText, isFact, withNames } from "/page/reason.js";

const TOP = 25; // more than are shown, to find an answer or a word again after an edit
const REASONS = 8;
const NOTABLE = 0.1; // probability from which a missing fact is shown
const named = (each) => ({ id: each.parent, label: each.parent_label });

/** Answers and next words as {kind, key, word, p, reasons}, their reasons with {id, label} for each entity and relation. */
async function complete(body, options) {
  const found = await api.post("/api/complete", body, options);
  const entry = (each, kind, key, word) => ({ ...each, kind, key: `${kind} ${key}`, word, reasons: each.reasons.map(withNames) });
  return {
    ...found,
    answers: found.answers.map((each) => entry(each, "answer", each.entity ?? each.text, each.text)),
    words: found.words.map((each) => entry(each, "word", each.word, each.word)),
  };
}

/** A fact that the text asks for and the graph lacks, if it is probable; `first`: more so than the best fact. */
function missingFact({ missing, answers }) {
  const [best] = missing;
  if (!best || best.p < NOTABLE) return null;
  return { ...best, first: answers.every(({ reasons }) => reasons.every((reason) => !isFact(reason) || reason.p < best.p)) };
}

export function completeView(root, health, go) {
  let prompt = { text: "", entities: [] };
  let now = { answer: null, graph: null, before: null, opened: undefined };
  let controller = null;
  const unfolded = new Set();

  const box = promptBox({ label: "A text to continue", hint: "Barack Obama was born on", examples: health.examples, change: prompted });
  const asking = health.questions ? askBox() : null;
  const edits = editing({ allowed: health.allow_edit, persist: health.persist, changed: () => { asking?.again(); return refresh(); } });
  const answers = h("div", { class: "answers" });
  const words = h("div", { class: "words" });
  const wordsFold = h("details", { class: "next-words" }, h("summary", {}, "By the next word"), words);
  const picture = h("div", { class: "picture" });
  const answersCard = h("section", { class: "card", "aria-labelledby": "next-title" }, h("h2", { id: "next-title" }, "Answers"), answers, wordsFold);
  const ofWord = h("span", {}, "; beside it, what they lead to");
  const note = h("p", { class: "muted note" }, "Facts that the text can go on with, each with the probability that it does", ofWord, ".", health.allow_edit && " Choose a fact to change it.");
  const graphCard = h("section", { class: "card", "aria-labelledby": "graph-title" }, h("h2", { id: "graph-title" }, "Local graph"), note, picture);
  const results = h("div", { class: "split" }, answersCard, graphCard);
  root.append(
    h("h1", {}, "A language model that takes its facts from a knowledge graph"),
    h("p", { class: "lead" }, "Every answer comes with its reasons. Change a fact and the answers follow, without any training."),
    asking?.element, h("div", { class: "card" }, box.element), edits.element, results);

  function prompted(next, step) {
    if (next.text !== prompt.text) unfolded.clear();
    prompt = next;
    const query = new URLSearchParams();
    if (prompt.text) query.set("text", prompt.text);
    for (const span of prompt.entities) query.append("entity", writeSpan(span));
    go("complete", query, { push: step });
    refresh();
  }

  async function refresh() {
    controller?.abort();
    controller = new AbortController();
    const { signal } = controller;
    results.hidden = !prompt.text;
    if (!prompt.text) return;
    results.setAttribute("aria-busy", "true");
    const body = { ...prompt, top: TOP, reasons: REASONS };
    try {
      const [answer, graph, before] = await Promise.all([
        complete(body, { signal }),
        api.post("/api/graph", prompt, { signal }),
        edits.any() ? complete(body, { signal, session: false }) : null,
      ]);
      now = { answer, graph, before, opened: answer.answers[0]?.key ?? null };
      draw();
      announceBest(answer);
    } catch (error) {
      if (isAbort(error)) return;
      now.answer = null;
      fill(answers, trouble(error, refresh));
      fill(words);
      fill(picture);
    }
    results.removeAttribute("aria-busy");
  }

  function announceBest(answer) {
    const [best] = answer.answers;
    const missing = missingFact(answer);
    const found = best && `Most probable answer: ${wordText(best.word)}, ${percent(best.p)}. ${best.reasons[0] ? chainText(best.reasons[0]) : ""}`;
    announce([missing?.first && missing.text, found, missing && !missing.first && missing.text].filter(Boolean).join(". "));
  }

  function draw() {
    if (!now.answer) return;
    const held = answersCard.contains(document.activeElement) ? document.activeElement.closest("li")?.querySelector("button.bar")?.dataset.key : null;
    const shared = { opened: now.opened, open: (key) => { now.opened = key; draw(); }, edit: edits.dialog, append };
    const { answer, before } = now;
    const { new: fresh = 0, related = 0 } = answer.rest;
    bars(answers, { ...shared, label: "answers", shown: answer.answers, before: before?.answers, rest: (total) => [[1 - total, "other answers"]] });
    bars(words, {
      ...shared, label: "next words", shown: answer.words, before: before?.words,
      rest: (total) => [[1 - total - fresh - related, "other words"], [fresh, "further new entities"], [related, "further facts"]],
    });
    const missing = missingFact(answer);
    if (missing) answers[missing.first ? "prepend" : "append"](missingLine(missing));
    if (held) [...answersCard.querySelectorAll("button.bar")].find((bar) => bar.dataset.key === held)?.focus();
    drawPicture();
  }

  /** What the text asks for and the graph lacks, and a button to add it. */
  function missingLine(missing) {
    const fact = { parent: named(missing), relation: { id: missing.relation, label: missing.relation_label }, entity: null };
    return h("p", { class: "missing" }, h("span", {}, h("bdi", {}, `${missing.text[0].toUpperCase()}${missing.text.slice(1)}`), "."),
      !missing.relation.startsWith("R:") && health.allow_edit
      && h("button", { type: "button", class: "small", onclick: () => edits.dialog(fact) }, "Add the fact"));
  }

  /** Add an answer or a word to the text; of a name that the text begins, only what follows. */
  function append({ word, reasons }) {
    const text = box.area.value.trimEnd();
    let known = reasons[0]?.type === "continue" ? Math.min(word.length, text.length) : 0;
    while (known && !text.endsWith(word.slice(0, known))) known -= 1;
    const more = word.slice(known).trimStart();
    const blank = /^(?:[.,;:!?%)\]]|['’]s?$)/u.test(more) ? "" : " ";
    box.set(text + blank + more, box.value().entities, true).then(() => box.area.focus());
  }

  function drawPicture() {
    if (!now.graph || root.hidden) return;
    const openedWord = [...now.answer?.answers ?? [], ...now.answer?.words ?? []].find((each) => each.key === now.opened) ?? null;
    note.hidden = !now.graph.edges.length;
    drawGraph(picture, { graph: now.graph, openedWord, unfolded, edit: edits.dialog, fold });
    ofWord.hidden = !picture.querySelector("svg .next-word");
    updateTabStop();
  }

  /** A card that scrolls can be focused with Tab, so that arrow keys scroll it. */
  function updateTabStop() {
    if (graphCard.scrollHeight > graphCard.clientHeight + 1) graphCard.tabIndex = 0;
    else graphCard.removeAttribute("tabindex");
  }

  /** Show or hide the improbable facts of an entity. */
  function fold(parent) {
    if (!unfolded.delete(parent)) unfolded.add(parent);
    drawPicture();
    const [again, chip] = ["[data-fold]", ".also [data-parent]"].map((kind) => [...picture.querySelectorAll(kind)].find((each) => Object.values(each.dataset).includes(parent)));
    (again ?? chip)?.focus();
  }

  let width = 0;
  const sizes = new ResizeObserver(() => {
    updateTabStop();
    if (picture.clientWidth === width) return;
    width = picture.clientWidth;
    const held = picture.contains(document.activeElement) ? document.activeElement.dataset.fold : null;
    drawPicture();
    if (held) [...picture.querySelectorAll("[data-fold]")].find((each) => each.dataset.fold === held)?.focus();
  });
  for (const each of [picture, graphCard]) sizes.observe(each);
  window.addEventListener("kglm-back", () => { if (!root.hidden) box.again(); });

  let ready = null;
  return {
    title: "Complete & edit",
    async show(query) {
      ready ??= edits.load().catch(() => undefined);
      await ready;
      const text = query.get("text");
      const shown = box.value(); // the prompt in the box, not the last answer, which may be for an older prompt
      if (text === null && prompt.text) {
        go("complete", new URLSearchParams({ text: prompt.text }));
        drawPicture();
      } else if (text !== shown.text || query.getAll("entity").join() !== shown.entities.map(writeSpan).join()) {
        await box.set(text ?? health.examples[0] ?? "", query.getAll("entity").map(parseSpan).filter(Boolean));
      } else drawPicture();
    },
  };
}
