// The third view: search annotated documents by words, source, relation and entity. The address holds the state.

import * as api from "/page/api.js";
import { combobox } from "/page/combobox.js";
import { announce, count, fill, h, isAbort, later, trouble } from "/page/dom.js";
import { documentView, SOURCES } from "/page/docview.js";
import { searchEntities, searchRelations } from "/page/entity.js";

const PAGE = 20;
const FILTERS = ["q", "source", "relation", "entity"];

export function exploreView(root, health, go) {
  let query = new URLSearchParams(); // filters and offset
  let number = null; // number of the document in the address
  let opened = null; // start of its open mention
  let listed = null; // the list that is shown, with its query
  let listing = null;
  let reading = null;
  let turns = 0;
  const labels = new Map(); // labels of the ids in the filters

  const words = h("input", { type: "search", id: "e-q", dir: "auto", placeholder: "Words in title or text", autocomplete: "off" });
  const source = h("select", { id: "e-source" }, h("option", { value: "" }, "any source"),
    Object.entries(SOURCES).map(([key, text]) => h("option", { value: key }, `${key}: ${text}`)));
  const relation = combobox({ label: "Relation", placeholder: "any relation", search: searchRelations, pick: (found) => pick("relation", found) });
  const entity = combobox({ label: "Entity", placeholder: "any entity", search: searchEntities, pick: (found) => pick("entity", found) });
  const chosen = h("div", { class: "chips", role: "group", "aria-label": "Filters in use" });
  const list = h("div", { class: "list" });
  const pane = h("article", { class: "card document", "aria-label": "Document" });
  const own = h("details", { class: "card own" }, h("summary", {}, "Annotate a text of your own"), ownText());
  const side = h("div", { class: "side" },
    h("form", { class: "card filters", role: "search", onsubmit: (event) => { event.preventDefault(); change({ q: words.value.trim() }); } },
      h("div", {}, h("label", { for: "e-q" }, "Search"), words),
      h("div", {}, h("label", { for: "e-source" }, "Source"), source),
      relation.element, entity.element, chosen),
    h("section", { class: "card", "aria-label": "Documents" }, list), own);
  root.append(h("h1", {}, "Annotated documents"), h("p", { class: "lead" }, "The entities that are mentioned, the source of each link, and the facts that lead to it."),
    h("div", { class: "explore" }, side, pane));

  source.addEventListener("change", () => change({ source: source.value }));
  words.addEventListener("input", later(350, () => change({ q: words.value.trim() }, { push: false })));

  function pick(key, found) {
    if (!found) return;
    labels.set(found.id, found.label);
    ({ relation, entity })[key].input.value = "";
    change({ [key]: found.id });
  }

  /** Change a filter and show the first page of the new list. */
  function change(values, { push = true } = {}) {
    const wanted = new URLSearchParams(filters());
    for (const [key, value] of Object.entries(values)) {
      if (value) wanted.set(key, value);
      else wanted.delete(key);
    }
    if (wanted.toString() === filters().toString()) return;
    go("explore", wanted, { push });
    show(wanted, []);
  }

  const filters = () => new URLSearchParams([...query].filter(([key, value]) => FILTERS.includes(key) && value));
  const address = (document) => `#/explore/${document}?${query}`.replace(/\?$/, "");

  async function show(wanted, path) {
    query = new URLSearchParams([...wanted].filter(([key, value]) => [...FILTERS, "offset"].includes(key) && value));
    number = path.length ? Number(/^\d+$/.test(path[0]) ? path[0] : NaN) : null;
    opened = wanted.has("mention") ? Number(wanted.get("mention")) : null;
    root.classList.toggle("reading", number !== null);
    if (document.activeElement !== words) words.value = query.get("q") ?? "";
    source.value = query.get("source") ?? "";
    if (!health.documents) {
      fill(list, h("p", {}, "This server has no documents. Start it with ", h("code", {}, "kglm serve RUN --documents FILE"), "."));
      pane.hidden = true;
      return;
    }
    showChosen();
    const mine = (turns += 1);
    await showList();
    if (mine !== turns) return; // a later call shows something else
    if (number === null && listed?.documents.length && matchMedia("(min-width: 900px)").matches) await read(listed.documents[0].number);
    else if (number !== null && !(number >= 1 && number <= health.documents)) showMissing(path[0]);
    else if (number !== null) await read(number);
    else {
      reading?.abort();
      fill(pane);
      pane.hidden = true;
    }
  }

  function showMissing(text) {
    reading?.abort();
    pane.hidden = false;
    const shown = Number.isNaN(number) ? text : number.toLocaleString("en");
    fill(pane, trouble({ message: `There is no document ${shown}; there are ${health.documents.toLocaleString("en")}.` }),
      h("p", {}, h("a", { href: "#/explore" }, "All documents")));
  }

  /** Write the open mention and its document into the address. */
  function choose(wanted, start) {
    if (number === null && start === null) return;
    [number, opened] = [wanted, start];
    const named = new URLSearchParams(query);
    if (start !== null) named.set("mention", start);
    go("explore", named, { path: [wanted] });
  }

  async function showChosen() {
    const draw = () => fill(chosen, ["relation", "entity"].filter((key) => query.get(key)).map((key) => h("button", {
      type: "button", class: "chip on", "aria-label": `Remove the filter ${key} ${labels.get(query.get(key)) ?? query.get(key)}`, onclick: () => change({ [key]: "" }),
    }, `${key}: `, h("bdi", {}, labels.get(query.get(key)) ?? query.get(key)), " ✕")));
    draw();
    for (const [key, find] of [["relation", searchRelations], ["entity", searchEntities]]) {
      const id = query.get(key);
      if (!id || labels.has(id)) continue;
      try {
        const found = (await find(id)).find((each) => each.id === id);
        if (found) labels.set(id, found.label);
        draw();
      } catch {
        // the id is shown instead
      }
    }
  }

  async function showList() {
    const wanted = query.toString();
    if (listed?.key === wanted) { markCurrent(); return; }
    listing?.abort();
    listing = new AbortController();
    list.setAttribute("aria-busy", "true");
    try {
      const offset = Math.max(0, Number(query.get("offset")) || 0);
      const params = new URLSearchParams({ ...Object.fromEntries(filters()), offset, limit: PAGE });
      const { total, documents } = await api.get(`/api/documents?${params}`, { signal: listing.signal });
      listed = { key: wanted, documents };
      fill(list,
        h("p", { class: "muted", id: "e-count" }, total ? `${count(total, "document")}${total > PAGE ? `, ${offset + 1}–${Math.min(total, offset + PAGE)}` : ""}` : "No document matches."),
        h("ol", { class: "documents" }, documents.map((found) => h("li", {}, h("a", { href: address(found.number), "data-number": found.number },
          h("b", {}, h("bdi", {}, found.title)), h("span", { class: "excerpt", dir: "auto" }, found.excerpt),
          h("small", {}, `${count(found.words, "word")}, ${count(found.mentions, "mention")}`))))),
        total > PAGE && h("div", { class: "buttons" }, turn(offset - PAGE, offset > 0, "← Previous"), turn(offset + PAGE, offset + PAGE < total, "Next →")));
      announce(count(total, "document"));
      markCurrent();
    } catch (error) {
      if (!isAbort(error)) fill(list, trouble(error, () => { listed = null; showList(); }));
    }
    list.removeAttribute("aria-busy");
  }

  function turn(offset, there, text) {
    const to = filters();
    if (offset > 0) to.set("offset", offset);
    return there ? h("a", { class: "button small", href: `#/explore?${to}`, "aria-label": `${text.replace(/[←→]/g, "").trim()} page of the list` }, text) : h("span", { class: "button small off", "aria-hidden": "true" }, text);
  }

  function markCurrent(current = number) {
    for (const link of list.querySelectorAll("[data-number]")) {
      if (Number(link.dataset.number) === current) {
        link.setAttribute("aria-current", "true");
        const box = link.closest("ol");
        if (box.scrollHeight > box.clientHeight) box.scrollTop = link.offsetTop - box.offsetTop - box.clientHeight / 3;
      }
      else link.removeAttribute("aria-current");
    }
  }

  async function read(wanted) {
    reading?.abort();
    reading = new AbortController();
    pane.hidden = false;
    pane.setAttribute("aria-busy", "true");
    try {
      const view = await api.get(`/api/documents/${wanted}?${filters()}`, { signal: reading.signal });
      const step = (to, text, hint) => (to === null || to === undefined
        ? h("span", { class: "button small off", "aria-hidden": "true" }, text)
        : h("a", { class: "button small", href: address(to), "aria-label": hint }, text));
      const shown = documentView(pane, view, {
        query, chosen: opened, choose: (start) => choose(wanted, start),
        head: h("nav", { class: "doc-nav", "aria-label": "Documents" },
          h("a", { class: "button small to-list", href: `#/explore?${query}` }, "List"),
          step(view.previous, "← Previous", "Previous document"), step(view.next, "Next →", "Next document")),
      });
      markCurrent(wanted);
      document.title = `${view.title} · kglm`;
      if (number !== null && root.classList.contains("reading")) shown.first()?.scrollIntoView({ block: "nearest" });
    } catch (error) {
      if (!isAbort(error)) fill(pane, trouble(error, () => read(wanted)));
    }
    pane.removeAttribute("aria-busy");
  }

  function ownText() {
    const area = h("textarea", { id: "e-own", rows: 4, dir: "auto", required: true });
    const wrong = h("div", {});
    const send = h("button", { class: "primary" }, "Annotate");
    return h("form", {
      onsubmit: async (event) => {
        event.preventDefault();
        send.disabled = true;
        fill(wrong);
        try {
          const { document: view } = await api.post("/api/annotate", { text: area.value });
          reading?.abort();
          pane.hidden = false;
          documentView(pane, view, { query: new URLSearchParams(), head: null });
          pane.scrollIntoView({ block: "start" });
        } catch (error) {
          fill(wrong, trouble(error));
        } finally {
          send.disabled = false;
        }
      },
    }, h("label", { for: "e-own" }, "Text"), area, wrong, h("div", { class: "buttons" }, send));
  }

  window.addEventListener("kglm-back", () => { if (!root.hidden) { listed = null; show(query, number === null ? [] : [String(number)]); } });
  return { title: "Explore", show };
}
