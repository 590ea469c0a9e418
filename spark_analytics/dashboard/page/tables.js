// Tables and bars as plain HTML: what a screen reader reads is what everybody sees.

const SVG = "http://www.w3.org/2000/svg";

export const count = (value) => Number(value ?? 0).toLocaleString("en");

// Amounts come as decimal strings and stay strings: a float would round them.
export function amount(text) {
  const [whole, fraction] = text.split(".");
  return `${whole.replace(/\B(?=(\d{3})+$)/g, ",")}.${fraction}`;
}

const MANY_CHARACTERS = 15;
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });

// A tile's number on one line: the style sheet makes the letters as large as their count allows.
// One of so many digits that nobody could read it is rounded, and told exactly when pointed at.
export function setNumber(testId, text) {
  const element = document.querySelector(`[data-testid="${testId}"]`);
  const isLong = text.length > MANY_CHARACTERS;
  element.title = isLong ? text : "";
  setText(testId, isLong ? compact.format(Number(text.replaceAll(",", ""))) : text);
  element.style.setProperty("--characters", String(element.textContent.length));
}

export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1000) return `${value} ms`;
  if (value < 120000) return `${(value / 1000).toFixed(1)} s`;
  return `${Math.round(value / 60000)} min`;
}

export function setText(testId, text) {
  const element = document.querySelector(`[data-testid="${testId}"]`);
  if (element.textContent !== text) element.textContent = text;
}

function cell(kind, text, attributes = {}) {
  const element = document.createElement(kind);
  // A long name in capitals may go on in the next line after each of its words.
  String(text).split(/(?<=_)/).forEach((part, number) => {
    element.append(...(number ? [document.createElement("wbr")] : []), part);
  });
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function bar(share) {
  const element = cell("td", "", { class: "bar", "aria-hidden": "true" });
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("viewBox", "0 0 100 10");
  const rect = document.createElementNS(SVG, "rect");
  rect.setAttribute("width", String(Math.max(100 * share, share > 0 ? 0.5 : 0)));
  rect.setAttribute("height", "10");
  svg.append(rect);
  element.append(svg);
  return element;
}

// columns: [{title, of: row => text, text: true for words}]; key: row => data-key of the row;
// bars: row => number, drawn as a share of the largest; nothing: what is said of no rows.
export function fillTable(testId, columns, rows, { key, bars = null, nothing }) {
  const table = document.querySelector(`[data-testid="${testId}"]`);
  const head = document.createElement("thead");
  const titles = document.createElement("tr");
  for (const column of columns) titles.append(
    cell("th", column.title, { scope: "col", ...(column.text ? { class: "text" } : {}) }));
  if (bars) titles.append(cell("td", "", { class: "bar", "aria-hidden": "true" }));
  head.append(titles);
  const body = document.createElement("tbody");
  const largest = bars ? Math.max(...rows.map(bars), 0) : 0;
  for (const row of rows) {
    const line = document.createElement("tr");
    line.dataset.key = key(row);
    columns.forEach((column, number) => {
      const attributes = number ? (column.text ? { class: "text" } : {}) : { scope: "row" };
      line.append(cell(number ? "td" : "th", column.of(row), attributes));
    });
    if (bars) line.append(bar(largest ? bars(row) / largest : 0));
    body.append(line);
  }
  if (!rows.length) {
    const line = document.createElement("tr");
    const width = String(columns.length + (bars ? 1 : 0));
    line.append(cell("td", nothing, { class: "nothing", colspan: width }));
    body.append(line);
  }
  table.replaceChildren(head, body);
}
