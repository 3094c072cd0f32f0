// The API as /openapi.json describes it: each route with its request and its response.

import * as api from "/page/api.js";
import { fill, h, trouble } from "/page/dom.js";

export function apiView(root) {
  const list = h("div", { class: "card routes" });
  root.append(h("h1", {}, "API"),
    h("p", { class: "lead" }, "The same results as JSON. ", h("a", { href: "/openapi.json" }, "/openapi.json"), " is the full description for tools."), list);
  let shown = false;

  async function show() {
    if (shown) return;
    try {
      const described = await api.get("/openapi.json", { session: false });
      fill(list, Object.entries(described.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, route]) => routeOf(described, method, path, route))));
      shown = true;
    } catch (error) {
      fill(list, trouble(error, show));
    }
  }
  return { title: "API", show };
}

function routeOf(described, method, path, route) {
  const body = resolved(described, route.requestBody?.content["application/json"]?.schema);
  const response = Object.entries(route.responses).find(([status]) => status.startsWith("2"))?.[1];
  const [[kind, content] = []] = Object.entries(response?.content ?? {});
  const result = resolved(described, content?.schema);
  const inputs = [
    ...(route.parameters ?? []).map((each) => [each.name, each.in === "query" ? "" : `in the ${each.in}`, each.schema, each.required, each.description]),
    ...fields(body).map(([name, schema]) => [name, "", schema, body.required?.includes(name), schema.description]),
  ];
  return h("details", {},
    h("summary", {}, h("code", {}, `${method.toUpperCase()} ${path}`), " ", h("span", { class: "muted" }, route.description ?? "")),
    inputs.length > 0 && h("table", {}, h("caption", {}, "Request"), h("tbody", {}, inputs.map(([name, where, schema, required, description]) => h("tr", {},
      h("th", { scope: "row" }, h("code", {}, name)), h("td", {}, [typeText(schema), where, required ? "required" : defaultText(schema), limits(schema)].filter(Boolean).join(", ")), h("td", {}, description ?? ""))))),
    h("table", {}, h("caption", {}, "Response"), h("tbody", {}, result?.properties
      ? fields(result).map(([name, schema]) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, name)), h("td", {}, typeText(schema)), h("td", {}, schema.description ?? "")))
      : h("tr", {}, h("td", {}, response?.description === "Successful Response" ? kind : `${kind}: ${response?.description}`)))));
}

const fields = (schema) => Object.entries(schema?.properties ?? {});
const nameOf = (reference) => reference.split("/").at(-1);

function resolved(described, schema) {
  return schema?.$ref ? described.components.schemas[nameOf(schema.$ref)] : schema;
}

function typeText(schema = {}) {
  if (schema.$ref) return nameOf(schema.$ref);
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.const !== undefined) return String(schema.const);
  if (schema.anyOf) return schema.anyOf.filter((each) => each.type !== "null").map(typeText).join(" or ");
  if (schema.type === "array") return `list of ${typeText(schema.items)}`;
  return schema.type ?? "";
}

const defaultText = ({ default: value }) => (value === undefined || value === null || value === "" ? "" : `default ${JSON.stringify(value)}`);

function limits(schema) {
  const all = [schema, ...(schema.anyOf ?? [])];
  const texts = { minimum: "from", exclusiveMinimum: "above", maximum: "to", exclusiveMaximum: "below", maxLength: "characters: at most", maxItems: "items: at most" };
  return Object.entries(texts).flatMap(([key, text]) => all.filter((each) => each[key] !== undefined).map((each) => `${text} ${each[key].toLocaleString("en")}`)).join(" ");
}
