// The cluster as it changes: brokers, lag, what has happened, and switches of the stack's parts.

import {
  ask, duration, facts, h, link, number, path, refuse, section, table, time,
} from "/page/parts.js";
import { followed } from "/page/follow.js";

const SWITCHES = [
  ["kill", "Kill", (part) => part === "ready"],
  ["pause", "Pause", (part) => part === "ready"],
  ["stop", "Stop", (part) => part === "ready"],
  ["start", "Start", (part) => part === "stopped" || part === "paused"],
];

function switches(overview, broker) {
  if (!overview.has_stack || overview.is_read_only || !broker.part) return "";
  const name = `broker-${broker.id}`;
  return h("div", { className: "switches" }, SWITCHES
    .filter(([, , fits]) => fits(broker.part))
    .map(([action, text]) => h("button", {
      type: "button",
      className: action === "start" ? "" : "danger",
      "aria-label": `${text} ${name}`,
      onclick: (event) => {
        event.target.disabled = true;
        ask("/api" + path("stack", "parts", name, action), "POST", {})
          .catch((error) => refuse(error.message));
      },
    }, text)));
}

const columns = (overview) => [
  ["Broker", (each) => link(path("brokers", each.id), each.id), "number"],
  ["Address", (each) => each.address ?? "is gone"],
  ["Process", (each) => each.part ?? "–"],
  ["Leads", (each) => number(each.leads), "number"],
  ["Replicas", (each) => number(each.replicas), "number"],
  ["Out of sync", (each) => number(each.out_of_sync), "number"],
  ["Written, records/s", (each) => number(each.written), "number"],
  ["", (each) => switches(overview, each)],
];

export async function live(overview) {
  const brokers = h("div", {});
  const groups = h("div", {});
  const figures = h("div", {});
  const happened = h("ol", { className: "happened", "aria-label": "What has happened", role: "log" });
  const source = new EventSource("/api/watch");
  addEventListener("pagehide", () => source.close());
  source.addEventListener("begin", () => refuse(""));
  source.onerror = () => refuse("The connection broke; it is tried again.");
  source.addEventListener("picture", (event) => {
    const told = JSON.parse(event.data);
    if (told.failure) return refuse(told.failure);
    refuse("");
    show(told.picture);
    for (const each of told.happened) tell(each.at, each.sentence);
    return undefined;
  });
  const tell = (at, sentence) => {
    happened.prepend(h("li", {}, h("time", {}, time(at).slice(11, 21)), " ", sentence));
    while (happened.children.length > 100) happened.lastElementChild.remove();
  };
  const show = (picture) => {
    const focused = document.activeElement?.getAttribute("aria-label");
    brokers.replaceChildren(table("Brokers", columns(overview), picture.brokers));
    groups.replaceChildren(table("Groups", [
      ["Group", (each) => link(path("groups", each.id), each.id)],
      ["Lag, records", (each) => number(each.lag), "number"],
      ["Lag, time", (each) => duration(each.age_ms), "number"],
    ], picture.groups, "No group has committed offsets."));
    figures.replaceChildren(facts([
      ["partitions without leader", number(picture.without_leader)],
      ["under-replicated", number(picture.under_replicated)],
    ]));
    for (const button of brokers.querySelectorAll("button")) {
      if (focused && button.getAttribute("aria-label") === focused) button.focus();
    }
  };
  const stack = overview.has_stack ? await stackSection() : null;
  return ["Live",
    section("Brokers", brokers, figures),
    section("What has happened", happened,
      h("p", { className: "note" }, "Each sentence is a difference between two looks at the cluster, or a record that is followed.")),
    followed(tell),
    section("Groups", groups),
    stack];
}

async function stackSection() {
  const found = await ask("/api/stack");
  if (!found.addresses) return null;
  return section("This stack",
    facts([
      ...Object.entries(found.addresses).map(([name, address]) => [name,
        address.startsWith("http") ? link(address, address) : address]),
      ["data", found.data ?? "deleted at the end"],
    ]),
    h("h3", {}, "What to try next"),
    h("ul", { className: "steps" }, found.steps.map((step) =>
      h("li", {}, step.text, h("pre", { tabIndex: 0 }, h("code", {}, step.command))))));
}
