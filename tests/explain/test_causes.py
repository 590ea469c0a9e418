"""Every cause holds in the facts it is about, not in facts like them, and says a sentence."""

from collections import Counter
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest

from common.kafka.admin.topics import PartitionDescription, TopicDescription
from common.kafka.topics import TopicPartition
from explain.asking.cluster import settled
from explain.asking.topics import TOPICS_AT_ONCE, is_in_order, worth_a_look
from explain.causes.cause import Severity, findings
from explain.explanations import SAME, TABLES, about_cluster, explanation
from explain.facts import Cluster, PartitionCase
from tests.explain.cases import (
    BEHIND,
    P0,
    P1,
    PARTITIONS,
    TRIALS,
    Trial,
    cluster,
    group,
    never_fetched,
    of_partition,
    partition,
    producer,
    record,
    shared,
    topic,
    transaction,
    twice,
)

INTEROP = Path(__file__).parents[1] / "interop"
ROWS = [(title, cause) for title, table in TABLES.items() for cause in table]


def codes(title: str, facts: Any) -> set[str]:
    return {one.code for one in findings(TABLES[title], facts)}


EACH = [
    pytest.param(title, code, trial, id=code)
    for title, own in TRIALS.items()
    for code, trial in own.items()
]


NOT_MADE = {
    "group-coordinator-loads": "a log that is read back for seconds is too large for a test",
    "asking-not-supported": "the brokers here know every question",
    "more-of-the-same": "it is about the length of an explanation",
}
"""Causes that no test makes with real brokers, and the reasons."""


def test_every_cause_is_made_with_real_brokers() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in INTEROP.rglob("test_*.py"))
    assert {cause.code for _, cause in ROWS if f'"{cause.code}"' not in texts} == NOT_MADE.keys()


