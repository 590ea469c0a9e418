// Follows /events and shows each snapshot. The badge tells how far the figures can be trusted:
// live; stale, when the job has not been heard of; reconnecting, when this server has not.

import { drawLatency, drawSeries } from "/static/charts.js";
import { amount, count, fillTable, milliseconds, setText } from "/static/tables.js";

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

function grain() {
  return document.querySelector("input[name=grain]:checked").value;
}

function showTiles({ summary, latency }) {
  setText("tile-orders", count(summary.orders));
  setText("tile-validated", count(summary.states.VALIDATED));
  setText("tile-failed", count(summary.states.FAILED));
  setText("tile-revenue", amount(summary.revenue_validated));
  const p95 = (step) => latency.find((row) => row.step === step)?.p95;
  setText("tile-latency", milliseconds(p95("validated or failed")));
  setText("tile-freshness", milliseconds(p95("shown here")));
}

function showSeries() {
  const windows = snapshot.series[grain()];
  fillTable("table-series", [
    { title: `${grain()} (UTC)`, of: (row) => label(row.start) },
    words,
    { title: "validated", of: (row) => count(row.validated) },
    { title: "failed", of: (row) => count(row.failed) },
    revenue,
    { title: "closed", of: (row) => (row.closed ? "yes" : "no") },
  ], windows, (row) => label(row.start));
  return drawSeries(document.getElementById("series-chart"), windows);
}

function label(start) {
  return grain() === "day" ? start.slice(0, 10) : start.slice(0, 16).replace("T", " ");
}

function showTables({ summary, ...rest }) {
  fillTable("table-funnel", [named("step", "step"), words], rest.funnel,
    (row) => row.step, (row) => row.orders);
  fillTable("table-latency",
    [named("until", "step"), timed("p50"), timed("p95"), timed("p99"), timed("max"), words],
    rest.latency, (row) => row.step);
  const checks = Object.entries(summary.checks).map(([check, results]) => ({ check, ...results }));
  fillTable("table-checks", [
    named("check", "check"),
    ...["PASS", "FAIL", "ERROR"].map((name) => ({ title: name, of: (row) => count(row[name]) })),
  ], checks, (row) => row.check);
  fillTable("table-check-latency",
    [named("check", "step"), timed("p50"), timed("p95"), timed("p99"), { ...words, title: "verdicts" }],
    rest.check_latency, (row) => row.step);
  fillTable("table-verdicts", [named("check", "check"), named("reason", "code"), words],
    rest.verdicts, (row) => `${row.check} ${row.code}`, (row) => row.orders);
  fillTable("table-failures",
    [named("check", "check"), named("reason", "code"), words, { ...revenue, title: "lost" }],
    rest.failures, (row) => `${row.check} ${row.code}`, (row) => row.orders);
  fillTable("table-products", [
    named("product", "key"), named("description", "description"),
    { title: "quantity", of: (row) => count(row.quantity) }, revenue,
  ], rest.products, (row) => row.key, (row) => Number(row.revenue));
  fillTable("table-countries", [named("country", "key"), words, revenue], rest.countries,
    (row) => row.key, (row) => Number(row.revenue));
  fillTable("table-segments", [
    named("segment", "segment"),
    { title: "customers", of: (row) => count(row.customers) }, words, revenue,
  ], rest.segments, (row) => row.segment, (row) => row.customers);
  setText("late-orders", count(rest.late_orders));
  setText("set-aside", count(rest.set_aside));
}

function show() {
  if (snapshot === null) return;
  showTiles(snapshot);
  showTables(snapshot);
  showSeries();
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
document.getElementById("grains").addEventListener("change", schedule);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", schedule);
addEventListener("beforeprint", () => {
  for (const element of document.querySelectorAll("details")) element.open = true;
});
follow();
