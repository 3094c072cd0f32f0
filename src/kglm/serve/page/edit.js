// Edits of facts: the dialog to make one, and the list of edits with undo.

import * as api from "/page/api.js";
import { combobox } from "/page/combobox.js";
import { announce, count, fill, freshId, h, name, trouble } from "/page/dom.js";
import { isLiteral, searchEntities } from "/page/entity.js";
import { arrow, REFLEXIVE, stored } from "/page/reason.js";

/** The edits of this session. `changed()` is called after each change. */
export function editing({ allowed, persist, changed }) {
  let edits = [];
  const element = h("section", { class: "card edits", "aria-label": "Your edits" });

  async function load() {
    if (api.hasSession()) edits = (await api.get("/api/edits")).edits;
    show();
  }

  function update(now, message) {
    edits = now;
    announce(message);
    show();
    changed();
  }

  async function run(button, action) {
    button.disabled = true;
    element.querySelector(".trouble")?.remove();
    try {
      await action();
    } catch (error) {
      element.append(trouble(error));
    } finally {
      button.disabled = false;
    }
  }

  const undo = (event) => run(event.currentTarget, async () => {
    const answer = await api.remove("/api/edits/last");
    update(answer.edits, `Undone: ${answer.undone.text}`);
    (element.querySelector("button") ?? document.getElementById("main")).focus();
  });

  const undoAll = (event) => run(event.currentTarget, async () => {
    let left = edits;
    try {
      while (left.length) ({ edits: left } = await api.remove("/api/edits/last"));
    } finally {
      update(left, left.length ? "Not all edits are undone." : "All edits are undone.");
    }
    document.getElementById("main").focus();
  });

  const save = (event) => run(event.currentTarget, async () => {
    await api.post("/api/edits/persist", {});
    update([], "Your edits are saved in the graph.");
    fill(element, h("p", { tabindex: "-1" }, "Your edits are saved in the graph, for everyone."));
    element.hidden = false;
    element.firstElementChild.focus();
  });

  function show() {
    element.hidden = !edits.length;
    fill(element, edits.length > 0 && [
      h("div", { class: "edit-head" }, h("h2", {}, "Your edits"), h("span", { class: "muted" }, "Only you see them, in this tab.")),
      h("ol", { class: "edit-list" }, edits.map((edit) => h("li", {},
        h("span", { class: `action a-${edit.action}` }, { set: "changed", add: "added", remove: "removed" }[edit.action] ?? edit.action), " ",
        name(edit.head), " ", arrow(edit.relation), " ",
        edit.action !== "add" && edit.removed.length > 0 && [h("s", {}, edit.removed.map((tail, k) => [k ? ", " : "", name(tail)])), " "],
        edit.action !== "remove" && h("b", {}, name(edit.tail))))),
      h("div", { class: "buttons" },
        h("button", { type: "button", class: "primary", onclick: undo }, "Undo the last"),
        edits.length > 1 && h("button", { type: "button", onclick: undoAll }, "Undo all"),
        persist && h("button", { type: "button", onclick: save }, "Save to the graph")),
    ]);
  }

  /** Edit a fact {parent, relation, entity}, given from either end; without an entity, add one. */
  function dialog(shown) {
    const fact = shown.entity ? stored(shown) : shown;
    const title = freshId("title");
    const close = h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => box.close() }, "✕");
    const box = h("dialog", { class: "dialog", "aria-labelledby": title });
    const before = document.activeElement;
    box.addEventListener("close", () => {
      box.remove();
      const next = box.returnValue === "edited" ? element.querySelector("button") : before;
      if (next?.isConnected) next.focus({ preventScroll: true });
    });
    box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
    const head = h("div", { class: "sheet-head" }, h("h2", { id: title }, !fact.entity ? "Add this fact" : allowed ? "Edit this fact" : "This fact"), close);
    const line = h("p", { class: "the-fact" }, name(fact.parent), arrow(fact.relation), h("b", {}, fact.entity ? name(fact.entity) : "…"));
    if (fact.relation.id === REFLEXIVE) fill(box, head, line, h("p", {}, "This stands for a repeated mention of the entity; it is not a fact that can be edited."));
    else if (!allowed) fill(box, head, line, h("p", {}, "Editing is off on this server. Start it with ", h("code", {}, "kglm serve RUN --allow-edit"), " to edit facts and see the next words follow."));
    else fill(box, head, line, form(fact, box));
    document.body.append(box);
    box.showModal();
  }

  function form(fact, box) {
    let picked = null;
    const field = combobox({
      label: "New value", placeholder: fact.entity && isLiteral(fact.entity.id) ? "a date or quantity, like 21 March 2013" : "search entities, or type a date, a quantity",
      search: searchEntities, pick: (entity) => { picked = entity; }, free: true,
    });
    field.input.setAttribute("aria-required", "true");
    const radio = (value, text, checked) => h("label", { class: "radio" }, h("input", { type: "radio", name: "action", value, checked }), text);
    const wrong = h("div", {});
    const others = h("p", { class: "muted", hidden: true });
    showOthers(fact, others);
    const send = async (action, tail) => {
      wrong.replaceChildren();
      buttons.forEach((button) => { button.disabled = true; });
      try {
        await api.newSession();
        const answer = await api.post("/api/edits", { action, head: fact.parent.id, relation: fact.relation.id, tail });
        box.close("edited");
        update(answer.edits, `Edited: ${answer.edit.text}`);
      } catch (error) {
        fill(wrong, trouble(error));
      } finally {
        buttons.forEach((button) => { button.disabled = false; });
      }
    };
    const save = h("button", { class: "primary" }, fact.entity ? "Change the fact" : "Add the fact");
    const drop = fact.entity && h("button", { type: "button", class: "danger", onclick: () => send("remove", fact.entity.id) }, "Remove it");
    const buttons = [save, drop].filter(Boolean);
    const element = h("form", {
      onsubmit: (event) => {
        event.preventDefault();
        const text = field.input.value.trim();
        if (!text) field.input.focus();
        else send(new FormData(element).get("action") ?? "add", picked?.id ?? text);
      },
    },
    field.element,
    fact.entity && h("fieldset", {}, h("legend", { class: "unseen" }, "How"),
      radio("set", "replace the present values", true), radio("add", "add to the present values", false)),
    others,
    wrong,
    h("div", { class: "buttons" }, buttons),
    h("p", { class: "muted" }, "The answers change at once; nothing is trained. The stored graph stays as it is."));
    setTimeout(() => field.input.focus());
    return element;
  }

  /** List the other values of the relation, which replacing removes too. */
  async function showOthers(fact, element) {
    try {
      const { facts } = await api.get(`/api/entities/${encodeURIComponent(fact.parent.id)}?limit=100`);
      const tails = facts.filter((each) => !each.reverse && each.relation.id === fact.relation.id && each.tail.id !== fact.entity?.id);
      if (!tails.length) return;
      fill(element, "Other present values: ", tails.slice(0, 8).map(({ tail }, k) => [k ? ", " : "", name(tail)]), tails.length > 8 && ` and ${count(tails.length - 8, "other")}`, ".");
      element.hidden = false;
    } catch {
      // optional information
    }
  }

  api.onSessionLost(() => {
    if (!edits.length) return;
    edits = [];
    show();
    announce("Your session has expired, and your edits with it.");
  });
  return { element, load, dialog, any: () => edits.length > 0 };
}