def test_every_cause_has_a_trial() -> None:
    assert {title: set(own) for title, own in TRIALS.items()} == {
        title: {cause.code for cause in table} for title, table in TABLES.items()
    }
    assert len({cause.code for _, cause in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("title", "code", "trial"), EACH)
def test_a_cause_holds_where_it_should(title: str, code: str, trial: Trial) -> None:
    assert code in codes(title, trial.holds)
    assert code not in codes(title, trial.not_so)


@pytest.mark.parametrize(("title", "code", "trial"), EACH)
def test_a_cause_says_a_sentence_with_its_figures(title: str, code: str, trial: Trial) -> None:
    for one in findings(TABLES[title], trial.holds):
        for said in filter(None, (one.sentence, one.advice)):
            assert "{" not in said
            assert "None" not in said, said
            assert said[0].isupper() or said[0].isdigit() or said[0] == "`", said
            assert said.endswith((".", "?")), said
        if one.severity is Severity.PROBLEM:
            assert one.advice


@pytest.mark.parametrize(
    ("title", "facts"),
    [
        ("A partition", of_partition()),
        ("A record", record()),
        ("A group", group()),
        ("How far a group is", group()),
        ("A share group", shared()),
        ("A producer", producer()),
        ("A transaction", transaction()),
        ("The cluster", cluster()),
    ],
)
def test_what_is_well_gives_no_problem_and_no_notice(title: str, facts: Any) -> None:
    found = findings(TABLES[title], facts)
    assert found
    assert {one.severity for one in found} == {Severity.FACT}


def test_a_sentence_names_the_figures() -> None:
    (found,) = findings(TABLES["A partition"], PARTITIONS["partition-replica-down"].holds)[:1]
    assert found.sentence == (
        "Partition orders-0 is under-replicated: broker 3 has been silent for 40 seconds (since "
        "2027-01-15 07:59:20 UTC). In sync: brokers 1 and 2."
    )
    assert found.figures["silent"] == 40_000


def test_a_group_that_catches_up_says_when() -> None:
    trial = TRIALS["How far a group is"]["group-catches-up"]
    (said,) = [
        one.sentence
        for one in findings(TABLES["How far a group is"], trial.holds)
        if one.code == "group-catches-up"
    ]
    assert said == (
        "Group fraud is 3 offsets behind. It reads 0.7 records a second while 0.2 records a second "
        "are written, so it will have caught up in 6 seconds (2027-01-15 08:00:06 UTC)."
    )


def test_commits_of_a_later_look_are_not_held_against_an_earlier_end() -> None:
    later = {"committed": {P0: 15, P1: 10}, "ends": {P0: 15, P1: 10}}
    assert "group-offset-beyond-end" not in codes("How far a group is", twice(BEHIND, later))


def test_a_group_that_keeps_up_is_not_called_slow() -> None:
    """It was behind by 4 of 100 offsets, and then by 9: it commits in between."""
    before = {"committed": {P0: 96}, "ends": {P0: 100}}
    after = {"committed": {P0: 191}, "ends": {P0: 200}}
    assert "group-slower-than-producers" not in codes("How far a group is", twice(before, after))


def test_names_of_strangers_are_escaped() -> None:
    facts = group(kind=None, looks=(), group_id="a\x1b[2J\nb" + "x" * 300)
    (found,) = findings(TABLES["A group"], facts)
    assert "There is no group a\\x1b[2J\\nbxxx" in found.sentence
    assert "\n" not in found.sentence
    assert "..." in found.sentence


def test_of_a_partition_in_order_nothing_is_said() -> None:
    """So the explanation of a cluster may leave it out; what is not in order is looked at."""
    places = [*permutations((1, 2, 3), 2), (1, 2, 3)]
    said = Counter[bool]()
    for leader, replicas, isr, down in product((-1, 1, 2), places, places, ((), (1,), (2, 3))):
        one = partition(leader_id=leader, replicas=replicas, isr=isr, min_isr=None, earliest=None)
        found = findings(TABLES["A partition"], PartitionCase(cluster(*down), topic(one), one))
        is_left_out = is_in_order(
            PartitionDescription(0, leader, list(replicas), list(isr), None, None)
        )
        assert not (is_left_out and found), found
        said[is_left_out] += bool(found) or is_left_out
    assert min(said.values()) > 10


def test_of_many_topics_those_with_a_partition_out_of_order_are_worth_a_look() -> None:
    well, behind = (PartitionDescription(0, 1, [1, 2], isr, None, None) for isr in ([2, 1], [1]))
    topics = [
        TopicDescription(f"t-{number}", b"", False, [well]) for number in range(TOPICS_AT_ONCE)
    ]
    assert worth_a_look(topics) == topics
    odd = TopicDescription("odd", b"", False, [well, behind])
    assert worth_a_look([*topics, odd]) == [odd]


def test_many_findings_of_a_cause_are_shortened() -> None:
    numbered = [partition(name=TopicPartition("orders", each), isr=(1, 2)) for each in range(50)]
    topics = [topic(*numbered)]
    found = explanation("The cluster", about_cluster(cluster(3), topics, ()), ())
    down = [one for one in found.findings if one.code == "partition-replica-down"]
    (more,) = [
        one.figures
        for one in found.findings
        if one.code == "more-of-the-same" and one.figures["code"] == down[0].code
    ]
    assert len(down) + more["count"] == 50
    assert len(down) == SAME


@pytest.mark.parametrize(
    ("holders", "silence", "lacking"),
    [
        pytest.param({1: True, 2: True, 3: False}, {}, [3], id="a replica that does not have it"),
        pytest.param({}, {2: "no answer"}, [2], id="a broker that does not answer"),
        pytest.param({}, {}, [2, 3], id="nothing is known of the followers"),
    ],
)
def test_what_the_high_watermark_waits_for(
    holders: dict[int, bool], silence: dict[int, str], lacking: list[int]
) -> None:
    case = record(9, one=partition(high_watermark=9, last_stable=9), batch=None, holders=holders)
    brokers = {
        node_id: replace(each, silence=silence.get(node_id))
        for node_id, each in case.cluster.brokers.items()
    }
    case = case._replace(cluster=replace(case.cluster, brokers=brokers))
    (found,) = findings(TABLES["A record"], case)
    assert (found.code, found.figures["lacking"]) == ("record-above-high-watermark", lacking)


@pytest.mark.parametrize("silent", [cluster(v2=6_000), never_fetched(2)], ids=["late", "never"])
def test_voters_that_endanger_the_quorum_are_named(silent: Cluster) -> None:
    found = findings(TABLES["The cluster"], silent)
    (risk,) = [one for one in found if one.code == "cluster-quorum-at-risk"]
    named = {one.figures["voter"] for one in found if "voter" in one.figures}
    assert named == silent.quorum.voters.keys() - set(risk.figures["left"]) == {2}


def test_a_voter_may_fetch_a_moment_after_an_election() -> None:
    looks = [never_fetched(2), cluster()]
    waits: list[float] = []
    assert settled(lambda: looks.pop(0), waits.append) == cluster()
    assert (looks, len(waits)) == ([], 1)
    assert settled(cluster, waits.append) == cluster()
    assert len(waits) == 1
