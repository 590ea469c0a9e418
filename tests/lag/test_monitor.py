"""Looks at a cluster become lags, states, a table and metrics."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry

from common.kafka.topics import TopicPartition
from lag.evaluate import INTERVALS, State
from lag.facts import Group, Look, Partition
from lag.families import LagCollector
from lag.monitor import Monitor
from lag.table import text

AT = TopicPartition("orders", 0)
SECOND = TopicPartition("orders", 1)


def look(
    at_ms: int,
    commits: Mapping[str, Mapping[TopicPartition, int]],
    ends: Mapping[TopicPartition, int | None],
) -> Look:
    return Look(
        at_ms,
        {1: "localhost:9092"},
        {key: Partition(1, (1, 2), (1,), 0, end) for key, end in ends.items()},
        {name: Group("Empty", 0, 1, its) for name, its in commits.items()},
    )


def values(monitor: Monitor) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(LagCollector(monitor))
    return {
        sample.name
        + "".join(f" {value}" for _, value in sorted(sample.labels.items())): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def test_a_group_that_commits_nothing_while_records_come_has_stopped() -> None:
    monitor = Monitor()
    for n in range(INTERVALS):
        assert monitor.groups.get("packers") is None or not monitor.groups["packers"].is_complete
        monitor.take(look(1_000 * n, {"packers": {AT: 7}}, {AT: 10 + n}))
    found = monitor.groups["packers"]
    assert found.state is State.ERR
    assert found.partitions[AT].state is State.STOP
    assert found.total == 12
    numbers = values(monitor)
    assert numbers["kafka_consumergroup_lag packers 0 orders"] == 12
    assert numbers["burrow_kafka_consumer_status packers"] == State.ERR
    assert numbers["kafka_consumergroup_members packers"] == 0
    assert numbers["kafka_topic_partition_under_replicated_partition 0 orders"] == 1
    assert text(monitor).splitlines()[1].split() == ["packers", "0", "12", "-", "ERR"]


def test_the_lag_in_seconds_is_that_of_the_partition_furthest_behind() -> None:
    monitor = Monitor()
    monitor.take(look(0, {"a": {AT: 0, SECOND: 0}}, {AT: 0, SECOND: 0}))
    monitor.take(look(10_000, {"a": {AT: 90, SECOND: 50}}, {AT: 100, SECOND: 100}))
    found = monitor.groups["a"]
    assert found.partitions[AT].seconds == 1
    assert found.seconds == 5
    assert values(monitor)["kafka_consumergroup_group_max_lag_seconds a"] == 5
    assert values(monitor)["kafka_consumergroup_lag_sum a orders"] == 60
    assert values(monitor)["kafka_consumergroup_current_offset_sum a orders"] == 140


def test_an_end_that_is_not_known_makes_no_number_of_it() -> None:
    monitor = Monitor()
    monitor.take(look(0, {"a": {AT: 5}}, {AT: None}))
    assert monitor.groups["a"].partitions[AT].lag is None
    assert "kafka_consumergroup_lag a 0 orders" not in values(monitor)
    assert values(monitor)["kafka_consumergroup_current_offset a 0 orders"] == 5


def test_what_is_gone_is_forgotten() -> None:
    monitor = Monitor()
    monitor.take(look(0, {"a": {AT: 5}}, {AT: 9}))
    monitor.take(look(1, {"b": {AT: 5, SECOND: 1}}, {AT: 9}))
    assert monitor.groups.keys() == {"b"}
    assert monitor.groups["b"].partitions.keys() == {AT}
    assert not any(" a" in name for name in values(monitor))


def test_without_groups_the_table_says_so() -> None:
    assert text(Monitor()) == "No group has committed an offset."
    assert text(Monitor(), is_chosen=True).startswith("No group of this name, or for these topics")
