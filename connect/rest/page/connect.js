// The worker's page: every connector, its tasks and how fast they are, every two seconds. All text
// from outside goes in as text. What is there already is changed in place, so that neither focus
// nor an opened error is lost.

const byId = (id) => document.getElementById(id);
const EVERY_MS = 2000;
const SOON_MS = 300; // After a command, whose effect comes a moment later.
const COMMANDS = [
  ["Pause", "PUT", "/pause", (state) => state.target === "STARTED"],
  ["Resume", "PUT", "/resume", (state) => state.target !== "STARTED"],
  ["Restart", "POST", "/restart?includeTasks=true", (state) => state.target !== "STOPPED"],
];
const HEADINGS = ["Task", "State", "Records/s", "Records", "Lag", "Skipped", "Restarts", "Worker"];
const NUMBERS = new Set(["Records/s", "Records", "Lag", "Skipped", "Restarts"]);

const cards = new Map();
let before = new Map(); // What tasks had done when they were last seen, by connector and number.
let timer = null;
let soon = 0; // How often to look soon.

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("data-") || key.startsWith("aria-")) made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

function say(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    return { ok: false, body: { message: "The worker does not answer." } };
  }
  const text = await response.text();
  try {
    return { ok: response.ok, body: text ? JSON.parse(text) : null };
  } catch {
    return { ok: false, body: { message: `It answered ${response.status}.` } };
  }
}

// --- one connector ---

function makeCard(name) {
  const heading = element("h2", { textContent: name });
  const state = element("span", { className: "state" });
  const what = element("p", { className: "note" });
  const buttons = element("p", { className: "buttons" });
  for (const [word, method, path] of COMMANDS) {
    const button = element("button", { type: "button", textContent: word });
    button.setAttribute("aria-label", `${word} ${name}`);
    button.addEventListener("click", () => command(name, method, path));
    buttons.append(button);
  }
  const head = element("tr");
  for (const text of HEADINGS) {
    const cell = element("th", { scope: "col", textContent: text });
    if (NUMBERS.has(text)) cell.className = "number";
    head.append(cell);
  }
  const rows = element("tbody");
  const table = element("table", {}, element("thead", {}, head), rows);
  const scroll = element("div", { className: "scroll", tabIndex: 0, role: "region" }, table);
  scroll.setAttribute("aria-label", `Tasks of ${name}`);
  const errors = element("div");
  const title = element("div", { className: "title" }, heading, state);
  const section = element("section", { "data-connector": name }, title, what, buttons, scroll, errors);
  section.setAttribute("aria-label", name);
  return { section, state, what, buttons, scroll, rows, errors };
}

function showConnector(card, connector, seconds) {
  showState(card.state, connector.state);
  const where = connector.worker ? ` at ${connector.worker}` : "";
  const notes = [
    connector.note && ` ${connector.note}`,
    ...connector.tasks.map((task) => task.note && ` Task ${task.id}: ${task.note}`),
  ];
  say(card.what, `A ${connector.type}${where}.${notes.filter(Boolean).join("")}`);
  [...card.buttons.children].forEach((button, place) => {
    button.disabled = !COMMANDS[place][3](connector);
  });
  card.scroll.hidden = connector.tasks.length === 0;
  while (card.rows.children.length > connector.tasks.length) card.rows.lastChild.remove();
  connector.tasks.forEach((task, place) => {
    const row = card.rows.children[place] ?? card.rows.appendChild(makeRow());
    showTask(row, connector, task, seconds);
  });
  showErrors(card.errors, [
    ["The connector", connector.error],
    ...connector.tasks.map((task) => [`Task ${task.id}`, task.error]),
  ]);
}

function showState(where, state) {
  say(where, state);
  where.dataset.state = state;
}

function makeRow() {
  const row = element("tr");
  for (const text of HEADINGS) {
    const cell = element("td", { "data-heading": text });
    if (NUMBERS.has(text)) cell.className = "number";
    if (text === "State") cell.append(element("span", { className: "state" }));
    row.append(cell);
  }
  return row;
}

