// What every view is built of. Texts from outside become text nodes, never HTML.

export function h(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key.includes("-") || key === "role" || key === "for") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined));
  return made;
}

export const byId = (id) => document.getElementById(id);

/** An address of names, each escaped. */
export const path = (...names) => "/" + names.map(encodeURIComponent).join("/");

export const link = (address, text, properties = {}) =>
  h("a", { href: address, ...properties }, text);

export function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value != null);
  const text = new URLSearchParams(given).toString();
  return text ? "?" + text : "";
}

export const parameters = () => Object.fromEntries(new URLSearchParams(location.search));

export function refuse(text) {
  byId("refusal").textContent = text;
}

/** Ask the console for JSON. A refusal is an exception whose message says why. */
export async function ask(address, method = "GET", body = undefined) {
  let response;
  try {
    response = await fetch(address, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Error("The console does not answer.");
  }
  const answer = await response.json().catch(() => ({ detail: `It answered ${response.status}.` }));
  if (!response.ok) throw new Error(answer.detail || `It answered ${response.status}.`);
  return answer;
}

export const section = (title, ...children) =>
  h("section", { "aria-label": title }, title ? h("h2", {}, title) : null, ...children);

/** Columns are [title, cell of a row, class]. A cell is a text, a node or a list of them. */
export function table(caption, columns, rows, empty = "There is nothing.") {
  if (!rows.length) return h("p", { className: "note" }, empty);
  const head = columns.map(([title, , kind]) =>
    h("th", { scope: "col", className: kind || "" }, title));
  const body = rows.map((row) => tableRow(columns, row));
  const made = h("table", { "aria-label": caption },
    h("thead", {}, h("tr", {}, head)), h("tbody", {}, body));
  return h("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": caption }, made);
}

export function tableRow(columns, row) {
  const cells = columns.map(([, cell, kind]) => {
    const found = cell(row);
    return h("td", { className: kind || "" }, found === null || found === undefined ? "" : found);
  });
  return h("tr", row.state ? { "data-state": row.state } : {}, cells);
}

export function facts(pairs) {
  return h("dl", { className: "facts" },
    pairs.filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** A labelled field. `kind` is an input's type, a list of choices, or "area". */
export function field(label, name, kind = "text", value = "", properties = {}) {
  let control;
  if (Array.isArray(kind)) {
    control = h("select", { name, "aria-label": label, ...properties }, kind.map(([each, text]) =>
      h("option", { value: each, selected: each === value }, text)));
  } else if (kind === "checkbox") {
    control = h("input", { type: kind, name, value: "1", checked: Boolean(value), ...properties });
    return h("label", { className: "check" }, control, label);
  } else if (kind === "area") {
    control = h("textarea", { name, value, spellcheck: false, ...properties });
  } else {
    control = h("input", { type: kind, name, value, autocomplete: "off", ...properties });
  }
  return h("label", {}, label, control);
}

const valuesOf = (form) => Object.fromEntries(new FormData(form));

/** A form whose values become the query of this address. */
export function queryForm(button, fields, keep = {}) {
  return h("form", {
    className: "row",
    onsubmit: (event) => {
      event.preventDefault();
      location.search = query({ ...keep, ...valuesOf(event.target) });
    },
  }, fields, h("button", {}, button));
}

/** A form that makes a change; `change` gets its values and returns where to go, or nothing. */
export function changeForm(button, fields, change, properties = {}) {
  const submit = h("button", properties, button);
  const said = h("p", { className: "errors", role: "alert" });
  return h("form", {
    className: "rows",
    onsubmit: async (event) => {
      event.preventDefault();
      submit.disabled = true;
      said.textContent = "";
      try {
        const target = await change(valuesOf(event.target));
        if (target === undefined) location.reload();
        else if (target !== null) location.assign(target);
      } catch (error) {
        said.textContent = error.message;
      }
      submit.disabled = false;
    },
  }, fields, h("div", {}, submit), said);
}

export const folded = (title, ...children) =>
  h("details", {}, h("summary", {}, title), ...children);

export function pages(found) {
  if (found.pages <= 1) return null;
  const to = (page) => location.pathname + query({ ...parameters(), page });
  return h("nav", { className: "pages tabs", "aria-label": "Pages" },
    found.page > 1 ? link(to(found.page - 1), "← previous", { rel: "prev" }) : null,
    h("span", {}, `page ${found.page} of ${found.pages}`),
    found.page < found.pages ? link(to(found.page + 1), "next →", { rel: "next" }) : null);
}

export function tabs(entries) {
  return h("nav", { className: "tabs", "aria-label": "Views of this" },
    h("ul", {}, entries.map(([address, text]) => {
      const isHere = decodeURI(address) === decodeURI(location.pathname);
      return h("li", {}, link(address, text, isHere ? { "aria-current": "page" } : {}));
    })));
}

/** A whole number as people read it; it may be a text of any length. */
export const number = (value) =>
  value === null || value === undefined ? "–" : String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");

export function bytes(value) {
  let size = Number(value);
  if (!Number.isFinite(size) || size < 0) return "–";
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (size < 1000) return `${size < 10 && unit !== "B" ? size.toFixed(1) : Math.round(size)} ${unit}`;
    size /= 1000;
  }
  return `${Math.round(size)} TB`;
}

export function duration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  const seconds = Number(milliseconds) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export function time(milliseconds) {
  const at = Number(milliseconds);
  if (!Number.isFinite(at) || at < 0) return "no time";
  const moment = new Date(at);
  if (Number.isNaN(moment.getTime())) return String(milliseconds);
  const two = (each) => String(each).padStart(2, "0");
  return `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} ` +
    `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}.` +
    String(moment.getMilliseconds()).padStart(3, "0");
}
