// Requests to the server, with token and session. Retries when the server is busy; waits for it when it is gone.

import { fill, h } from "/page/dom.js";

const TRIES = 7;
const KEYS = { token: "kglm-token", session: "kglm-session" };
let tokenDialog = null; // shared by all requests that wait for the token
let waiting = 0;
const sessionLostActions = new Set();

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Call `action` when the session has expired. */
export const onSessionLost = (action) => sessionLostActions.add(action);
export const hasSession = () => sessionStorage.getItem(KEYS.session) !== null;

export async function newSession() {
  if (!hasSession()) {
    const { session } = await request("POST", "/api/sessions", { body: {}, session: false });
    sessionStorage.setItem(KEYS.session, session);
  }
}

export const get = (path, options) => request("GET", path, options);
export const post = (path, body, options) => request("POST", path, { ...options, body });
export const remove = (path, options) => request("DELETE", path, options);

async function request(method, path, options = {}) {
  const response = await send(method, path, options);
  return response.status === 204 ? null : response.json();
}

/** Yield the lines of a JSON stream as they arrive. */
export async function* lines(path, body, signal) {
  const response = await send("POST", path, { body, signal });
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

async function send(method, path, { body, signal, session = true } = {}) {
  for (let attempt = 0; ; attempt += 1) {
    const headers = { Accept: "application/json" };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const token = sessionStorage.getItem(KEYS.token);
    if (token !== null) headers.Authorization = `Bearer ${token}`;
    const name = sessionStorage.getItem(KEYS.session);
    if (session && name !== null) headers["X-Kglm-Session"] = name;
    let response;
    try {
      response = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      waitForServer();
      throw new ApiError(0, "gone", "The server does not answer. This page continues as soon as it is back.");
    }
    if (response.ok) return response;
    const problem = await problemOf(response);
    if (response.status === 401) {
      await promptForToken(token !== null && token === sessionStorage.getItem(KEYS.token));
    } else if (problem.code === "no_session" && session && name !== null) {
      sessionStorage.removeItem(KEYS.session);
      sessionLostActions.forEach((action) => action());
      if (path.startsWith("/api/edits") && method === "POST") await newSession();
    } else if ((response.status === 429 || problem.code === "busy") && attempt < TRIES) {
      await pause(response, attempt, signal);
    } else {
      throw problem;
    }
  }
}

async function problemOf(response) {
  let error = {};
  try {
    error = (await response.json()).error ?? {};
  } catch {
    // the body is not JSON: only the status is known
  }
  return new ApiError(response.status, error.code ?? "", error.message ?? `The server answers with status ${response.status}.`);
}

function banner(text, kind = "") {
  const element = document.getElementById("banner");
  element.className = `banner ${kind}`;
  element.hidden = !text;
  fill(element, text || "");
}

async function pause(response, attempt, signal) {
  const retryAfter = Number(response.headers.get("Retry-After"));
  const seconds = retryAfter > 0 ? Math.min(retryAfter, 10) : Math.min(8, 0.4 * 2 ** attempt);
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

let waitingForServer = false;
/** Poll until the server is back, then dispatch "kglm-back". */
async function waitForServer() {
  if (waitingForServer) return;
  waitingForServer = true;
  banner("The server does not answer. Waiting for it to come back …", "bad");
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 2000));
    try {
      if ((await fetch("/api/health")).ok) break;
    } catch {
      // still gone
    }
  }
  waitingForServer = false;
  banner("");
  window.dispatchEvent(new Event("kglm-back"));
}

/** Show a dialog for the token; resolves when it is closed. */
function promptForToken(wasWrong) {
  tokenDialog ??= new Promise((resolve) => {
    const input = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
    const dialog = h("dialog", { class: "dialog", "aria-labelledby": "token-title" },
      h("form", { method: "dialog" },
        h("h2", { id: "token-title" }, "This server needs a token"),
        h("p", {}, wasWrong ? "That token is wrong. " : "", "It was set for ", h("code", {}, "kglm serve"), " with ", h("code", {}, "--token"), " or ", h("code", {}, "KGLM_TOKEN"), ". This tab stores it until it is closed."),
        h("label", { for: "token" }, "Token"), input,
        h("div", { class: "buttons" }, h("button", { class: "primary" }, "Continue"))));
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(KEYS.token, input.value.trim().replace(/[^\x21-\x7e]/g, ""));
      dialog.remove();
      tokenDialog = null;
      resolve();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return tokenDialog;
}