function showTask(row, connector, task, seconds) {
  const key = `${connector.name}-${task.id}`;
  const counts = task.counts;
  const last = before.get(key);
  const isSame = counts && last && counts.out >= last.out && seconds > 0;
  const rate = isSame ? (counts.out - last.out) / seconds : null;
  const shown = [
    task.id,
    null,
    rate === null ? "–" : rate.toLocaleString([], { maximumFractionDigits: rate < 10 ? 1 : 0 }),
    counts?.out.toLocaleString() ?? "–",
    counts?.lag?.toLocaleString() ?? "–",
    counts?.skipped.toLocaleString() ?? "–",
    task.restarts,
    task.worker,
  ];
  shown.forEach((text, place) => {
    if (text !== null) say(row.children[place], String(text));
  });
  showState(row.children[1].firstChild, task.state);
}

function showErrors(where, all) {
  const errors = all.filter(([, error]) => error);
  while (where.children.length > errors.length) where.lastChild.remove();
  errors.forEach(([who, error], place) => {
    const there = where.children[place] ?? where.appendChild(
      element("details", {}, element("summary"), element("pre", { tabIndex: 0 }, element("code"))),
    );
    const at = error.timestamp ? ` at ${new Date(error.timestamp).toLocaleTimeString()}` : "";
    const how = error.is_now ? "has failed" : "had failed, and was started again";
    const reason = error.trace.trim().split("\n").at(-1);
    say(there.querySelector("summary"), `${who} ${how}${at}: ${reason}`);
    say(there.querySelector("code"), error.trace);
    there.toggleAttribute("data-past", !error.is_now);
  });
}

async function command(name, method, path) {
  const { ok, body } = await ask(`/connectors/${encodeURIComponent(name)}${path}`, { method });
  say(byId("refusal"), ok ? "" : (body?.message ?? "It did not work."));
  soon = 6;
  look();
}

// --- all of them ---

function showAll(state, at) {
  const seconds = (at - showAll.last) / 1000;
  const names = new Set(state.connectors.map((connector) => connector.name));
  for (const [name, card] of cards) {
    if (names.has(name)) continue;
    card.section.remove();
    cards.delete(name);
  }
  state.connectors.forEach((connector, place) => {
    let card = cards.get(connector.name);
    if (!card) {
      card = makeCard(connector.name);
      cards.set(connector.name, card);
      byId("connectors").insertBefore(card.section, byId("connectors").children[place] ?? null);
    }
    showConnector(card, connector, seconds);
  });
  const tasks = state.connectors.flatMap((one) => one.tasks.map((task) => [one.name, task]));
  before = new Map(tasks.filter(([, task]) => task.counts).map(([name, task]) => [`${name}-${task.id}`, task.counts]));
  showAll.last = at;
  byId("none").hidden = state.connectors.length > 0;
  const failed = tasks.filter(([, task]) => task.state === "FAILED").length;
  const many = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  const group = state.group ? ` of the cluster ${state.group}` : ", alone";
  const counted = `${many(state.connectors.length, "connector")}, ${many(tasks.length, "task")}`;
  say(byId("summary"), `${counted}, ${failed} failed. Worker ${state.worker}${group}.`);
}

function showBadge(state, text) {
  const badge = document.querySelector(".badge");
  badge.dataset.state = state;
  say(badge, text);
}

let isLooking = false;

async function look() {
  if (isLooking) return;
  isLooking = true;
  clearTimeout(timer);
  const { ok, body } = await ask("/page/state");
  if (ok) showAll(body, performance.now());
  if (!ok) showBadge("reconnecting", "not reached");
  else if (body.ready) showBadge("live", "ready");
  else showBadge("stale", "waiting for its cluster");
  isLooking = false;
  if (!document.hidden) timer = setTimeout(look, soon-- > 0 ? SOON_MS : EVERY_MS);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) look();
});
for (const place of document.querySelectorAll(".origin")) place.textContent = location.origin;
look();
