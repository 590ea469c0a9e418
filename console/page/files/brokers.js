// Brokers, the metadata quorum, and open transactions.

import {
  ask, bytes, duration, facts, h, link, number, path, section, table,
} from "/page/parts.js";
import { settingsTable } from "/page/topics.js";

export async function brokers() {
  const found = await ask("/api/brokers");
  return ["Brokers", section("",
    h("p", {}, link("/explain", "Explain what is wrong in the cluster")),
    found.offline_partitions
      ? facts([["partitions without leader", number(found.offline_partitions)]]) : null,
    table("Brokers", [
      ["Broker", (each) => link(path("brokers", each.id), each.id), "number"],
      ["Address", (each) => (each.is_there ? `${each.host}:${each.port}` : "is down")],
      ["Rack", (each) => each.rack || "–"],
      ["Leads", (each) => number(each.leads), "number"],
      ["Replicas", (each) => number(each.replicas), "number"],
      ["Out of sync", (each) => number(each.out_of_sync), "number"],
    ], found.brokers))];
}

export async function broker(overview, id) {
  const found = await ask("/api" + path("brokers", id));
  return [`Broker ${id}`,
    section("Log directories", table("Log directories", [
      ["Directory", (each) => each.path],
      ["Replicas", (each) => number(each.replicas), "number"],
      ["Size", (each) => bytes(each.bytes), "number"],
      ["Free", (each) => bytes(each.usable_bytes), "number"],
      ["State", (each) => each.error || "ok"],
    ], found.directories)),
    section("Settings", settingsTable(found.settings))];
}

export async function quorum() {
  const found = await ask("/api/quorum");
  return ["Metadata quorum", section("",
    facts([
      ["leader", number(found.leader)],
      ["epoch", number(found.epoch)],
      ["high watermark", number(found.high_watermark)],
    ]),
    table("Nodes", [
      ["Node", (each) => each.id, "number"],
      ["Role", (each) => each.role],
      ["Log end", (each) => number(each.end), "number"],
      ["Behind", (each) => number(each.behind), "number"],
    ], found.nodes))];
}

export async function transactions() {
  const found = await ask("/api/transactions");
  return ["Transactions", section("",
    facts([["transactional ids", number(found.count)], ["open now", number(found.open.length)]]),
    table("Open transactions", [
      ["Transactional id", (each) => link(path("transactions", each.id, "explain"), each.id)],
      ["Producer", (each) => link(path("producers", each.producer_id, "explain"), each.producer_id), "number"],
      ["Open for", (each) =>
        (each.started_ms === null ? "–" : duration(Date.now() - Number(each.started_ms)))],
      ["Partitions", (each) => each.partitions.join(", ")],
    ], found.open, "No transaction is open."))];
}
