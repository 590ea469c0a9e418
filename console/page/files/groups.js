// Groups of every type: members, lag, and the reset of offsets with a preview.

import {
  ask, changeForm, duration, facts, field, folded, link, number, pages, parameters, path, query,
  queryForm, section, table, tabs,
} from "/page/parts.js";

export async function groups() {
  const wanted = parameters();
  const found = await ask("/api/groups" + query(wanted));
  return ["Groups", section("",
    queryForm("Find", [field("Id has", "q", "search", wanted.q || "")]),
    table("Groups", [
      ["Group", (group) => link(path("groups", group.id), group.id)],
      ["Type", (group) => group.type],
      ["State", (group) => group.state],
      ["Lag, records", (group) => number(group.lag), "number"],
      ["Lag, time", (group) => (group.lag === "0" ? "0 s" : duration(group.age_ms)), "number"],
    ], found.groups, "There is no such group."),
    pages(found))];
}

export const tabsOfGroup = (overview, id) => tabs([
  [path("groups", id), "About"],
  [path("groups", id, "explain"), "Explain"],
  ...(overview.is_read_only ? [] : [[path("groups", id, "reset"), "Reset offsets"]]),
]);

export async function group(overview, id) {
  const found = await ask("/api" + path("groups", id));
  const lag = found.partitions.reduce((sum, each) => sum + BigInt(each.lag ?? 0), 0n);
  const ages = found.partitions.map((each) => Number(each.age_ms ?? 0));
  return [id, tabsOfGroup(overview, id),
    section("", facts([
      ["type", found.type],
      ["state", found.state],
      ["lag", `${number(lag)} records, ${duration(Math.max(0, ...ages))}`],
      ["members", number(found.members.length)],
      ["assignor", found.assignor || null],
      ["coordinator", found.coordinator === undefined ? null
        : link(path("brokers", found.coordinator), `broker ${found.coordinator}`)],
    ])),
    section("Partitions", table("Partitions", [
      ["Partition", (each) => link(
        path("topics", each.topic, "records") +
          query({ partition: each.partition, from: "offset", at: each.committed ?? "" }),
        `${each.topic} ${each.partition}`)],
      ["Committed", (each) => number(each.committed), "number"],
      ["End", (each) => number(each.end), "number"],
      ["Lag, records", (each) => number(each.lag), "number"],
      ["Lag, time", (each) => (each.lag === "0" ? "0 s" : duration(each.age_ms)), "number"],
      ["Read by", (each) => each.owner ?? "nobody"],
    ], found.partitions, "The group has committed no offsets.")),
    section("Members", table("Members", [
      ["Client", (each) => each.client_id],
      ["Host", (each) => each.host],
      ["Member", (each) => each.instance_id || each.id],
      ["Partitions", (each) => each.partitions.join(", ")],
    ], found.members, "The group has no members.")),
    overview.is_read_only ? null : section("Delete", folded("Delete this group with its offsets",
      changeForm("Delete", [field(`Type the id: ${id}`, "name", "text", "", { required: true })],
        async (values) => {
          await ask("/api" + path("groups", id), "DELETE", { name: values.name });
          return "/groups";
        }, { className: "danger" })))];
}

const TARGETS = [["earliest", "the first offset"], ["latest", "the end"], ["time", "a time (milliseconds or date)"],
  ["offset", "an offset"], ["shift", "shift by"]];

function targetOf(wanted) {
  const target = { to: wanted.to, topic: wanted.topic };
  if (wanted.to === "time") target.time = /^\d+$/.test(wanted.at) ? wanted.at : Date.parse(wanted.at);
  if (wanted.to === "offset") target.offset = wanted.at;
  if (wanted.to === "shift") target.by = wanted.at;
  return target;
}

export async function resetGroup(overview, id) {
  const wanted = parameters();
  const form = queryForm("Preview", [
    field("To", "to", TARGETS, wanted.to || "earliest"),
    field("Time, offset or number", "at", "text", wanted.at || ""),
    field("Only the topic", "topic", "text", wanted.topic || ""),
  ]);
  if (!wanted.to) return [id, tabsOfGroup(overview, id), section("Reset offsets", form)];
  const found = await ask("/api" + path("groups", id, "reset") + query(targetOf(wanted)));
  const offsets = Object.fromEntries(
    found.partitions.map((each) => [`${each.topic}:${each.partition}`, each.new]));
  return [id, tabsOfGroup(overview, id),
    section("Reset offsets", form,
      table("Preview", [
        ["Partition", (each) => `${each.topic} ${each.partition}`],
        ["Committed", (each) => number(each.committed), "number"],
        ["New", (each) => number(each.new), "number"],
        ["Reads again", (each) => number(each.reads_again), "number"],
        ["Skips", (each) => number(each.skips), "number"],
      ], found.partitions),
      changeForm("Set these offsets", [], async () => {
        await ask("/api" + path("groups", id, "offsets"), "POST", { offsets });
        return path("groups", id);
      }))];
}
