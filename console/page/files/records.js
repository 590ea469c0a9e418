// Records: a page by time, a search with progress, what arrives, and one whole record.

import {
  ask, bytes, changeForm, duration, facts, field, folded, h, link, number, parameters, path, query,
  refuse, section, table, tableRow, time,
} from "/page/parts.js";
import { tabsOfTopic } from "/page/topics.js";

const MAX_SHOWN = 500;

export function shownPart(part) {
  if (part.kind === "null") return h("span", { className: "kind" }, "null");
  const text = part.kind === "large" ? bytes(part.size) : part.text + (part.is_cut ? " …" : "");
  return [h("code", {}, text), part.note ? h("span", { className: "why" }, part.note) : null]
    .filter(Boolean);
}

const columns = (topic) => [
  ["Time", (row) => time(row.timestamp)],
  ["Place", (row) =>
    link(path("topics", topic, "records", row.partition, row.offset), `${row.partition}:${row.offset}`)],
  ["Key", (row) => shownPart(row.key)],
  ["Value", (row) => shownPart(row.value)],
  ["Format", (row) => [row.value.kind, row.state].filter(Boolean).join(", ")],
  ["Headers", (row) => row.headers.map((each) => each.name).join(", ")],
];

const FROM = [["newest", "the newest"], ["oldest", "the oldest"], ["offset", "an offset"],
  ["time", "a time"], ["ago", "minutes ago"]];
const KINDS = [["contains", "contains"], ["regex", "matches (RE2)"], ["path", "JSON: path op value"]];

/** The place of a form as the console reads it; "ago" and a local time become milliseconds. */
function placeOf(values) {
  const place = { from: values.from || "newest", partition: values.partition, all: values.all };
  if (place.from === "offset") place.offset = values.at;
  if (place.from === "time") place.time = Date.parse(values.at) || values.at;
  if (place.from === "ago") {
    place.from = "time";
    place.time = Math.round(Date.now() - Number(values.at) * 60000);
  }
  return place;
}

export async function records(overview, topic) {
  const wanted = parameters();
  const form = h("form", {
    className: "row",
    "aria-label": "What is shown",
    onsubmit: (event) => {
      event.preventDefault();
      const values = Object.fromEntries(new FormData(event.target));
      location.search = query({ ...values, mode: event.submitter?.value || "" });
    },
  },
  field("Begin at", "from", FROM, wanted.from || "newest"),
  field("Offset, time or minutes", "at", "text", wanted.at || ""),
  field("Partition", "partition", "text", wanted.partition || "", { size: 5, inputMode: "numeric" }),
  field("Look for", "q", "search", wanted.q || ""),
  field("How", "kind", KINDS, wanted.kind || "contains"),
  field("In", "in", [["", "key, value, headers"], ["key", "key"], ["value", "value"], ["headers", "headers"]],
    wanted.in || ""),
  field("Open and aborted too", "all", "checkbox", wanted.all),
  h("button", { value: "" }, "Show"),
  h("button", { value: "search" }, "Search"),
  h("button", { value: "tail" }, "Watch"));
  const body = h("section", { "aria-label": "Records" });
  if (wanted.mode === "search") search(topic, wanted, body);
  else if (wanted.mode === "tail") watch(topic, wanted, body);
  else await showPage(topic, wanted, body);
  const range = { ...placeOf(wanted), q: wanted.q, kind: wanted.kind, in: wanted.in };
  if (range.from === "newest") range.from = "oldest";
  const exported = (format) => "/api" + path("topics", topic, "export") + query({ ...range, format });
  return [topic, tabsOfTopic(overview, topic), section("", form,
    h("p", { className: "note" }, "Export what is asked for: ",
      link(exported("jsonl"), "JSON lines", { download: "" }), ", ",
      link(exported("csv"), "CSV", { download: "" }))), body];
}

async function showPage(topic, wanted, body, cursor = "") {
  const found = await ask("/api" + path("topics", topic, "records") +
    query({ ...placeOf(wanted), cursor, count: wanted.count }));
  if (found.without_leader.length) {
    body.append(h("p", { className: "errors" },
      `Partitions without leader are left out: ${found.without_leader.join(", ")}`));
  }
  if (cursor) {
    const rows = body.querySelector("tbody");
    if (rows) rows.append(...found.rows.map((row) => tableRow(columns(topic), row)));
  } else {
    body.append(table("Records", columns(topic), found.rows, "There are no records here."));
  }
  if (found.cursor) {
    const more = h("button", {
      type: "button",
      onclick: async () => {
        more.remove();
        await showPage(topic, wanted, body, found.cursor).catch((error) => refuse(error.message));
      },
    }, "More");
    body.append(more);
  }
}

function emptyTable(topic, body) {
  const made = table("Records", columns(topic), [{
    timestamp: "0", partition: 0, offset: "0", key: {}, value: {}, headers: [], state: "",
  }]);
  const rows = made.querySelector("tbody");
  rows.replaceChildren();
  body.append(made);
  return rows;
}

