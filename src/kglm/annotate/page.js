// Cards of a linked document: position, outlines of parents, closing with Escape, and filters.
// Listeners are on the document, so texts added to the page later work too.
(() => {
  "use strict";
  const GAP = 6, EDGE = 8;
  let open = null;

  const mentionOf = (node) => (node instanceof Element ? node.closest(".linked .m") : null);

  // Put the card below the line under the pointer, or above it if there is no room below; always within the window.
  const place = (mention, x, y) => {
    const [mark, card] = [mention.firstElementChild, mention.lastElementChild];
    if (!card.offsetParent) return;
    const origin = card.offsetParent.getBoundingClientRect();
    const lines = [...mark.getClientRects()];
    const line = lines.find((box) => x >= box.left && x <= box.right && y >= box.top && y <= box.bottom) ?? lines[0];
    if (!line) return;
    const { clientWidth, clientHeight } = document.documentElement;
    const { offsetWidth: width, offsetHeight: height } = card;
    const above = line.bottom + GAP + height > clientHeight && line.top - GAP - height > 0;
    card.classList.toggle("above", above);
    card.style.left = `${Math.max(EDGE, Math.min(line.left, clientWidth - width - EDGE)) - origin.left}px`;
    card.style.top = `${(above ? line.top - GAP - height : line.bottom + GAP) - origin.top}px`;
  };

  const show = (mention, x = -1, y = -1) => {
    if (mention === open) return;
    open?.classList.remove("shut");
    for (const parent of document.querySelectorAll(".linked .m.parent")) parent.classList.remove("parent");
    open = mention;
    if (!mention || mention.classList.contains("off")) return;
    for (const id of (mention.dataset.parents ?? "").split(" ")) document.getElementById(id)?.classList.add("parent");
    place(mention, x, y);
  };

  const focused = () => mentionOf(document.activeElement);
  document.addEventListener("mouseover", (event) => show(mentionOf(event.target) ?? focused(), event.clientX, event.clientY));
  document.addEventListener("focusin", (event) => show(mentionOf(event.target)));
  document.addEventListener("focusout", () => show(document.querySelector(".linked .m:hover")));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") open?.classList.add("shut");
  });
  document.addEventListener("click", (event) => {
    const mention = mentionOf(event.target);
    if (!mention) focused() && document.activeElement.blur();
    else if (event.target === mention.firstElementChild) event.target.focus();
  });

  const filter = () => {
    const off = [...document.querySelectorAll(".linked-page .filters [value]:not(:checked)")].map((box) => box.value);
    const mentions = document.querySelectorAll(".linked .m");
    let shown = 0;
    for (const mention of mentions) {
      const hidden = off.includes(mention.dataset.kind) || off.includes(mention.dataset.source);
      mention.classList.toggle("off", hidden);
      if (hidden) mention.firstElementChild.removeAttribute("tabindex");
      else mention.firstElementChild.tabIndex = 0;
      shown += hidden ? 0 : 1;
    }
    const output = document.querySelector(".linked-page .filters output");
    if (output) output.textContent = off.length ? `${shown} of ${mentions.length} shown` : "";
  };
  document.addEventListener("change", (event) => {
    if (event.target.closest(".linked-page .filters")) filter();
  });
  window.addEventListener("pageshow", filter);
})();
