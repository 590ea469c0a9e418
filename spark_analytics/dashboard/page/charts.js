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

export function drawSeries(element, windows) {
  const x = windows.map((row) => row.start);
  const traces = [
    { type: "bar", name: "revenue", x, y: windows.map((row) => Number(row.revenue)),
      marker: { color: colour("--accent") } },
    { type: "scatter", mode: "lines+markers", name: "orders", yaxis: "y2", x,
      y: windows.map((row) => row.orders), line: { color: colour("--warn") },
      marker: { size: 4 } },
  ];
  return globalThis.Plotly.react(element, traces, layout({
    xaxis: { type: "date" },
    yaxis: { title: { text: "revenue" } },
    yaxis2: { title: { text: "orders", standoff: 12 }, tickmode: "auto", nticks: 5, overlaying: "y", side: "right", showgrid: false },
  }), CONFIG);
}

export function drawLatency(element, rows) {
  const shades = { p50: "--bar", p95: "--accent", p99: "--warn" };
  const traces = Object.entries(shades).map(([name, shade]) => ({
    type: "bar", name, x: rows.map((row) => row.step), y: rows.map((row) => row[name]),
    marker: { color: colour(shade) },
  }));
  return globalThis.Plotly.react(element, traces, layout({
    barmode: "group",
    xaxis: { tickfont: { size: 10 }, automargin: true },
    yaxis: { title: { text: "ms" } },
  }), CONFIG);
}
