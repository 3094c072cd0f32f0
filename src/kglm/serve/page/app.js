// The page: routing by the address, the theme, and the description of the server.

import * as api from "/page/api.js";
import { apiView } from "/page/apiview.js";
import { completeView } from "/page/complete.js";
import { count, fill, h, trouble } from "/page/dom.js";
import { exploreView } from "/page/explore.js";
import { generateView } from "/page/generate.js";
import { hideTip } from "/page/tip.js";

const VIEWS = { complete: completeView, generate: generateView, explore: exploreView, api: apiView, missing: missingView };
const opened = {};
let health = null;

/** `#/explore/12?entity=Q76` is {view: "explore", path: ["12"], query}. */
function parseAddress() {
  const [path, ...rest] = location.hash.replace(/^#\/?/, "").split("?");
  const [view = "complete", ...more] = path.split("/").filter(Boolean);
  return { view: Object.hasOwn(VIEWS, view) ? view : "missing", path: more, query: new URLSearchParams(rest.join("?")) };
}

/** Write the state of a view into the address, if that view is shown. */
function go(view, query, { push = false, path = [] } = {}) {
  if (parseAddress().view !== view) return;
  const wanted = `#/${[view, ...path].join("/")}${query.size ? `?${query}` : ""}`;
  if (wanted !== location.hash) history[push ? "pushState" : "replaceState"](null, "", wanted);
}

function missingView(root) {
  return {
    title: "Not found",
    show() {
      fill(root, h("h1", {}, "There is nothing at this address"), h("p", {}, h("code", {}, h("bdi", {}, location.hash))),
        h("p", {}, h("a", { href: "#/complete" }, "Go to the start page")));
    },
  };
}

async function route() {
  const { view, path, query } = parseAddress();
  hideTip();
  document.querySelectorAll("dialog.sheet").forEach((sheet) => sheet.close());
  for (const name of Object.keys(VIEWS)) document.getElementById(name).hidden = name !== view;
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  opened[view] ??= VIEWS[view](document.getElementById(view), health, go);
  document.title = `${opened[view].title} · kglm`;
  await opened[view].show(query, path);
}

function theme() {
  const button = document.getElementById("theme");
  const order = ["", "light", "dark"];
  const looks = { "": ["◐", "as the system"], light: ["☀", "light"], dark: ["☾", "dark"] };
  const root = document.documentElement;
  const show = () => {
    const [sign, label] = looks[root.dataset.theme ?? ""];
    button.firstElementChild.textContent = sign;
    button.setAttribute("aria-label", `Colours: ${label}`);
    button.title = `Colours: ${label}`;
  };
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(root.dataset.theme ?? "") + 1) % order.length];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    localStorage.setItem("kglm-theme", next);
    show();
  });
  show();
}

async function start() {
  theme();
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  try {
    health = await api.get("/api/health", { session: false });
  } catch (error) {
    const main = document.getElementById("complete");
    main.hidden = false;
    fill(main, trouble(error, () => location.reload()));
    window.addEventListener("kglm-back", () => location.reload());
    return;
  }
  health.examples ??= [];
  const { graph } = health;
  fill(document.getElementById("facts-of-server"),
    h("b", {}, h("bdi", {}, String(health.run ?? health.model))), ` · ${count(graph.entities, "entity", "entities")} · ${count(graph.facts, "fact")} · ${count(graph.relations, "relation")} · `,
    `${count(health.vocabulary, "word")} · ${count(health.documents, "document")} · kglm ${health.version} · `, h("a", { href: "#/api" }, "API"));
  fill(document.getElementById("sizes"), h("b", {}, String(health.model)), ` · ${count(graph.entities, "entity", "entities")} · ${count(graph.facts, "fact")}`);
  window.addEventListener("hashchange", route);
  await route();
}

start();
