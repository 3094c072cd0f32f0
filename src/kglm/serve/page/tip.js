// Tooltips: shown when an element is hovered, focused or touched.

import { fill, h } from "/page/dom.js";

const tip = h("div", { id: "tip", class: "tip", role: "tooltip", hidden: true });
let owner = null;

function place() {
  const box = owner.getClientRects()[0] ?? owner.getBoundingClientRect();
  const margin = 8;
  const left = Math.max(margin, Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - margin));
  const above = box.top - tip.offsetHeight - margin;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > margin ? above : box.bottom + margin}px`;
}

function show(element, content) {
  owner = element;
  fill(tip, content());
  if (!tip.isConnected) document.body.append(tip);
  tip.hidden = false;
  element.setAttribute("aria-describedby", "tip");
  place();
}

export function hideTip() {
  owner?.removeAttribute("aria-describedby");
  owner = null;
  tip.hidden = true;
}

/** Give an element a tooltip; `content()` builds it. */
export function withTip(element, content) {
  element.addEventListener("pointerenter", () => show(element, content));
  element.addEventListener("focus", () => show(element, content));
  element.addEventListener("click", () => show(element, content));
  element.addEventListener("pointerleave", () => { if (document.activeElement !== element) hideTip(); });
  element.addEventListener("blur", hideTip);
  return element;
}

document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
document.addEventListener("scroll", () => { if (owner) hideTip(); }, { passive: true, capture: true });
