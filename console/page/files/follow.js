// One text, such as an order's id, through all topics: what was there, and what arrives.

import {
  duration, field, h, link, parameters, path, queryForm, refuse, section, table, tableRow, time,
} from "/page/parts.js";
import { listen, shownPart } from "/page/records.js";

export async function follow() {
  const wanted = parameters();
  const form = queryForm("Follow", [
    field("Text in keys, values or headers", "q", "search", wanted.q || "", { required: true }),
    field("From minutes ago", "minutes", "number", wanted.minutes || "10", { min: 0 }),
    field("Only the topics (with commas)", "topics", "text", wanted.topics || ""),
  ]);
  if (!wanted.q) {
    return ["Follow", section("", form, h("p", { className: "note" },
      "Type the id of an order, or any text: its records appear in the order of time, across topics."))];
  }
  const said = h("p", { className: "note", role: "status" }, "Reading …");
  let first = null;
  let last = null;
  let count = 0;
  const columns = [
    ["Time", (row) => time(row.timestamp)],
    ["After", (row) => (first === null ? "" : duration(Number(row.timestamp) - first))],
    ["Topic", (row) => link(path("topics", row.topic), row.topic)],
    ["Place", (row) => link(path("topics", row.topic, "records", row.partition, row.offset),
      `${row.partition}:${row.offset}`)],
    ["Key", (row) => shownPart(row.key)],
    ["Value", (row) => shownPart(row.value)],
  ];
  const made = table("Records", columns, [{
    timestamp: "0", topic: "", partition: 0, offset: "0", key: {}, value: {}, headers: [],
  }]);
  const rows = made.querySelector("tbody");
  rows.replaceChildren();
  const source = listen("/api/follow" + location.search, {
    row: (row) => {
      first ??= Number(row.timestamp);
      last = Number(row.timestamp);
      count += 1;
      rows.append(tableRow(columns, row));
      said.textContent = `${count} records, over ${duration(last - first)}; more appear as they arrive.`;
    },
    topics: (told) => {
      if (told.left_out) refuse(`Only ${told.topics} topics are read: name those that you want.`);
    },
    idle: () => {
      if (!count) said.textContent = "No record has it yet; it appears here when it arrives.";
    },
    failure: (failure) => refuse(failure.detail),
    end: () => source.close(),
    broken: () => refuse("The connection broke: load the page again."),
  });
  return ["Follow", section("", form), h("section", { "aria-label": "Records" }, said, made)];
}
