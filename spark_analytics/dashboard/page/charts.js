// The two charts with axes, by plotly.js. Colours come from the style sheet, so a change of
// theme draws them anew.

const CONFIG = { displayModeBar: false, responsive: true };

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function layout(more) {
  const axis = { gridcolor: colour("--grid"), zerolinecolor: colour("--line"), fixedrange: true };
  const { xaxis, yaxis, yaxis2, ...rest } = more;
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("--text"), family: "system-ui, sans-serif", size: 12 },
    margin: { l: 65, r: 60, t: 10, b: 40 },
    legend: { orientation: "h", y: 1.15 },
    hovermode: "x unified",
    hoverlabel: { bgcolor: colour("--panel"), font: { color: colour("--text") } },
    xaxis: { ...axis, ...xaxis },
    yaxis: { ...axis, rangemode: "tozero", ...yaxis },
    ...(yaxis2 ? { yaxis2: { ...axis, rangemode: "tozero", ...yaxis2 } } : {}),
    ...rest,
  };
}

// A chart of nothing would be axes with numbers that mean nothing.
function isShown(element, hasData) {
  element.hidden = !hasData;
  return hasData;
}

const TICK_PIXELS = 80;
const BRIEF = {
  day: { day: "numeric", month: "short" },
  hour: { hour: "2-digit", minute: "2-digit" },
};
const LONG = { day: { year: "numeric" }, hour: { day: "numeric", month: "short", year: "numeric" } };

// Some windows by name: plotly.js would number the time that is left out too. What all have in
// common stands below the first, and where it changes.
function ticks(element, grain, windows, x) {
  const kind = grain === "day" ? "day" : "hour";
  const format = (options) => new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options });
  const [brief, long] = [format(BRIEF[kind]), format(LONG[kind])];
  const name = (number) => long.format(Date.parse(windows[number].start));
  const step = Math.ceil(windows.length / Math.max(element.clientWidth / TICK_PIXELS, 2));
  const numbers = [...windows.keys()];
  const changes = numbers.filter((number) => number === 0 || name(number) !== name(number - 1));
  const chosen = numbers.filter((number) => changes.includes(number)
    || (number % step === 0 && changes.every((change) => Math.abs(number - change) >= step)));
  const text = chosen.map((number) => {
    const text = brief.format(Date.parse(windows[number].start));
    return changes.includes(number) ? `${text}<br>${name(number)}` : text;
  });
  return { tickmode: "array", tickvals: chosen.map((number) => x[number]), ticktext: text,
    tickangle: 0 };
}

const HOVER_FORMATS = { minute: "%-d %b %Y, %H:%M", hour: "%-d %b %Y, %H:00", day: "%a %-d %b %Y" };

// Every window stands at its middle. What the range leaves out the axis leaves out too, with a line
// that says so.
export function drawSeries(element, { grain, windows, gaps }, sizeMs) {
  if (!isShown(element, windows.length > 0)) return;
  const at = (start, offsetMs) => new Date(Date.parse(start) + offsetMs).toISOString();
  const x = windows.map((row) => at(row.start, sizeMs / 2));
  const line = { x: [], y: [] };
  windows.forEach((row, number) => {
    // No line across what is left out.
    if (gaps.some((gap) => gap.end === row.start)) { line.x.push(at(row.start, 0)); line.y.push(null); }
    line.x.push(x[number]);
    line.y.push(row.orders);
  });
  const traces = [
    { type: "bar", name: "revenue", x, y: windows.map((row) => Number(row.revenue)),
      width: .86 * sizeMs, marker: { color: colour("--accent") } },
    { type: "scatter", mode: "lines+markers", name: "orders", yaxis: "y2", ...line,
      line: { color: colour("--warn") }, marker: { size: 4 } },
  ];
  return globalThis.Plotly.react(element, traces, layout({
    xaxis: { type: "date", ...ticks(element, grain, windows, x), hoverformat: HOVER_FORMATS[grain],
      range: [windows[0].start, at(windows.at(-1).start, sizeMs)],
      rangebreaks: gaps.map((gap) => ({ bounds: [gap.start, gap.end] })) },
    yaxis: { title: { text: "revenue" } },
    yaxis2: { title: { text: "orders", standoff: 12 }, tickmode: "auto", nticks: 5, overlaying: "y", side: "right", showgrid: false },
    shapes: gaps.map((gap) => ({ type: "line", x0: gap.start, x1: gap.start, yref: "paper",
      y0: 0, y1: 1, line: { color: colour("--faint"), width: 1, dash: "dot" } })),
  }), CONFIG);
}

export function drawLatency(element, rows) {
  if (!isShown(element, rows.some((row) => row.orders))) return;
  const shades = { p50: "--bar", p95: "--accent", p99: "--warn" };
  const traces = Object.entries(shades).map(([name, shade]) => ({
    type: "bar", name, x: rows.map((row) => row.step), y: rows.map((row) => row[name]),
    marker: { color: colour(shade) },
  }));
  return globalThis.Plotly.react(element, traces, layout({
    barmode: "group",
    margin: { l: 65, r: 15, t: 10, b: 40 },
    xaxis: { tickfont: { size: 10 }, automargin: true },
    yaxis: { title: { text: "ms" } },
  }), CONFIG);
}
