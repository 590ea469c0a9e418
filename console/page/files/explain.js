// Why a record or a group is as it is: sentences, each with what to do.

import { ask, field, h, parameters, path, query, queryForm, section } from "/page/parts.js";
import { tabsOfGroup } from "/page/groups.js";
import { tabsOfTopic } from "/page/topics.js";

const TITLES = { problem: "Problem", notice: "Notice", fact: "Fact" };

function findings(found) {
  const count = found.problems === 1 ? "1 problem" : `${found.problems || "no"} problems`;
  return section(`${found.subject}: ${count}`,
    h("ul", { className: "findings" }, found.findings.map((one) =>
      h("li", { "data-severity": one.severity },
        h("strong", {}, `${TITLES[one.severity] || one.severity}: `), one.sentence,
        one.advice ? h("p", { className: "note" }, one.advice) : null,
        h("span", { className: "kind" }, one.code)))));
}

const explained = (...names) => async () => {
  const found = await ask("/api" + path(...names));
  return [found.subject, findings(found)];
};

export const explainCluster = explained("explain");
export const explainTransaction = (overview, id) => explained("transactions", id, "explain")();
export const explainProducer = (overview, id) => explained("producers", id, "explain")();

export async function explainTopic(overview, topic) {
  const wanted = parameters();
  const found = await ask("/api" + path("topics", topic, "explain") + query(wanted));
  return [topic, tabsOfTopic(overview, topic), section("", queryForm("Explain", [
    field("Partition", "partition", "text", wanted.partition || "", { inputMode: "numeric" }),
    field("Offset", "offset", "text", wanted.offset || "", { inputMode: "numeric" }),
  ])), findings(found)];
}

export async function explainGroup(overview, id) {
  const found = await ask("/api" + path("groups", id, "explain"));
  return [id, tabsOfGroup(overview, id), findings(found)];
}
