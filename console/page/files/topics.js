// Topics: the list, and one topic with its partitions and settings.

import {
  ask, changeForm, duration, facts, field, folded, link, number, pages, parameters, path, query,
  queryForm, section, table, tabs,
} from "/page/parts.js";

const COLUMNS = [
  ["Topic", (topic) => link(path("topics", topic.name), topic.name)],
  ["Partitions", (topic) => number(topic.partitions), "number"],
  ["Replicas", (topic) => number(topic.replicas), "number"],
  ["Offsets", (topic) => number(topic.records), "number"],
  ["Cleanup", (topic) => topic.policy || "–"],
  ["Kept for", (topic) => kept(topic.retention_ms)],
  ["State", (topic) => health(topic)],
];

function kept(retention) {
  if (retention === undefined || retention === null) return "–";
  return retention === "-1" ? "ever" : duration(retention);
}

function health(topic) {
  if (topic.offline) return `${topic.offline} without leader`;
  return topic.under_replicated ? `${topic.under_replicated} under-replicated` : "ok";
}

export async function topics(overview) {
  const wanted = parameters();
  const found = await ask("/api/topics" + query(wanted));
  return ["Topics",
    section("",
      queryForm("Find", [
        field("Name has", "q", "search", wanted.q || ""),
        field("Kafka's own too", "internal", "checkbox", wanted.internal),
      ]),
      table("Topics", COLUMNS, found.topics, "There is no such topic."),
      pages(found)),
    overview.is_read_only ? null : section("Create a topic", folded("A new topic", changeForm("Create", [
      field("Name", "name", "text", "", { required: true }),
      field("Partitions (the cluster's default if empty)", "partitions", "number", "", { min: 1 }),
      field("Replicas (the cluster's default if empty)", "replicas", "number", "", { min: 1 }),
      field("Settings, one NAME=VALUE a line", "settings", "area"),
    ], async (values) => {
      await ask("/api/topics", "POST", {
        name: values.name,
        partitions: values.partitions || -1,
        replicas: values.replicas || -1,
        settings: settingsOf(values.settings),
      });
      return path("topics", values.name);
    })))];
}

function settingsOf(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(lines.map((line) => {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`${line} is not NAME=VALUE`);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}

export const tabsOfTopic = (overview, name) => tabs([
  [path("topics", name), "About"],
  [path("topics", name, "records"), "Records"],
  [path("topics", name, "partitions"), "Partitions"],
  [path("topics", name, "settings"), "Settings"],
  [path("topics", name, "explain"), "Explain"],
  ...(overview.is_read_only ? [] : [[path("topics", name, "write"), "Write"]]),
]);

export async function oneTopic(overview, name) {
  const topic = await ask("/api" + path("topics", name));
  const total = topic.parts.reduce(
    (sum, part) => sum + (part.end === null ? 0n : BigInt(part.end) - BigInt(part.start)), 0n);
  const setting = (key) => topic.settings.find((each) => each.name === key)?.value;
  return [name, tabsOfTopic(overview, name),
    section("",
      facts([
        ["partitions", number(topic.partitions)],
        ["replicas", number(topic.replicas)],
        ["offsets", number(total)],
        ["state", health(topic)],
        ["cleanup", setting("cleanup.policy")],
        ["kept for", kept(setting("retention.ms"))],
        ["id", topic.id],
      ])),
    overview.is_read_only ? null : section("Delete",
      folded("Delete this topic with all its records", changeForm("Delete", [
        field(`Type the name: ${name}`, "name", "text", "", { required: true }),
      ], async (values) => {
        await ask("/api" + path("topics", name), "DELETE", { name: values.name });
        return "/topics";
      }, { className: "danger" })))];
}

export async function partitionsOfTopic(overview, name) {
  const topic = await ask("/api" + path("topics", name));
  return [name, tabsOfTopic(overview, name),
    section("", table("Partitions", [
      ["Partition", (part) =>
        link(path("topics", name, "records") + query({ partition: part.partition }), part.partition), "number"],
      ["Leader", (part) => (part.leader < 0 ? "none" : link(path("brokers", part.leader), part.leader)), "number"],
      ["Replicas", (part) => part.replicas.join(", ")],
      ["In sync", (part) => part.isr.join(", ")],
      ["First offset", (part) => number(part.start), "number"],
      ["End", (part) => number(part.end), "number"],
      ["", (part) => link(path("topics", name, "explain") + query({ partition: part.partition }), "explain")],
    ], topic.parts)),
    overview.is_read_only ? null : section("More partitions",
      folded("Keys will meet other partitions than before", changeForm("Add", [
        field("Partitions in all", "count", "number", topic.partitions + 1, { min: topic.partitions + 1 }),
      ], async (values) => {
        await ask("/api" + path("topics", name, "partitions"), "POST", { count: values.count });
      })))];
}

export function settingsTable(settings) {
  return table("Settings", [
    ["Setting", (each) => each.name],
    ["Value", (each) => (each.is_sensitive ? "hidden" : each.value ?? "–")],
    ["From", (each) => (each.is_own ? "set here" : each.source.toLowerCase().replaceAll("_", " "))],
  ], settings);
}

export async function settingsOfTopic(overview, name) {
  const topic = await ask("/api" + path("topics", name));
  return [name, tabsOfTopic(overview, name),
    overview.is_read_only ? null : section("Change a setting", changeForm("Set", [
      field("Setting", "name", "text", "", { required: true, placeholder: "retention.ms" }),
      field("Value (empty: the default again)", "value"),
    ], async (values) => {
      await ask("/api" + path("topics", name, "settings"), "PATCH",
        { settings: { [values.name]: values.value === "" ? null : values.value } });
    })),
    section("", settingsTable(topic.settings))];
}
