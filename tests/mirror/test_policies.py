"""Names of mirrored topics, and the way they tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.connect.errors import ConfigException
from millstream.mirror import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    TopicPartition,
    replication_policy,
)
from mirror.filters import GROUPS_EXCLUDE, TOPICS_EXCLUDE, NameFilter, Patterns
from mirror.flow import Flow

ALIASES = st.sampled_from(["a", "b", "c"])
PLAIN = st.text("xyz_", min_size=1, max_size=5)


def name_filter(include: str = ".*", exclude: str = TOPICS_EXCLUDE) -> NameFilter:
    def patterns(text: str) -> Patterns:
        return Patterns.of("topics", [each.strip() for each in text.split(",") if each.strip()])

    return NameFilter(patterns(include), patterns(exclude))


def flow(
    source: str = "a",
    target: str = "b",
    policy: ReplicationPolicy | None = None,
    topics: str = ".*",
) -> Flow:
    return Flow(source, target, policy or DefaultReplicationPolicy(), name_filter(topics))


@given(st.lists(ALIASES, max_size=4), PLAIN)
def test_a_name_tells_the_whole_way(way: list[str], topic: str) -> None:
    policy, name = DefaultReplicationPolicy(), topic
    for alias in way:
        name = policy.format_remote_topic(alias, name)
    assert policy.original_topic(name) == topic
    assert policy.topic_source(name) == (way[-1] if way else None)


@given(st.lists(st.tuples(ALIASES, ALIASES), max_size=12), PLAIN)
def test_no_topic_comes_back_to_where_it_was(flows: list[tuple[str, str]], topic: str) -> None:
    """However flows go round, what each cluster holds of one topic stays finite."""
    held: dict[str, set[str]] = {"a": {topic}, "b": set(), "c": set()}
    for source, target in flows * 6:
        if source == target:
            continue
        between = flow(source, target)
        taken = {each for each in held[source] if between.replicates(each)}
        held[target] |= {between.remote_topic(each) for each in taken}
    for cluster, names in held.items():
        assert all(name.split(".").count(cluster) == 0 for name in names)
        assert len(names) <= 5


def test_separators_and_the_mirrors_own_topics() -> None:
    told = {"replication.policy.separator": "_"}
    policy = replication_policy(told)
    assert policy.format_remote_topic("a", "t") == "a_t"
    assert policy.offset_syncs_topic("b") == "mm2-offset-syncs_b_internal"
    assert policy.is_internal_topic("mm2-offset-syncs_b_internal")
    kept = replication_policy(
        {**told, "replication.policy.internal.topic.separator.enabled": "false"}
    )
    assert kept.checkpoints_topic("a") == "a.checkpoints.internal"
    assert kept.is_checkpoints_topic("a.checkpoints.internal")


@pytest.mark.parametrize(
    ("topic", "source"),
    [("plain", None), ("a.", None), (".a", ""), ("a.b", "a"), ("a.b.c", "a"), ("a..b", "a")],
)
def test_the_source_is_the_first_part(topic: str, source: str | None) -> None:
    assert DefaultReplicationPolicy().topic_source(topic) == source


def test_identity_keeps_names_but_those_of_heartbeats() -> None:
    policy = IdentityReplicationPolicy(source_cluster_alias="a")
    assert policy.format_remote_topic("a", "orders") == "orders"
    assert policy.topic_source("orders") == "a"
    assert policy.original_topic("orders") == "orders"
    assert policy.format_remote_topic("a", "heartbeats") == "a.heartbeats"
    assert policy.is_heartbeats_topic("a.heartbeats")


def test_identity_cannot_tell_a_cycle_and_does_not_go_round_for_ever() -> None:
    """KAFKA-9726: the name is the same everywhere, so that filters have to keep cycles out."""
    there = flow("a", "b", IdentityReplicationPolicy(source_cluster_alias="a"))
    assert not there.is_cycle("orders")
    assert there.replicates("orders")
    assert there.is_cycle("b.heartbeats")
    assert not there.is_cycle("c.heartbeats")


def test_a_policy_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="neither"):
        replication_policy({"replication.policy.class": "com.example.Policy"})


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("orders", None),
        ("heartbeats", None),
        ("b.orders", "came from b"),
        ("c.b.orders", "came from b"),
        ("c.orders", None),
        ("__consumer_offsets", "internal"),
        ("mm2-offset-syncs.b.internal", "internal"),
        ("connect-configs-internal", "internal"),
        ("old.replica", r"excluded by .*\.replica"),
    ],
)
def test_what_is_left_out_is_said(topic: str, why: str | None) -> None:
    assert flow().why_not(topic) == why


def test_heartbeats_go_along_with_topics_that_are_named() -> None:
    named = flow(topics="orders")
    assert named.replicates("heartbeats")
    assert named.why_not("payments") == "not included"


def test_groups_and_bad_patterns() -> None:
    groups = name_filter(exclude=GROUPS_EXCLUDE)
    assert groups.takes("billing")
    assert not groups.takes("connect-sink")
    assert not name_filter("").takes("anything")
    with pytest.raises(ConfigException, match="topics"):
        name_filter("(")


def test_a_group_goes_on_in_the_original_of_what_came_from_the_target() -> None:
    assert flow().remote_partition(TopicPartition("t", 3)) == TopicPartition("a.t", 3)
    assert flow().remote_partition(TopicPartition("b.t", 3)) == TopicPartition("t", 3)
    assert flow(topics="t").checkpoints("b.t")
    assert not flow(topics="t").checkpoints("c.t")
