// The orders page: a form, one order live, and a search. All text from outside goes in as text.

const byId = (id) => document.getElementById(id);
const BAD = new Set(["FAILED", "CANCELLED"]);
const WHOLE_WAY = ["CREATED", "VALIDATED", "PAID", "SHIPPED"];
const WHO = {
  CREATED: "customer",
  VALIDATED: "aggregator",
  FAILED: "aggregator",
  PAID: "payments",
  SHIPPED: "warehouse",
  CANCELLED: "customer or payments",
};
const CHECKS = { FRAUD: "fraud", INVENTORY: "inventory", ORDER_DETAILS: "order details" };

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("data-") || key.startsWith("aria-")) made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    return { ok: false, body: { detail: "The orders service does not answer." } };
  }
  const body = await response.json().catch(() => ({ detail: `It answered ${response.status}.` }));
  return { ok: response.ok, body };
}

// --- the form ---

function addLine(product = "item-001", quantity = "2", price = "2.55") {
  const number = byId("lines").children.length + 1;
  const input = (name, value, label) =>
    element("input", { name, value, autocomplete: "off", "aria-label": `${label}, line ${number}` });
  const row = element("tr");
  const remove = element("button", { type: "button", textContent: "×" });
  remove.setAttribute("aria-label", `Remove line ${number}`);
  remove.addEventListener("click", () => {
    row.remove();
    byId("add-line").focus();
  });
  const amount = input("quantity", quantity, "Quantity");
  amount.inputMode = "numeric";
  const each = input("unit_price", price, "Price each");
  each.inputMode = "decimal";
  row.append(
    element("td", {}, input("product_id", product, "Product")),
    element("td", {}, amount),
    element("td", {}, each),
    element("td", {}, remove),
  );
  byId("lines").append(row);
  return row;
}

function orderInForm() {
  const form = byId("place");
  const lines = [...byId("lines").children].map((row) => {
    const value = (name) => row.querySelector(`[name=${name}]`).value.trim();
    const quantity = value("quantity");
    return {
      product_id: value("product_id"),
      // What is no number is sent as it is: the service says what is wrong with it.
      quantity: /^-?\d+$/.test(quantity) ? Number(quantity) : quantity,
      unit_price: value("unit_price"),
    };
  });
  const order = { customer_id: form.customer_id.value.trim(), lines };
  const country = form.country.value.trim();
  if (country) order.country = country;
  return order;
}

function inWords(pointer) {
  const parts = pointer.replace("#", "").split("/").filter(Boolean);
  const words = parts.map((part) => (/^\d+$/.test(part) ? `line ${Number(part) + 1}` : part.replace("_", " ")));
  return words.length ? `${words.filter((word) => word !== "lines").join(", ")}: ` : "";
}

function showWrong(problem) {
  const errors = problem.errors ?? [{ pointer: "", detail: problem.detail }];
  const texts = errors.map((error) => `${inWords(error.pointer)}${error.detail}`);
  byId("place-errors").replaceChildren(...texts.map((text) => element("li", { textContent: text })));
}

async function place(event) {
  event.preventDefault();
  const button = byId("place").querySelector("[type=submit]");
  button.disabled = true;
  byId("place-errors").replaceChildren();
  // The key belongs to this click: should the answer be lost, the browser may ask again.
  const { ok, body } = await ask("/v1/orders", {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() },
    body: JSON.stringify(orderInForm()),
  });
  button.disabled = false;
  if (!ok) return showWrong(body);
  location.hash = body.id;
}

// --- one order, live ---

let stream = null;

function openOrder() {
  const id = decodeURIComponent(location.hash.slice(1));
  stream?.close();
  stream = null;
  byId("order").hidden = !id;
  if (!id) return;
  byId("order-id").textContent = id;
  byId("order-error").textContent = "";
  byId("order-summary").textContent = "";
  byId("steps").replaceChildren();
  byId("history").replaceChildren();
  const shown = [...document.querySelectorAll("nav a")].find((each) => each.textContent === "console");
  byId("order-console").hidden = !shown;
  if (shown) byId("order-console").href = `${shown.href.replace(/\/$/, "")}/live?q=${encodeURIComponent(id)}`;
  byId("order-title").focus();
  stream = new EventSource(`/v1/orders/${encodeURIComponent(id)}/stream`);
  const mine = stream;
  stream.addEventListener("order", (message) => showOrder(JSON.parse(message.data)));
  stream.addEventListener("open", () => (byId("order-error").textContent = ""));
  stream.addEventListener("error", async () => {
    if (mine !== stream) return;
    if (mine.readyState !== EventSource.CLOSED) {
      byId("order-error").textContent = "The line is lost; trying again.";
      return;
    }
    const { ok, body } = await ask(`/v1/orders/${encodeURIComponent(id)}`);
    byId("order-error").textContent = ok ? "The line is lost." : body.detail;
  });
}

