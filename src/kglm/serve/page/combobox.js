// A text field with suggestions: choose with arrows and Enter or the mouse; Escape closes the suggestions.

import { fill, freshId, h, isAbort, later, name } from "/page/dom.js";

/**
 * `search(text, signal)` returns [{id, label, detail}]; `pick(option)` is called with the choice.
 * With `free`, the typed text is also a valid value.
 */
export function combobox({ label, placeholder = "", search, pick, hideLabel = false, free = false }) {
  const id = freshId("field");
  let found = [];
  let at = -1;
  let controller = null;
  const list = h("ul", { id: `${id}-list`, role: "listbox", class: "suggestions", "aria-label": "Suggestions", hidden: true });
  const input = h("input", {
    id, type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", dir: "auto", placeholder,
    "aria-expanded": "false", "aria-controls": `${id}-list`, "aria-autocomplete": "list",
  });
  const element = h("div", { class: "combobox" },
    h("label", { for: id, class: hideLabel ? "unseen" : null }, label), input, list);

  function close() {
    controller?.abort();
    look.cancel();
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(option) {
    input.value = option.label || option.id;
    close();
    pick(option);
  }

  function mark(place) {
    at = place;
    [...list.children].forEach((child, k) => child.setAttribute("aria-selected", String(k === at)));
    if (at >= 0) {
      input.setAttribute("aria-activedescendant", list.children[at].id);
      list.children[at].scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }

  function show(message) {
    fill(list, found.length
      ? found.map((option, k) => h("li", {
        id: `${id}-${k}`, role: "option", "aria-selected": "false",
        onpointerdown: (event) => event.preventDefault(), onclick: () => choose(option),
      }, name(option), option.detail && h("small", {}, h("bdi", {}, option.detail))))
      : h("li", { class: "none", role: "option", "aria-disabled": "true" }, message));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(free || !found.length ? -1 : 0);
  }

  const look = later(160, async () => {
    controller?.abort();
    const text = input.value.trim();
    if (!text) {
      found = [];
      close();
      return;
    }
    controller = new AbortController();
    try {
      found = await search(text, controller.signal);
      if (found.length || !free) show("Nothing of that name");
      else close();
    } catch (error) {
      if (isAbort(error)) return;
      found = [];
      show(error.message);
    }
  });

  input.addEventListener("input", () => {
    if (free) pick(null);
    look();
  });
  input.addEventListener("blur", () => setTimeout(close, 120));
  input.addEventListener("keydown", (event) => {
    const open = !list.hidden && found.length > 0;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (open) mark((at + (event.key === "ArrowDown" ? 1 : -1) + found.length + (at < 0 && event.key === "ArrowUp" ? 1 : 0)) % found.length);
      else look();
    } else if (event.key === "Enter" && open && at >= 0) {
      event.preventDefault();
      choose(found[at]);
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  });
  return { element, input, close };
}
