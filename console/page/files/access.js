// Who may do what, and how much: access rules, users, quotas, subscriptions to metrics.

import {
  ask, changeForm, field, folded, h, number, parameters, query, queryForm, section, table, tabs,
} from "/page/parts.js";

const views = () => tabs([
  ["/acls", "Rules"], ["/acls/may", "May somebody …?"], ["/users", "Users"], ["/quotas", "Quotas"],
  ["/client-metrics", "Client metrics"],
]);

const OPERATIONS = ["READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "ALTER_CONFIGS",
  "DESCRIBE_CONFIGS", "IDEMPOTENT_WRITE", "CLUSTER_ACTION", "ALL"].map((each) => [each, each]);
const RESOURCES = ["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID"].map((each) => [each, each]);

const ruleColumns = [
  ["Principal", (rule) => rule.principal],
  ["From", (rule) => rule.host],
  ["", (rule) => (rule.permission === "ALLOW" ? "may" : "may not")],
  ["Operation", (rule) => rule.operation],
  ["Resource", (rule) => `${rule.resource.toLowerCase()} ${rule.name}${rule.pattern === "PREFIXED" ? "…" : ""}`],
];

export async function acls(overview) {
  const wanted = parameters();
  const found = await ask("/api/acls" + query(wanted));
  const columns = overview.is_read_only ? ruleColumns : [...ruleColumns, ["", (rule) =>
    changeForm("remove", [], async () => { await ask("/api/acls", "DELETE", rule); })]];
  return ["Access rules", views(),
    section("", queryForm("Find", [field("Principal or resource has", "q", "search", wanted.q || "")]),
      table("Rules", columns, found.rules, "There are no rules.")),
    overview.is_read_only ? null : section("A new rule", folded("Add a rule", changeForm("Add", [
      field("Principal", "principal", "text", "User:", { required: true }),
      field("From host", "host", "text", "*"),
      field("Permission", "permission", [["ALLOW", "may"], ["DENY", "may not"]]),
      field("Operation", "operation", OPERATIONS),
      field("Resource", "resource", RESOURCES),
      field("Name", "name", "text", "", { required: true }),
      field("The name is", "pattern", [["LITERAL", "the whole name, * for all"], ["PREFIXED", "a prefix"]]),
    ], async (values) => { await ask("/api/acls", "POST", values); })))];
}

export async function mayView() {
  const wanted = parameters();
  const form = queryForm("Ask", [
    field("May", "principal", "text", wanted.principal || "", { placeholder: "Bob", required: true }),
    field("do", "operation", OPERATIONS, wanted.operation || "WRITE"),
    field("on", "resource", RESOURCES, wanted.resource || "TOPIC"),
    field("named", "name", "text", wanted.name || "", { required: true }),
  ]);
  if (!wanted.principal) return ["May somebody …?", views(), section("", form)];
  const found = await ask("/api/acls/may" + query(wanted));
  return ["May somebody …?", views(), section("", form,
    h("p", { role: "status", className: found.may ? "what" : "what bad" }, found.sentence),
    h("p", { className: "note" }, "By these rules; super users are in the brokers' files:"),
    table("Rules", ruleColumns, found.rules, "No rule is about this."))];
}

const MECHANISMS = ["SCRAM-SHA-256", "SCRAM-SHA-512"].map((each) => [each, each]);

export async function users(overview) {
  const found = await ask("/api/users");
  return ["Users", views(), section("", table("Users", [
    ["User", (user) => user.name],
    ["Credentials", (user) => user.credentials.join(", ")],
  ], found.users, "There are no users with SCRAM credentials.")),
  overview.is_read_only ? null : section("Set a password", folded("Set or remove a password", changeForm("Set", [
    field("Name", "name", "text", "", { required: true }),
    field("Mechanism", "mechanism", MECHANISMS, "SCRAM-SHA-512"),
    field("Password (removed if empty)", "password", "password", "", { autocomplete: "new-password" }),
  ], async (values) => {
    await ask("/api/users", "POST", { ...values, password: values.password || null });
  })))];
}

const entityText = (entity) => Object.entries(entity)
  .map(([kind, name]) => `${kind} ${name === null ? "(default)" : name}`).join(", ");

export async function quotas(overview) {
  const found = await ask("/api/quotas");
  return ["Quotas", views(), section("", table("Quotas", [
    ["Of", (quota) => entityText(quota.entity)],
    ["Limits", (quota) => Object.entries(quota.values)
      .map(([name, value]) => `${name} ${number(value)}`).join(", ")],
  ], found.quotas, "There are no quotas.")),
  overview.is_read_only ? null : section("Set a quota", folded("Set or remove a quota", changeForm("Set", [
    field("Of", "kind", [["user", "user"], ["client-id", "client id"], ["ip", "IP address"]]),
    field("Name (the default of all if empty)", "name"),
    field("Quota", "quota", ["producer_byte_rate", "consumer_byte_rate", "request_percentage",
      "controller_mutation_rate", "connection_creation_rate"].map((each) => [each, each])),
    field("Limit (removed if empty)", "limit", "number", "", { min: 0, step: "any" }),
  ], async (values) => {
    await ask("/api/quotas", "POST", {
      entity: { [values.kind]: values.name || null },
      values: { [values.quota]: values.limit === "" ? null : Number(values.limit) },
    });
  })))];
}

export async function clientMetrics(overview) {
  const found = await ask("/api/client-metrics");
  const removal = (name) => (overview.is_read_only ? null
    : changeForm("Remove", [], async () => { await ask("/api/client-metrics", "DELETE", { name }); },
      { "aria-label": `Remove ${name}` }));
  const shown = found.subscriptions.map((each) => section(each.name, table("Settings", [
    ["Setting", (one) => one.name],
    ["Value", (one) => one.value],
  ], each.settings), removal(each.name)));
  return ["Client metrics", views(), ...(shown.length ? shown
    : [section("", h("p", { className: "note" }, "There is no subscription, so clients push no metrics (KIP-714)."))]),
  overview.is_read_only ? null : section("A subscription", folded("Add or change a subscription", changeForm("Set", [
    field("Name", "name", "text", "", { required: true }),
    field("Metrics (prefixes with commas; * for all)", "metrics", "text", "*"),
    field("Every so many milliseconds", "interval.ms", "number", "60000", { min: 100 }),
    field("Only clients that match (as client_id=app.*)", "match"),
  ], async ({ name, ...settings }) => {
    for (const each of Object.keys(settings)) settings[each] ||= null;
    await ask("/api/client-metrics", "POST", { name, settings });
  })))];
}