function showOrder({ events, checks }) {
  const order = events.at(-1);
  const lines = order.lines.map((line) => `${line.quantity} × ${line.product_id}`).join(", ");
  byId("order-summary").textContent =
    `${order.customer_id}, ${order.total} for ${lines}. Trace ${order.correlation_id}.`;
  const reached = events.map((event) => event.state);
  const way = BAD.has(order.state)
    ? reached
    : [...reached, ...WHOLE_WAY.slice(WHOLE_WAY.indexOf(order.state) + 1)];
  byId("steps").replaceChildren(
    ...way.map((state, place) => {
      const step = element("li", { textContent: state });
      if (place < reached.length) step.setAttribute("data-reached", "");
      if (BAD.has(state)) step.setAttribute("data-bad", "");
      if (place === reached.length - 1) step.setAttribute("aria-current", "step");
      return step;
    }),
  );
  if (byId("state").textContent !== order.state) byId("state").textContent = order.state;
  byId("cancel").disabled = !["CREATED", "VALIDATED", "PAID"].includes(order.state);
  byId("ship").disabled = order.state !== "PAID";
  byId("history").replaceChildren(...history(events, checks));
}

function history(events, checks) {
  const rows = [];
  for (const event of events) {
    if (rows.length === 1) rows.push(...checks.map(checkRow));
    rows.push(eventRow(event));
  }
  if (events.length === 1) rows.push(...checks.map(checkRow));
  return rows;
}

function checkRow(check) {
  const what = check.reason ? `${check.result}: ${check.reason}` : check.result;
  return element(
    "tr",
    {},
    element("td"),
    element("td", { textContent: CHECKS[check.check] ?? check.check }),
    element("td", { textContent: what, "data-result": check.result }),
  );
}

function eventRow(event) {
  const reasons = event.reasons.map((reason) => reason.reason ?? reason.code).join("; ");
  const at = new Date(event.updated_at);
  const time = element("time", { dateTime: event.updated_at, textContent: clock(at) });
  return element(
    "tr",
    {},
    element("td", {}, time),
    element("td", { textContent: WHO[event.state] ?? "" }),
    element("td", { textContent: reasons ? `${event.state}: ${reasons}` : event.state }),
  );
}

function clock(at) {
  return at.toLocaleTimeString([], { hour12: false }) + "." + String(at.getMilliseconds()).padStart(3, "0");
}

async function command(method, path) {
  const id = encodeURIComponent(byId("order-id").textContent);
  const { ok, body } = await ask(`/v1/orders/${id}${path}`, { method });
  byId("order-error").textContent = ok ? "" : body.detail;
}

// --- the search ---

let asked = null;

async function find(cursor) {
  const query = new URLSearchParams(asked);
  query.set("limit", "20");
  if (cursor) query.set("cursor", cursor);
  const { ok, body } = await ask(`/v1/orders?${query}`);
  if (!ok) {
    byId("found-note").textContent = body.detail;
    return;
  }
  if (!cursor) byId("found").replaceChildren();
  byId("found").append(...body.orders.map(foundRow));
  const count = byId("found").children.length;
  byId("found").closest("table").hidden = count === 0;
  const next = body.next;
  const counted = ["No order is like that", "One order"][count] ?? `${count} orders`;
  byId("found-note").textContent = `${counted}${next ? ", and more" : ""}.`;
  byId("more").hidden = next === null;
  byId("more").onclick = () => find(next);
}

function foundRow(order) {
  const link = element("a", { href: `#${encodeURIComponent(order.id)}`, textContent: order.id });
  return element(
    "tr",
    {},
    element("td", {}, link),
    element("td", { textContent: order.customer_id }),
    element("td", { textContent: order.state }),
    element("td", { textContent: order.total, className: "number" }),
  );
}

byId("add-line").addEventListener("click", () => addLine("", "1", "").querySelector("input").focus());
byId("place").addEventListener("submit", place);
byId("cancel").addEventListener("click", () => command("DELETE", ""));
byId("ship").addEventListener("click", () => command("POST", "/shipment"));
byId("find").addEventListener("submit", (event) => {
  event.preventDefault();
  asked = [...new FormData(byId("find"))].filter(([, value]) => value.trim());
  find(null);
});
for (const place of document.querySelectorAll(".origin")) place.textContent = location.origin;
addLine();
addEventListener("hashchange", openOrder);
openOrder();
