// The first view: a prompt, the next words with their reasons, the local graph, and edits of its facts.

import * as api from "/page/api.js";
import { bars } from "/page/bars.js";
import { announce, fill, h, isAbort, percent, trouble, wordText } from "/page/dom.js";
import { editing } from "/page/edit.js";
import { drawGraph } from "/page/graph.js";
import { parseSpan, promptBox, writeSpan } from "/page/prompt.js";
import { chainText, withNames } from "/page/reason.js";

const TOP = 25; // more than are shown, to find a word again after an edit
const REASONS = 8;

/** The next words, their reasons with {id, label} for each entity and relation. */
async function complete(body, options) {
  const answer = await api.post("/api/complete", body, options);
  return { ...answer, words: answer.words.map((each) => ({ ...each, reasons: each.reasons.map(withNames) })) };
}

export function completeView(root, health, go) {
  let prompt = { text: "", entities: [] };
  let now = { answer: null, graph: null, before: null, opened: undefined };
  let controller = null;
  const unfolded = new Set();

  const box = promptBox({ label: "A text to continue", hint: "Barack Obama was born on", examples: health.examples, change: prompted });
  const edits = editing({ allowed: health.allow_edit, persist: health.persist, changed: refresh });
  const words = h("div", { class: "words" });
  const picture = h("div", { class: "picture" });
  const wordsCard = h("section", { class: "card", "aria-labelledby": "next-title" }, h("h2", { id: "next-title" }, "Next word"), words);
  const ofWord = h("span", {}, "; under the word, the probability of the word");
  const note = h("p", { class: "muted note" }, "Facts the next word can come from, each with the probability that it does", ofWord, ".", health.allow_edit && " Choose a fact to change it.");
  const graphCard = h("section", { class: "card", "aria-labelledby": "graph-title" }, h("h2", { id: "graph-title" }, "Local graph"), note, picture);
  const results = h("div", { class: "split" }, wordsCard, graphCard);
  root.append(
    h("h1", {}, "A language model that takes its facts from a knowledge graph"),
    h("p", { class: "lead" }, "Every word comes with its reasons. Change a fact and the words follow, without any training."),
    h("div", { class: "card" }, box.element), edits.element, results);

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
      now = { answer, graph, before, opened: answer.words[0]?.word ?? null };
      draw();
      announceBest(answer);
    } catch (error) {
      if (isAbort(error)) return;
      now.answer = null;
      fill(words, trouble(error, refresh));
      fill(picture);
    }
    results.removeAttribute("aria-busy");
  }

  function announceBest({ words: [best] }) {
    if (best) announce(`Most probable next word: ${wordText(best.word)}, ${percent(best.p)}. ${best.reasons[0] ? chainText(best.reasons[0]) : ""}`);
  }

  function draw() {
    if (!now.answer) return;
    const held = words.contains(document.activeElement) ? document.activeElement.closest("li")?.querySelector("button.bar")?.dataset.word : null;
    bars(words, {
      answer: now.answer, before: now.before, opened: now.opened,
      open: (word) => { now.opened = word; draw(); },
      edit: edits.dialog,
      append: (word) => {
        const blank = /^(?:[.,;:!?%)\]]|['’]s?$)/u.test(word) ? "" : " ";
        box.set(box.area.value.trimEnd() + blank + word, box.value().entities, true).then(() => box.area.focus());
      },
    });
    if (held) [...words.querySelectorAll("button.bar")].find((bar) => bar.dataset.word === held)?.focus();
    drawPicture();
  }

  function drawPicture() {
    if (!now.graph || root.hidden) return;
    const found = now.answer?.words.find((each) => each.word === now.opened) ?? null;
    note.hidden = !now.graph.edges.length;
    drawGraph(picture, { graph: now.graph, found, unfolded, edit: edits.dialog, fold });
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
    drawPicture();
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
