"""What the cluster's topics make of a topology: task counts, internal topics, problems."""

import time

import pytest

from broker.coordinator.streams_group.configured_topology import StatusCode, configure
from broker.coordinator.streams_group.topology import topology_of, validate_topology
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    KeyValue,
    Subtopology,
    TopicInfo,
    Topology,
)


def configured(existing, *subtopologies):
    topology = Topology(subtopologies=list(subtopologies))
    validate_topology(topology)
    return configure(topology_of(topology), existing)


def info(name, partitions=0, **more):
    return TopicInfo(name=name, partitions=partitions, **more)


def sub(name, *sources, sinks=(), repartition=(), changelogs=(), together=()):
    return Subtopology(
        subtopology_id=name,
        source_topics=list(sources),
        repartition_sink_topics=list(sinks),
        repartition_source_topics=list(repartition),
        state_changelog_topics=[info(each) for each in changelogs],
        copartition_groups=[
            CopartitionGroup(source_topics=plain, repartition_source_topics=internal)
            for plain, internal in together
        ],
    )


def missing(found):
    return {each.name: each.partition_count for each in found.missing}


def test_counts_go_from_the_sources_through_repartition_topics_to_changelogs():
    found = configured(
        {"orders": 4},
        sub("0", "orders", sinks=["r1"]),
        sub("1", repartition=[info("r1")], sinks=["r2"], changelogs=["c1"]),
        sub("2", repartition=[info("r2")], changelogs=["c2"]),
    )
    assert missing(found) == {"c1": 4, "c2": 4, "r1": 4, "r2": 4}
    assert [each.task_count for each in found.subtopologies.values()] == [4, 4, 4]
    assert found.problem.status_code == StatusCode.MISSING_INTERNAL_TOPICS


def test_a_subtopology_has_as_many_tasks_as_its_largest_source():
    found = configured({"a": 2, "b": 5}, sub("0", "a", "b", changelogs=["c"]))
    assert missing(found) == {"c": 5}


def test_a_fixed_count_is_kept_and_settings_are_handed_on():
    topic = info("r", 7, replication_factor=2, topic_configs=[KeyValue(key="k", value="v")])
    found = configured({"a": 2}, sub("0", "a", sinks=["r"]), sub("1", repartition=[topic]))
    (made,) = found.missing
    assert (made.partition_count, made.replication_factor) == (7, 2)
    assert made.settings == (("k", "v"),)


def test_copartitioned_repartition_topics_follow_the_source():
    found = configured(
        {"a": 2, "b": 6},
        sub("0", "a", sinks=["r"]),
        sub("1", "b", repartition=[info("r")], together=[([0], [0])]),
    )
    assert missing(found) == {"r": 6}


def test_copartitioned_repartition_topics_get_the_largest_count():
    found = configured(
        {"a": 2, "b": 6},
        sub("0", "a", sinks=["r"]),
        sub("1", "b", sinks=["s"]),
        sub("2", repartition=[info("r"), info("s")], together=[([], [0, 1])]),
    )
    assert missing(found) == {"r": 6, "s": 6}


@pytest.mark.parametrize(
    ("existing", "subtopologies", "words"),
    [
        (
            {"a": 2, "b": 3},
            [sub("0", "a", "b", together=[([0, 1], [])])],
            "do not have the same number of partitions",
        ),
        (
            {"a": 2, "b": 3},
            [
                sub("0", "a", sinks=["r"]),
                sub("1", "b", repartition=[info("r", 5)], together=[([0], [0])]),
            ],
            "doesn't match number of partitions [3]",
        ),
        (
            {"a": 2, "c": 9},
            [sub("0", "a", changelogs=["c"])],
            "Existing topic c has different number of partitions: expected 2, found 9",
        ),
    ],
)
def test_counts_that_do_not_fit_are_told(existing, subtopologies, words):
    found = configured(existing, *subtopologies)
    assert found.problem.status_code == StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert words in found.problem.status_detail
    assert not found.missing


def test_all_missing_sources_are_told_the_first_three_by_name():
    found = configured({}, sub("0", "e", "d", "c", "b", "a"))
    assert found.problem.status_code == StatusCode.MISSING_SOURCE_TOPICS
    assert found.problem.status_detail == (
        "Source topics a, b, c and 2 additional topics are missing."
    )


@pytest.mark.parametrize(
    "subtopologies",
    [
        [sub("0", repartition=[info("r")], sinks=["r"])],
        [sub("0", "a", repartition=[info("never")])],
    ],
)
def test_a_topology_without_an_answer_is_invalid(subtopologies):
    with pytest.raises(KafkaError) as caught:
        configured({"a": 1}, *subtopologies)
    assert caught.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_a_chain_in_the_worst_order_takes_no_longer_than_it_is_long():
    last = 999
    chain = [
        sub(f"{last - n:04}", repartition=[info(f"r{n}")], sinks=[f"r{n + 1}"]) for n in range(last)
    ]
    started = time.process_time()
    found = configured({"a": 3}, *chain, sub("9999", "a", sinks=["r0"]))
    assert missing(found) == {f"r{n}": 3 for n in range(last)}
    assert time.process_time() - started < 1
