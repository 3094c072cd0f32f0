// Build elements. All text from graphs, documents and users becomes text nodes and attributes here, never markup.

const SVG = "http://www.w3.org/2000/svg";
const WORDS = { "@@END@@": "end of sentence", "@@UNKNOWN@@": "unknown word", "@@START@@": "start", "@@PADDING@@": "padding" };
const TO_THE_LEFT = /^(?:[.,;:!?%)\]}’”»…°—]|\.{3,4}|n['’]t|['’](?:s|re|ve|ll|d|m)?)$/;
const TO_THE_RIGHT = /^(?:[([{“‘«$£€¥#—]|US\$)$/;

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "vars") for (const [key, v] of Object.entries(value)) element.style.setProperty(`--${key}`, String(v));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (name, attributes = {}, ...children) => build(document.createElement(name), attributes, children);
export const s = (name, attributes = {}, ...children) => build(document.createElementNS(SVG, name), attributes, children);

export function fill(element, ...children) {
  element.replaceChildren();
  return build(element, {}, children);
}

/** A label in its own writing direction, e.g. Arabic within English. */
export const name = (thing) => h("bdi", {}, thing.label || thing.id);

/** A word of the model; markers get a readable name. */
export function word(text) {
  return text in WORDS ? h("em", { class: "mark" }, WORDS[text]) : h("bdi", {}, text);
}
export const wordText = (text) => WORDS[text] ?? text;

export function percent(p) {
  const value = 100 * p;
  if (value >= 99.95) return "100 %";
  if (value >= 10) return `${value.toFixed(0)} %`;
  if (value >= 0.1) return `${value.toFixed(1)} %`;
  return value > 0 ? "< 0.1 %" : "0 %";
}

export const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** Announce a change to screen readers. */
let announcing = 0;
export function announce(text) {
  clearTimeout(announcing);
  announcing = setTimeout(() => { document.getElementById("live").textContent = text; }, 150);
}

/** Detokenise: returns a function from the next word to the blank before it, or "". */
export function blanks() {
  let before = "";
  let glued = true; // no blank between the last word and the next
  let quoted = false;
  return (word) => {
    let left = TO_THE_LEFT.test(word);
    let right = TO_THE_RIGHT.test(word);
    if (word === '"') {
      left = quoted;
      quoted = !quoted;
      right = quoted;
    } else if (word === "-" || word === "/") left = right = /[\p{L}\p{N}]$/u.test(before);
    else if (glued && (before === "-" || before === "/") && !/^[\p{L}\p{N}]/u.test(word)) glued = false;
    const blank = glued || left ? "" : " ";
    before = word;
    glued = right;
    return blank;
  };
}

export function running(words) {
  const blank = blanks();
  return words.map((word) => blank(word) + word).join("");
}

/** A button within running text: unlike a real button, it can break over lines. */
export function inlineButton(attributes, ...children) {
  const element = h("span", { role: "button", "data-stop": true, ...attributes }, ...children);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    element.click();
  });
  return element;
}

/** Arrow keys move between `items()`; Tab stops at one of them. */
export function arrows(container, items, { horizontal = false } = {}) {
  const back = horizontal ? ["ArrowLeft", "ArrowUp"] : ["ArrowUp"];
  const on = horizontal ? ["ArrowRight", "ArrowDown"] : ["ArrowDown"];
  container.addEventListener("keydown", (event) => {
    const all = items();
    const at = all.indexOf(event.target.closest("[data-stop]"));
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    let to = at;
    if (back.includes(event.key)) to = at - 1;
    else if (on.includes(event.key)) to = at + 1;
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = all.length - 1;
    else return;
    event.preventDefault();
    moveStop(all, all[Math.max(0, Math.min(all.length - 1, to))], true);
  });
}

/** Make one of `all` the stop for Tab. */
export function moveStop(all, one, focus = false) {
  for (const each of all) each.setAttribute("tabindex", each === one ? "0" : "-1");
  if (focus) one.focus();
}

let numbers = 0;
export const freshId = (kind) => `${kind}-${(numbers += 1)}`;

export function later(milliseconds, action) {
  let timer = 0;
  const wait = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), milliseconds);
  };
  wait.cancel = () => clearTimeout(timer);
  return wait;
}

/** An error message, with a button to try again. */
export function trouble(error, again) {
  const message = error.message || "Something went wrong.";
  return h("div", { class: "trouble", role: "alert" },
    h("p", {}, message[0].toLocaleUpperCase("en") + message.slice(1)),
    again && h("button", { type: "button", class: "small", onclick: again }, "Try again"));
}

export const isAbort = (error) => error?.name === "AbortError";
