// Orders and revenue over a range of time: which range, in words, as a chart and as a table.

import { drawSeries } from "/static/charts.js";
import { amount, count, fillTable, setText } from "/static/tables.js";

const SIZES_MS = { minute: 60e3, hour: 3600e3, day: 86400e3 };
const DAY = new Intl.DateTimeFormat("en-GB", {
  timeZone: "UTC", day: "numeric", month: "short", year: "numeric" });
const MINUTE = new Intl.DateTimeFormat("en-GB", {
  timeZone: "UTC", hour: "2-digit", minute: "2-digit" });

// The range of the address, else the one the server finds best.
function chosenRange(series) {
  const asked = location.hash.slice(1);
  return asked in series.ranges ? asked : series.first_shown;
}

function label(grain, start) {
  return grain === "day" ? start.slice(0, 10) : start.slice(0, 16).replace("T", " ");
}

function inWords(grain, time) {
  return grain === "day" ? DAY.format(time) : `${DAY.format(time)}, ${MINUTE.format(time)}`;
}

function describe({ grain, windows, gaps }) {
  if (!windows.length) return "No orders yet.";
  const size = SIZES_MS[grain];
  const first = Date.parse(windows[0].start);
  const last = Date.parse(windows.at(-1).start) + (grain === "day" ? 0 : size);
  const span = last - first < size ? inWords(grain, first)
    : `${inWords(grain, first)} to ${inWords(grain, last)}`;
  const missing = gaps.reduce((sum, gap) => sum + gap.windows, 0);
  const without = missing ? `; ${count(missing)} ${grain}s without orders are left out` : "";
  return `${span}, by the ${grain}${without}`;
}

export function showSeries(series) {
  const name = chosenRange(series);
  document.querySelector(`input[name=range][value=${name}]`).checked = true;
  const range = series.ranges[name];
  setText("series-span", describe(range));
  fillTable("table-series", [
    { title: `${range.grain} (UTC)`, of: (row) => label(range.grain, row.start) },
    { title: "orders", of: (row) => count(row.orders) },
    { title: "validated", of: (row) => count(row.validated) },
    { title: "failed", of: (row) => count(row.failed) },
    { title: "revenue", of: (row) => amount(row.revenue) },
    { title: "closed", of: (row) => (row.closed ? "yes" : "no") },
  ], range.windows, { key: (row) => label(range.grain, row.start), nothing: "No orders yet." });
  drawSeries(document.getElementById("series-chart"), range, SIZES_MS[range.grain]);
}
