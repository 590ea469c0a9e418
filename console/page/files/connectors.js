// The connectors of one or several Connect clusters.

import { ask, changeForm, h, folded, path, section, table } from "/page/parts.js";

function actions(overview, cluster, connector) {
  if (overview.is_read_only) return null;
  return h("div", { className: "pages" }, ["pause", "resume", "stop", "restart"].map((action) =>
    changeForm(action, [], async () => {
      await ask("/api" + path("connectors", cluster, connector.name, action), "POST", {});
    })));
}

const shown = (overview, cluster) => (connector) => section(connector.name,
  h("p", { className: connector.state === "RUNNING" ? "note" : "bad" },
    `${connector.type || "connector"}, ${connector.state}`),
  connector.trace ? h("pre", { tabIndex: 0 }, connector.trace) : null,
  table("Tasks", [
    ["Task", (task) => task.id, "number"],
    ["State", (task) => task.state],
    ["Worker", (task) => task.worker],
    ["Error", (task) => (task.trace ? h("code", {}, task.trace) : "")],
  ], connector.tasks, "It has no tasks."),
  folded("Settings", table("Settings", [
    ["Setting", (each) => each.name],
    ["Value", (each) => each.value],
  ], connector.settings)),
  actions(overview, cluster, connector));

export async function connectors(overview) {
  const found = await ask("/api/connectors");
  return ["Connectors", ...found.clusters.flatMap((cluster, number) => [
    h("h2", {}, cluster.url),
    cluster.error ? h("p", { className: "errors" }, cluster.error) : null,
    cluster.connectors.length || cluster.error ? null
      : h("p", { className: "note" }, "It has no connectors."),
    ...cluster.connectors.map(shown(overview, number)),
  ])];
}
