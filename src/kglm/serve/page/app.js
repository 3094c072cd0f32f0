// The frame: which view is shown, by the address; the theme; what the server says about itself.

import * as api from "/page/api.js";
import { apiView } from "/page/apiview.js";
import { completeView } from "/page/complete.js";
import { count, fill, h, trouble } from "/page/dom.js";
import { exploreView } from "/page/explore.js";
import { generateView } from "/page/generate.js";
import { hideTip } from "/page/tip.js";

const MAKERS = { complete: completeView, generate: generateView, explore: exploreView, api: apiView, missing: missingView };
const views = {};
let health = null;

/** `#/explore/12?entity=Q76` is {view: "explore", path: ["12"], query}. */
function where() {
  const [path, ...rest] = location.hash.replace(/^#\/?/, "").split("?");
  const [view = "complete", ...more] = path.split("/").filter(Boolean);
  return { view: Object.hasOwn(MAKERS, view) ? view : "missing", path: more, query: new URLSearchParams(rest.join("?")) };
}

/** The address follows what is done in a view, if it is the one that is shown. */
function go(view, query, { push = false, path = [] } = {}) {
  if (where().view !== view) return;
  const wanted = `#/${[view, ...path].join("/")}${query.size ? `?${query}` : ""}`;
  if (wanted !== location.hash) history[push ? "pushState" : "replaceState"](null, "", wanted);
}

function missingView(root) {
  return {
    title: "Not found",
    show() {
      fill(root, h("h1", {}, "There is nothing at this address"), h("p", {}, h("code", {}, h("bdi", {}, location.hash))),
        h("p", {}, h("a", { href: "#/complete" }, "Go to the start")));
    },
  };
}

async function route() {
  const { view, path, query } = where();
  hideTip();
  document.querySelectorAll("dialog.sheet").forEach((sheet) => sheet.close());
  for (const name of Object.keys(MAKERS)) document.getElementById(name).hidden = name !== view;
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  views[view] ??= MAKERS[view](document.getElementById(view), health, go);
  document.title = `${views[view].title} · kglm`;
  await views[view].show(query, path);
}

function theme() {
  const button = document.getElementById("theme");
  const order = ["", "light", "dark"];
  const look = { "": ["◐", "as the system"], light: ["☀", "light"], dark: ["☾", "dark"] };
  const root = document.documentElement;
  const show = () => {
    const [sign, said] = look[root.dataset.theme ?? ""];
    button.firstElementChild.textContent = sign;
    button.setAttribute("aria-label", `Colours: ${said}`);
    button.title = `Colours: ${said}`;
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
