// Reasons of a word: the types of mentions, and a reason as readable text.

import { h, name, percent } from "/page/dom.js";

export const REFLEXIVE = "@@REFLEXIVE@@";
export const TYPES = {
  given: "named in your text",
  related: "a fact of a mentioned entity",
  again: "a mentioned entity again",
  new: "a new entity",
  continue: "a later word of a name",
  none: "no entity: a plain word",
  missing: "a plain word where a fact is missing",
};

/** A reason of the server's JSON, with {id, label} instead of an id and a label beside it. */
export function withNames(reason) {
  const named = (key) => reason[key] === null ? null : { id: reason[key], label: reason[`${key}_label`] };
  return { ...reason, parent: named("parent"), relation: named("relation"), entity: named("entity") };
}

/** The type of a reason; `again` is a repeated mention, which the server reports as a related fact. */
export function typeOf(reason) {
  return reason.type === "related" && reason.entity && reason.parent?.id === reason.entity.id ? "again" : reason.type;
}

export const isFact = (reason) => Boolean(reason.parent && reason.relation) && typeOf(reason) !== "again" && reason.relation.id !== REFLEXIVE;

/** Barack Obama —date of birth→ August 4, 1961, copied */
export function chain(reason) {
  const type = typeOf(reason);
  const how = reason.copied !== null && h("span", { class: "how" }, reason.copied ? ", copied" : ", generated");
  if (type === "none") return h("span", { class: "chain" }, "no entity, a plain word");
  if (type === "missing") return h("span", { class: "chain" }, "missing: ", relationText(reason.relation), " of ", name(reason.parent));
  if (type === "again") return h("span", { class: "chain" }, name(reason.entity), " again", how);
  if (type === "new") return h("span", { class: "chain" }, "new: ", name(reason.entity), how);
  if (type === "continue" && !isFact(reason)) return h("span", { class: "chain" }, "more of ", name(reason.entity), how);
  const period = reason.period ? ` (${reason.period})` : "";
  return h("span", { class: "chain" }, ...fact(reason.parent, reason.relation, reason.entity), period, how);
}

/** Arrows point from head to tail; a fact given from its tail has a relation `R:…`. */
export function fact(parent, relation, entity) {
  return [name(parent), " ", arrow(relation), " ", name(entity)];
}

const isReverse = (relation) => relation.id.startsWith("R:");
const plainly = (relation) => (relation.id === REFLEXIVE ? "again" : relation.label.replace(/^← /, ""));

export function arrow(relation) {
  const [start, end] = isReverse(relation) ? ["←", "—"] : ["—", "→"];
  return h("span", { class: "arrow" }, start, h("bdi", {}, plainly(relation)), end);
}

export const relationText = (relation) => (isReverse(relation) ? "← " : "") + plainly(relation);
export const factText = ({ parent, relation, entity }) => fact(parent, relation, entity).map((part) => part.textContent ?? part).join("");

/** The fact as it is stored, from head to tail. */
export function stored({ parent, relation, entity }) {
  if (!isReverse(relation)) return { parent, relation, entity };
  return { parent: entity, relation: { id: relation.id.slice(2), label: plainly(relation) }, entity: parent };
}

export function chainText(reason) {
  return `${chain(reason).textContent}, ${percent(reason.p)}`;
}

/** Probability by type, in the order of TYPES, of the reasons given. */
export function shares(reasons) {
  const found = Object.fromEntries(Object.keys(TYPES).map((type) => [type, 0]));
  for (const reason of reasons) found[typeOf(reason)] += reason.p;
  return Object.entries(found).filter(([, p]) => p > 0);
}

export const swatch = (type) => h("span", { class: `swatch t-${type}`, "aria-hidden": "true" });

export function legend(types = Object.keys(TYPES)) {
  return h("ul", { class: "legend", "aria-label": "Colours" },
    types.map((type) => h("li", {}, swatch(type), TYPES[type])));
}