export function listen(address, handlers) {
  const source = new EventSource(address);
  for (const [name, handler] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
  }
  source.onerror = () => {
    if (source.readyState !== EventSource.CLOSED && !handlers.isForEver) source.close();
    handlers.broken?.();
  };
  addEventListener("pagehide", () => source.close());
  return source;
}

function search(topic, wanted, body) {
  const bar = h("progress", { max: 1, value: 0, "aria-label": "How far the search is" });
  const said = h("p", { className: "note", role: "status" }, "searching …");
  const stop = h("button", { type: "button" }, "Stop");
  body.append(bar, said, stop);
  const rows = emptyTable(topic, body);
  let last = null;
  let source = null;
  const end = (text) => {
    source.close();
    said.textContent = `${said.textContent.replace(" …", "")} ${text}`;
    if (!last || last.is_done) stop.remove();
    else {
      stop.textContent = "Go on";
      stop.onclick = () => run(last.positions);
    }
  };
  const run = (positions) => {
    const { q, kind } = wanted;
    const place = placeOf(wanted);
    if (place.from === "newest") place.from = "oldest";
    const goOn = positions && Object.entries(positions).map((each) => each.join(":")).join(",");
    stop.textContent = "Stop";
    stop.onclick = () => end("Stopped.");
    source = listen("/api" + path("topics", topic, "search") +
      query({ ...place, q, kind, in: wanted.in, positions: goOn }), {
      row: (row) => rows.append(tableRow(columns(topic), row)),
      progress: (progress) => {
        last = progress;
        bar.max = Number(progress.total) || 1;
        bar.value = Number(progress.read);
        const large = progress.too_large
          ? `, ${progress.too_large} too large to be looked into` : "";
        said.textContent = `Read ${number(progress.read)} of ${number(progress.total)} offsets, ` +
          `found ${number(progress.found)}${large} …`;
      },
      failure: (failure) => refuse(failure.detail),
      end: () => end(last?.is_done ? "Done." : "There may be more."),
      broken: () => end("The search has ended early."),
    });
  };
  run(null);
}

function watch(topic, wanted, body) {
  const said = h("p", { className: "note", role: "status" }, "Waiting for records …");
  body.append(said);
  const rows = emptyTable(topic, body);
  let count = 0;
  let dropped = 0;
  const tell = () => {
    const lost = dropped ? `, ${number(dropped)} left out because they came too fast` : "";
    said.textContent = `${number(count)} records have come${lost}.`;
  };
  listen("/api" + path("topics", topic, "tail") +
    query({ q: wanted.q, kind: wanted.kind, in: wanted.in, all: wanted.all }), {
    isForEver: true,
    begin: () => refuse(""),
    row: (row) => {
      count += 1;
      rows.prepend(tableRow(columns(topic), row));
      if (rows.children.length > MAX_SHOWN) rows.lastElementChild.remove();
      tell();
    },
    dropped: (event) => {
      dropped += event.count;
      tell();
    },
    failure: (failure) => refuse(failure.detail),
    broken: () => refuse("The connection broke; it is tried again."),
  });
}

function wholePart(title, part) {
  const about = [part.kind, bytes(part.size), part.note].filter(Boolean).join(" · ");
  return section(title,
    h("p", { className: part.note && part.kind === "hex" ? "why" : "note" }, about),
    part.kind === "null" ? null
      : h("pre", { tabIndex: 0, className: "whole" }, part.text + (part.is_cut ? " …" : "")));
}

export async function oneRecord(overview, topic, partition, offset) {
  const row = await ask("/api" + path("topics", topic, "records", partition, offset));
  const beside = (by) => path("topics", topic, "records", partition, String(BigInt(offset) + by));
  return [`${topic} ${partition}:${offset}`, tabsOfTopic(overview, topic),
    section("", facts([
      ["time", `${time(row.timestamp)} (${row.timestamp}), ${duration(Date.now() - row.timestamp)} ago`],
      ["state", row.state ? `${row.state}, producer ${row.producer_id}` : null],
    ]), h("p", {},
      offset === "0" ? null : link(beside(-1n), "← the offset before", { rel: "prev" }), " ",
      link(beside(1n), "the next offset →", { rel: "next" })),
    h("p", {}, link(path("topics", topic, "explain") + query({ partition, offset }),
      "Explain this record: who has it, who has read it, how long it stays"))),
    wholePart("Key", row.key), wholePart("Value", row.value),
    row.headers.length ? section("Headers", facts(row.headers.map((each) =>
      [each.name, each.kind === "null" ? "null" : h("code", {}, each.text)]))) : null,
    overview.is_read_only || row.state === "marker" ? null : section("Write it again",
      folded("A copy of this record, byte for byte", changeForm("Write", [
        field("Into the topic", "topic", "text", topic, { required: true }),
      ], async (values) => {
        const made = await ask("/api" + path("topics", topic, "records", partition, offset, "again"),
          "POST", { topic: values.topic });
        return path("topics", made.topic, "records", made.partition, made.offset);
      })))];
}
