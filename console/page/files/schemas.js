// Schemas: subjects, versions, what differs, and a check before a new version is registered.

import {
  ask, changeForm, facts, field, folded, h, link, pages, parameters, path, query, queryForm, refuse,
  section, table,
} from "/page/parts.js";

export async function schemas() {
  const wanted = parameters();
  const found = await ask("/api/schemas" + query(wanted));
  return ["Schemas", section("",
    queryForm("Find", [field("Subject has", "q", "search", wanted.q || "")]),
    table("Subjects", [["Subject", (name) => link(path("schemas", name), name)]], found.subjects,
      "There is no such subject."),
    pages(found))];
}

const KINDS = [["AVRO", "Avro"], ["JSON", "JSON Schema"], ["PROTOBUF", "Protobuf"]];

export async function subject(overview, name) {
  const found = await ask("/api" + path("schemas", name) + query(parameters()));
  const versions = found.versions.map((each) => [String(each), `version ${each}`]);
  return [name,
    section("", queryForm("Show", [
      field("Version", "version", versions, String(found.version)),
      field("Compared with", "compare", versions, String(found.compared)),
    ]), facts([["id", found.id], ["kind", found.kind],
      ["refers to", found.references.map((each) => `${each.subject} ${each.version}`).join(", ") || null]]),
    h("pre", { tabIndex: 0, className: "whole" }, found.text)),
    found.difference.length
      ? section(`What differs from version ${found.compared}`,
        h("pre", { tabIndex: 0, className: "whole difference" }, found.difference.map((line) =>
          h("span", { "data-line": line[0] }, line + "\n"))))
      : null,
    overview.is_read_only ? null : section("The next version",
      folded("Check and register", changeForm("Register, if it is compatible", [
        field("Kind", "kind", KINDS, found.kind),
        field("Schema", "schema", "area", found.text),
      ], async (values) => {
        const address = "/api" + path("schemas", name);
        const checked = await ask(address + "/check", "POST", values);
        if (!checked.is_compatible) {
          throw new Error(`It is not compatible. ${checked.messages.join(" ")}`);
        }
        refuse("");
        await ask(address, "POST", values);
        return path("schemas", name);
      })))];
}
