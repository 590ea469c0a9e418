// One record, written by hand.

import { ask, changeForm, field, h, path, refuse, section } from "/page/parts.js";
import { tabsOfTopic } from "/page/topics.js";

export async function writeRecord(overview, topic) {
  const kinds = [["text", "text"], ["json", "JSON"], ["hex", "hexadecimal"], ["null", "null"]];
  if (overview.has_registry) kinds.push(["schema", "JSON, by a schema of the registry"]);
  const part = (name, title, kind) => [
    field(`${title} is`, `${name}-kind`, kinds, kind),
    ...(overview.has_registry ? [field(`Subject of the ${name}'s schema`, `${name}-subject`, "text",
      `${topic}-${name}`)] : []),
    field(title, name, "area"),
    ...(overview.has_registry ? [h("button", {
      type: "button",
      "aria-label": `Fill the ${name} in with the fields of its schema`,
      onclick: (event) => fillIn(event.target.form, name).catch((error) => refuse(error.message)),
    }, "Fill in the schema's fields")] : []),
  ];
  const told = (values, name) => ({
    kind: values[`${name}-kind`], text: values[name], subject: values[`${name}-subject`] || "",
  });
  return [topic, tabsOfTopic(overview, topic), section("Write a record", changeForm("Write", [
    ...part("key", "Key", "text"),
    ...part("value", "Value", "json"),
    field("Headers, one NAME=VALUE a line", "headers", "area"),
    field("Partition (the key decides if empty)", "partition", "text", "", { inputMode: "numeric" }),
  ], async (values) => {
    const headers = {};
    for (const line of values.headers.split("\n").filter(Boolean)) {
      const at = line.indexOf("=");
      if (at < 0) throw new Error(`${line} is not NAME=VALUE`);
      headers[line.slice(0, at)] = line.slice(at + 1);
    }
    const made = await ask("/api" + path("topics", topic, "records"), "POST", {
      key: told(values, "key"), value: told(values, "value"), headers, partition: values.partition,
    });
    return path("topics", made.topic, "records", made.partition, made.offset);
  }))];
}

/** Put a value that the schema allows into the form. */
async function fillIn(form, name) {
  refuse("");
  const found = await ask("/api" + path("schemas", form.elements[`${name}-subject`].value, "skeleton"));
  form.elements[`${name}-kind`].value = "schema";
  form.elements[name].value = found.text;
}
