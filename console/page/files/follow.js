// One text, such as an order's id, through all topics: what was there, what arrives, who has read it.

import {
  duration, field, h, link, number, parameters, path, queryForm, refuse, section, table, tableRow, time,
} from "/page/parts.js";
import { listen, shownPart } from "/page/records.js";

const form = (wanted, button) => queryForm(button, [
  field("Text in keys, values or headers", "q", "search", wanted.q || "", { required: true }),
  field("From minutes ago", "minutes", "number", wanted.minutes || "10", { min: 0 }),
  field("Only the topics (with commas)", "topics", "text", wanted.topics || ""),
]);

/** What a record says of itself in one of the usual fields, as a short text. */
function gist(row) {
  let value;
  try {
    value = JSON.parse(row.value.text);
  } catch {
    return "";
  }
  const said = ["check", "state", "status", "decision", "result", "reason"]
    .map((name) => value?.[name]).filter((each) => typeof each === "string");
  return said.length ? `: ${said.join(" ").slice(0, 100)}` : "";
}

/** A section with the records that have a text; `tell` gets a sentence about each change. */
export function followed(tell = () => undefined) {
  const wanted = parameters();
  if (!wanted.q) {
    return section("Follow an order, or any text", form(wanted, "Follow"), h("p", { className: "note" },
      "Type the id of an order, or any text: its records appear in the order of time, across topics."));
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
    ["Read by", () => ""],
  ];
  const made = table("Records", columns, [{
    timestamp: "0", topic: "", partition: 0, offset: "0", key: {}, value: {}, headers: [],
  }]);
  const rows = made.querySelector("tbody");
  const shown = new Map();
  rows.replaceChildren();
  const source = listen("/api/follow" + location.search, {
    row: (row) => {
      first ??= Number(row.timestamp);
      last = Number(row.timestamp);
      count += 1;
      const added = tableRow(columns, row);
      rows.append(added);
      shown.set(`${row.topic} ${row.partition} ${row.offset}`, added);
      said.textContent = `${number(count)} records, over ${duration(last - first)}; more appear as they arrive.`;
      tell(row.timestamp, `The topic ${row.topic} has a record of it${gist(row)}.`);
    },
    read: (read) => {
      shown.get(`${read.topic} ${read.partition} ${read.offset}`)?.lastElementChild
        .append(h("div", {}, link(path("groups", read.group), read.group)));
      tell(Date.now(), `The group ${read.group} has read ${read.topic} ${read.partition}:${read.offset}.`);
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
  return section(`Follow ${wanted.q}`, form(wanted, "Follow"), said, made);
}

export const follow = async () => ["Follow", followed()];
