// A question and its answer in a sentence, for models that answer questions.

import * as api from "/page/api.js";
import { announce, fill, h, isAbort, percent, trouble } from "/page/dom.js";
import { chain, withNames } from "/page/reason.js";

const TOP = 5;

export function askBox() {
  let controller = null;
  let asked = "";
  const input = h("input", { type: "text", id: "question", maxlength: 2000, required: true, autocomplete: "off", placeholder: "Who is the spouse of Barack Obama?" });
  const output = h("div", { class: "reply", "aria-live": "polite" });
  const form = h("form", { class: "card", onsubmit: (event) => { event.preventDefault(); asked = input.value; ask(); } },
    h("label", { for: "question" }, "A question"), input,
    h("div", { class: "buttons" }, h("button", { class: "primary" }, "Ask")), output);

  async function ask() {
    controller?.abort();
    controller = new AbortController();
    fill(output, h("p", { class: "muted" }, "Looking …"));
    try {
      const found = await api.post("/api/ask", { text: asked, top: TOP, reasons: 1 }, { signal: controller.signal });
      const said = found.text ?? found.note ?? "";
      fill(output, h("p", { class: found.text ? "strong" : "muted" }, said),
        found.text && h("ul", { class: "facts-used" }, found.answers.filter((each) => each.facts.length > 0).map((each) =>
          h("li", {}, chain(withNames(each.facts[0])), " ", h("span", { class: "muted" }, percent(each.p))))));
      announce(said);
    } catch (error) {
      if (!isAbort(error)) fill(output, trouble(error, ask));
    }
  }

  return { element: form, again: () => { if (asked) ask(); } };
}
