// Follows /events and shows each snapshot. The badge tells how far the figures can be trusted:
// live; stale, when the job has not been heard of; reconnecting, when this server has not.

import { drawLatency } from "/static/charts.js";
import { showSeries } from "/static/series.js";
import { amount, count, fillTable, milliseconds, setNumber, setText } from "/static/tables.js";

const SILENCE_MS = 4000;

const badge = document.getElementById("badge");
let snapshot = null;
let lastMessageAt = performance.now();

const words = { title: "orders", of: (row) => count(row.orders) };
const revenue = { title: "revenue", of: (row) => amount(row.revenue) };
const named = (title, name) => ({ title, text: true, of: (row) => row[name] });
const timed = (name) => ({ title: name, of: (row) => milliseconds(row[name]) });

function setBadge(state, text) {
  badge.dataset.state = state;
  if (badge.textContent !== text) badge.textContent = text;
}

function setStatus(status) {
  const age = milliseconds(status.age_ms);
  if (status.state === "live") setBadge("live", "live");
  else if (status.state === "stale") setBadge("stale", `stale for ${age}`);
  else setBadge("waiting", "waiting for the job");
}

function showTiles({ summary, latency }) {
  setNumber("tile-orders", count(summary.orders));
  setNumber("tile-validated", count(summary.states.VALIDATED));
  setNumber("tile-failed", count(summary.states.FAILED));
  setNumber("tile-revenue", amount(summary.revenue_validated));
  const p95 = (step) => latency.find((row) => row.step === step)?.p95;
  setNumber("tile-latency", milliseconds(p95("validated or failed")));
  setNumber("tile-freshness", milliseconds(p95("shown here")));
}

function showTables({ summary, ...rest }) {
  const nothing = "No orders yet.";
  const step = (row) => row.step;
  const code = (row) => `${row.check} ${row.code}`;
  fillTable("table-funnel", [named("step", "step"), words], rest.funnel,
    { key: step, bars: (row) => row.orders, nothing });
  fillTable("table-latency",
    [named("until", "step"), timed("p50"), timed("p95"), timed("p99"), timed("max"), words],
    rest.latency, { key: step, nothing });
  const checks = Object.entries(summary.checks).map(([check, results]) => ({ check, ...results }));
  fillTable("table-checks", [
    named("check", "check"),
    ...["PASS", "FAIL", "ERROR"].map((name) => ({ title: name, of: (row) => count(row[name]) })),
  ], checks, { key: (row) => row.check, nothing });
  fillTable("table-check-latency",
    [named("check", "step"), timed("p50"), timed("p95"), timed("p99"), { ...words, title: "verdicts" }],
    rest.check_latency, { key: step, nothing });
  fillTable("table-verdicts", [named("check", "check"), named("reason", "code"), words],
    rest.verdicts, { key: code, bars: (row) => row.orders, nothing: "No check has failed an order." });
  fillTable("table-failures",
    [named("check", "check"), named("reason", "code"), words, { ...revenue, title: "lost" }],
    rest.failures, { key: code, bars: (row) => row.orders, nothing: "No order has failed." });
  fillTable("table-products", [
    named("product", "key"), named("description", "description"),
    { title: "quantity", of: (row) => count(row.quantity) }, revenue,
  ], rest.products, { key: (row) => row.key, bars: (row) => Number(row.revenue), nothing });
  fillTable("table-countries", [named("country", "key"), words, revenue], rest.countries,
    { key: (row) => row.key, bars: (row) => Number(row.revenue), nothing });
  fillTable("table-segments", [
    named("segment", "segment"),
    { title: "customers", of: (row) => count(row.customers) }, words, revenue,
  ], rest.segments, { key: (row) => row.segment, bars: (row) => row.customers,
    nothing: "Not made yet: the first come some minutes after the first orders." });
  setText("late-orders", count(rest.late_orders));
  setText("set-aside", count(rest.set_aside));
}

function show() {
  if (snapshot === null) return;
  showTiles(snapshot);
  showTables(snapshot);
  showSeries(snapshot.series);
  drawLatency(document.getElementById("latency-chart"), snapshot.latency);
  document.body.dataset.revision = snapshot.revision;
}

// A hidden page draws nothing; it catches up when it is looked at.
let isScheduled = false;
function schedule() {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    show();
  });
}

function follow() {
  const events = new EventSource("/events");
  events.addEventListener("snapshot", (event) => {
    lastMessageAt = performance.now();
    snapshot = JSON.parse(event.data);
    schedule();
  });
  events.addEventListener("status", (event) => {
    lastMessageAt = performance.now();
    setStatus(JSON.parse(event.data));
  });
  events.addEventListener("error", () => {
    setBadge("reconnecting", "reconnecting");
    // A browser gives up for good when the answer is an error, as a proxy may send.
    if (events.readyState === EventSource.CLOSED) setTimeout(follow, 1000);
  });
}

setInterval(() => {
  if (performance.now() - lastMessageAt > SILENCE_MS) setBadge("reconnecting", "reconnecting");
}, 1000);
document.getElementById("ranges").addEventListener("change", (event) => {
  // In the address, so that a page that is loaded again or passed on shows the same.
  history.replaceState(null, "", `#${event.target.value}`);
  schedule();
});
addEventListener("hashchange", schedule);
addEventListener("resize", schedule);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", schedule);
addEventListener("beforeprint", () => {
  for (const element of document.querySelectorAll("details")) element.open = true;
});
follow();
