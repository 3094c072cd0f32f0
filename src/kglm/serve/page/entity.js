// Search for entities and relations, and the card of an entity with its facts.

import * as api from "/page/api.js";
import { count, fill, h, isAbort, name, trouble } from "/page/dom.js";

const PAGE = 100;

export async function searchEntities(text, signal) {
  const { entities } = await api.get(`/api/entities?${new URLSearchParams({ q: text, limit: 8 })}`, { signal });
  return entities.map((entity) => ({
    ...entity,
    detail: [entity.id, entity.aliases.filter((alias) => alias !== entity.label).slice(0, 2).join(", "), count(entity.facts, "fact")]
      .filter(Boolean).join(" · "),
  }));
}

export async function searchRelations(text, signal) {
  const { relations } = await api.get(`/api/relations?${new URLSearchParams({ q: text, limit: 8 })}`, { signal });
  return relations.map((relation) => ({ ...relation, detail: relation.id }));
}

/** True for the id of a date or a quantity. */
export const isLiteral = (id) => /^[TV]::/.test(id);

/** A link to the page on Wikidata, for Wikidata ids. */
export function wikidata(id) {
  return /^Q[1-9]\d*$/.test(id)
    && h("a", { href: `https://www.wikidata.org/wiki/${id}`, target: "_blank", rel: "noreferrer noopener" }, `${id} on Wikidata ↗`);
}

/** Open the card of an entity; its links open in the same card. */
export function openCard(id) {
  const trail = [];
  let controller = null;
  const body = h("div", { class: "card-body" });
  const back = h("button", { type: "button", class: "quiet", "aria-label": "Back", onclick: () => { trail.pop(); show(); } }, "←");
  const dialog = h("dialog", { class: "dialog sheet", "aria-label": "Entity" },
    h("div", { class: "sheet-head" }, back,
      h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => dialog.close() }, "✕")),
    body);
  dialog.addEventListener("close", () => { controller?.abort(); dialog.remove(); });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("a[href^='#']")) dialog.close();
  });

  async function show() {
    const wanted = trail.at(-1);
    back.hidden = trail.length < 2;
    controller?.abort();
    controller = new AbortController();
    fill(body, h("p", { class: "muted" }, "Loading …"));
    try {
      const entity = await page(wanted, 0);
      const facts = h("div", {});
      const more = h("button", { type: "button", class: "small", hidden: true }, "More facts");
      let shown = 0;
      const add = (part) => {
        shown += part.facts.length;
        facts.append(...factRows(part.facts));
        more.hidden = shown >= part.total || !part.facts.length;
      };
      more.addEventListener("click", async () => {
        try {
          add(await page(wanted, shown));
        } catch (error) {
          if (!isAbort(error)) more.replaceWith(trouble(error));
        }
      });
      fill(body,
        h("h2", {}, name(entity)),
        entity.aliases.some((alias) => alias !== entity.label)
          && h("p", { class: "muted" }, "also ", entity.aliases.filter((alias) => alias !== entity.label)
            .map((alias, k) => [k ? ", " : "", h("bdi", {}, alias)])),
        h("p", { class: "links" },
          wikidata(entity.id) || h("code", {}, entity.id), " ",
          h("a", { href: `#/explore?${new URLSearchParams({ entity: entity.id })}` }, "Documents that mention it")),
        h("h3", {}, count(entity.total, "fact")), facts, more);
      add(entity);
    } catch (error) {
      if (!isAbort(error)) fill(body, trouble(error, show));
    }
  }

  const page = (wanted, offset) => api.get(
    `/api/entities/${encodeURIComponent(wanted)}?${new URLSearchParams({ offset, limit: PAGE })}`, { signal: controller.signal });

  function factRows(facts) {
    const same = (k) => k > 0 && facts[k - 1].relation.id === facts[k].relation.id && facts[k - 1].reverse === facts[k].reverse;
    return facts.map(({ relation, tail, reverse }, k) => h("div", { class: `fact-row${same(k) ? " same" : ""}` },
      h("span", { class: same(k) ? "unseen" : "relation" }, reverse && h("span", { title: "the fact points at this entity" }, "← "), name(relation)),
      h("button", { type: "button", class: "plain", onclick: () => { trail.push(tail.id); show(); } }, name(tail))));
  }

  trail.push(id);
  document.body.append(dialog);
  dialog.showModal();
  show();
}
