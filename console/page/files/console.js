// Decides from the address which view is shown. Every view is an address that can be sent to others.

import { ask, byId, h, link, refuse } from "/page/parts.js";
import { oneTopic, partitionsOfTopic, settingsOfTopic, topics } from "/page/topics.js";
import { follow } from "/page/follow.js";
import { live } from "/page/live.js";
import { oneRecord, records } from "/page/records.js";
import { group, groups, resetGroup } from "/page/groups.js";
import {
  explainCluster, explainGroup, explainProducer, explainTopic, explainTransaction,
} from "/page/explain.js";
import { writeRecord } from "/page/writing.js";
import { connectors } from "/page/connectors.js";
import { acls, clientMetrics, mayView, quotas, users } from "/page/access.js";
import { schemas, subject } from "/page/schemas.js";
import { broker, brokers, quorum, transactions } from "/page/brokers.js";

const NAVIGATION = [
  ["/live", "Live"],
  ["/topics", "Topics"],
  ["/follow", "Follow"],
  ["/groups", "Groups"],
  ["/brokers", "Brokers"],
  ["/quorum", "Quorum"],
  ["/transactions", "Transactions"],
  ["/schemas", "Schemas", "has_registry"],
  ["/connectors", "Connectors", "connect"],
  ["/acls", "Access"],
  ["/quotas", "Quotas"],
];

// A view gets the names in its address and what the console may do, and returns title and content.
const VIEWS = [
  [/^\/$/, (overview) => (overview.has_stack ? live(overview) : topics(overview))],
  [/^\/live$/, live],
  [/^\/follow$/, follow],
  [/^\/topics$/, topics],
  [/^\/topics\/([^/]+)$/, oneTopic],
  [/^\/topics\/([^/]+)\/partitions$/, partitionsOfTopic],
  [/^\/topics\/([^/]+)\/settings$/, settingsOfTopic],
  [/^\/topics\/([^/]+)\/records$/, records],
  [/^\/topics\/([^/]+)\/records\/(\d+)\/(\d+)$/, oneRecord],
  [/^\/topics\/([^/]+)\/explain$/, explainTopic],
  [/^\/topics\/([^/]+)\/write$/, writeRecord],
  [/^\/groups$/, groups],
  [/^\/groups\/([^/]+)\/explain$/, explainGroup],
  [/^\/groups\/([^/]+)$/, group],
  [/^\/groups\/([^/]+)\/reset$/, resetGroup],
  [/^\/brokers$/, brokers],
  [/^\/brokers\/(\d+)$/, broker],
  [/^\/quorum$/, quorum],
  [/^\/transactions$/, transactions],
  [/^\/transactions\/([^/]+)\/explain$/, explainTransaction],
  [/^\/producers\/(\d+)\/explain$/, explainProducer],
  [/^\/explain$/, explainCluster],
  [/^\/schemas$/, schemas],
  [/^\/schemas\/([^/]+)$/, subject],
  [/^\/connectors$/, connectors],
  [/^\/acls$/, acls],
  [/^\/acls\/may$/, mayView],
  [/^\/users$/, users],
  [/^\/quotas$/, quotas],
  [/^\/client-metrics$/, clientMetrics],
];

function showNavigation(overview) {
  const front = overview?.has_stack ? "/live" : "/topics";
  const here = location.pathname === "/" ? front : location.pathname;
  byId("views").firstElementChild.replaceChildren(...NAVIGATION.filter(
    ([, , needs]) => !needs || overview?.[needs]).map(([address, text]) => {
    const isHere = here === address || here.startsWith(address + "/");
    return h("li", {}, link(address, text, isHere ? { "aria-current": "page" } : {}));
  }));
}

function showCluster(overview) {
  const can = overview.is_read_only ? " · read only" : "";
  const hidden = overview.has_masks ? " · parts of records are hidden" : "";
  byId("cluster").textContent =
    `${overview.brokers} ${overview.brokers === 1 ? "broker" : "brokers"} at ${overview.bootstrap_servers}${can}${hidden}`;
}

async function show() {
  showNavigation();
  const overview = await ask("/api/overview");
  showCluster(overview);
  showNavigation(overview);
  for (const [pattern, view] of VIEWS) {
    const found = location.pathname.match(pattern);
    if (!found) continue;
    const names = found.slice(1).map(decodeURIComponent);
    const [title, ...content] = await view(overview, ...names);
    byId("title").textContent = title;
    document.title = `${title} · Millstream`;
    byId("view").replaceChildren(...content.filter((each) => each));
    return;
  }
  refuse("There is no such view.");
}

show().catch((error) => refuse(error.message));
