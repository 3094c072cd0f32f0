// The server's answers: with its token and session, patient when it is busy, plain about what went wrong.

import { fill, h } from "/page/dom.js";

const TRIES = 7;
const kept = { token: "kglm-token", session: "kglm-session" };
let asking = null; // one question for the token, however many requests wait for it
let waiting = 0;
const lost = new Set();

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Called when the session is not known any more. */
export const onSessionLost = (action) => lost.add(action);
export const hasSession = () => sessionStorage.getItem(kept.session) !== null;

export async function newSession() {
  if (!hasSession()) {
    const { session } = await ask("POST", "/api/sessions", { body: {}, session: false });
    sessionStorage.setItem(kept.session, session);
  }
}

export const get = (path, options) => ask("GET", path, options);
export const post = (path, body, options) => ask("POST", path, { ...options, body });
export const remove = (path, options) => ask("DELETE", path, options);

async function ask(method, path, options = {}) {
  const response = await answer(method, path, options);
  return response.status === 204 ? null : response.json();
}

/** Lines of JSON as they come. */
export async function* lines(path, body, signal) {
  const response = await answer("POST", path, { body, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    const { done, value } = await reader.read();
    left += value ?? "";
    const whole = left.split("\n");
    left = whole.pop();
    for (const line of whole) if (line.trim()) yield JSON.parse(line);
    if (done) {
      if (left.trim()) yield JSON.parse(left);
      return;
    }
  }
}

async function answer(method, path, { body, signal, session = true } = {}) {
  for (let attempt = 0; ; attempt += 1) {
    const headers = { Accept: "application/json" };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const token = sessionStorage.getItem(kept.token);
    if (token !== null) headers.Authorization = `Bearer ${token}`;
    const mine = sessionStorage.getItem(kept.session);
    if (session && mine !== null) headers["X-Kglm-Session"] = mine;
    let response;
    try {
      response = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      watch();
      throw new ApiError(0, "gone", "The server does not answer. This page goes on as soon as it is back.");
    }
    if (response.ok) return response;
    const problem = await problemOf(response);
    if (response.status === 401) {
      await tokenFromPerson(token !== null && token === sessionStorage.getItem(kept.token));
    } else if (problem.code === "no_session" && session && mine !== null) {
      sessionStorage.removeItem(kept.session);
      lost.forEach((action) => action());
      if (path.startsWith("/api/edits") && method === "POST") await newSession();
    } else if ((response.status === 429 || problem.code === "busy") && attempt < TRIES) {
      await pause(response, attempt, signal);
    } else {
      throw problem;
    }
  }
}

async function problemOf(response) {
  let said = {};
  try {
    said = (await response.json()).error ?? {};
  } catch {
    // what is not JSON says nothing more than its status
  }
  return new ApiError(response.status, said.code ?? "", said.message ?? `The server answers with status ${response.status}.`);
}

function banner(text, kind = "") {
  const element = document.getElementById("banner");
  element.className = `banner ${kind}`;
  element.hidden = !text;
  fill(element, text || "");
}

async function pause(response, attempt, signal) {
  const told = Number(response.headers.get("Retry-After"));
  const seconds = told > 0 ? Math.min(told, 10) : Math.min(8, 0.4 * 2 ** attempt);
  waiting += 1;
  banner("The server is busy, trying again …");
  try {
    await new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, seconds * 1000 * (0.8 + 0.4 * Math.random()));
      signal?.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(new DOMException("stopped", "AbortError"));
      }, { once: true });
    });
  } finally {
    waiting -= 1;
    if (!waiting) banner("");
  }
}

let watching = false;
/** Until the server is back; then everyone who wants to know is told. */
async function watch() {
  if (watching) return;
  watching = true;
  banner("The server does not answer. Waiting for it to come back …", "bad");
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 2000));
    try {
      if ((await fetch("/api/health")).ok) break;
    } catch {
      // still gone
    }
  }
  watching = false;
  banner("");
  window.dispatchEvent(new Event("kglm-back"));
}

/** Ask for the token until there is another one. */
function tokenFromPerson(wasWrong) {
  asking ??= new Promise((resolve) => {
    const input = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
    const dialog = h("dialog", { class: "dialog", "aria-labelledby": "token-title" },
      h("form", { method: "dialog" },
        h("h2", { id: "token-title" }, "This server asks for its token"),
        h("p", {}, wasWrong ? "That was not it. " : "", "It was given to ", h("code", {}, "kglm serve"), " by ", h("code", {}, "--token"), " or ", h("code", {}, "KGLM_TOKEN"), ". It is kept until this tab is closed."),
        h("label", { for: "token" }, "Token"), input,
        h("div", { class: "buttons" }, h("button", { class: "primary" }, "Go on"))));
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(kept.token, input.value.trim().replace(/[^\x21-\x7e]/g, ""));
      dialog.remove();
      asking = null;
      resolve();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}
