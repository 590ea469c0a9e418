"""Asks for a group: members, commits, and where the partitions end for it, once or twice."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from common.kafka.admin.coordinators import COORDINATOR_MOVED
from common.kafka.admin.group_offsets import committed_offsets
from common.kafka.admin.groups import (
    GroupDescription,
    GroupListing,
    MemberDescription,
    describe_consumer_groups,
    list_groups,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.topics import TopicPartition
from explain.asking.questions import Questions
from explain.asking.records import first_time, only_markers_between
from explain.asking.share_groups import share_look, shared_runs
from explain.asking.topics import described_topic, offsets, similar_to, topic_facts
from explain.causes.progress import standing
from explain.facts import Cluster, Group, Look, Member, Topic

SECONDS: Final = 7.0
"""Between two looks: longer than auto.commit.interval.ms, which is five seconds."""
MAX_MARKER_LAG: Final = 1_000
MAX_STANDING: Final = 50
"""So many partitions are asked for the record that waits there."""
SETTLED: Final = frozenset({"Stable", "Empty", "Dead"})
CONSUMER_KINDS: Final = frozenset({"Classic", "Consumer"})

Wait = Callable[[float], None]


def group_facts(
    questions: Questions, cluster: Cluster, group_id: str, *, seconds: float, wait: Wait
) -> tuple[Cluster, Group]:
    """Ask all about a group; a second time `seconds` later if it is behind or rebalances."""
    listed: list[GroupListing] = questions.ask("the groups", list_groups, [])
    kinds = {one.group_id: one for one in listed}
    mine = kinds.get(group_id)
    group = Group(
        group_id=group_id,
        kind=mine.group_type or "Classic" if mine else None,
        protocol_type=mine.protocol_type if mine else "",
        similar=() if mine else similar_to(group_id, list(kinds)),
    )
    if group.kind == "Share":
        group = share_look(questions, group)
        if group.latest is not None and _is_odd(group.latest):
            wait(seconds)
            group = share_look(questions, group)
        return cluster, replace(group, shared=shared_runs(questions, group))
    if group.kind is not None and group.kind not in CONSUMER_KINDS:
        return cluster, group
    return _consumers(questions, cluster, group, seconds, wait)


def _consumers(
    questions: Questions, cluster: Cluster, group: Group, seconds: float, wait: Wait
) -> tuple[Cluster, Group]:
    described = _described(questions, group)
    if not isinstance(described, GroupDescription):
        return cluster, described
    group = replace(
        group,
        kind=described.group_type,
        assignor=described.assignor,
        coordinator_id=described.coordinator.node_id,
    )
    look = _look(questions, described, {})
    cluster, topics = _topics(questions, cluster, look)
    look = replace(look, ends=_ends(topics))
    group = replace(group, looks=(look,), topics=topics)
    if _is_odd(look):
        wait(seconds)
        group = _again(questions, group, look)
    return cluster, replace(group, only_markers=_only_markers(questions, group))


def _described(questions: Questions, group: Group) -> GroupDescription | Group:
    """Return a group's description, or the group as it is without one."""
    try:
        outcome = describe_consumer_groups(questions.client, [group.group_id])[group.group_id]
    except KafkaError as error:
        outcome = error
    if isinstance(outcome, GroupDescription):
        # Coordinators before KIP-1043 describe a group that is not there as a dead one.
        return replace(group, kind=None) if _is_nobody(outcome, group) else outcome
    if outcome.code in {*COORDINATOR_MOVED, ErrorCode.REQUEST_TIMED_OUT}:
        return replace(group, coordinator_error=outcome.code.name)
    if outcome.code not in {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID}:
        questions.note(f"group {group.group_id}", outcome)
        return replace(group, kind=group.kind or "Unknown")
    return group


def _is_nobody(described: GroupDescription, group: Group) -> bool:
    return described.state == "Dead" and group.kind is None


def _look(
    questions: Questions, described: GroupDescription, ends: Mapping[TopicPartition, int]
) -> Look:
    committed = questions.ask(
        f"the committed offsets of group {described.group_id}",
        lambda client: committed_offsets(client, described.group_id),
        {},
    )
    return Look(
        at_ms=questions.now_ms(),
        state=described.state,
        members=tuple(_member(one) for one in described.members),
        epoch=described.group_epoch,
        committed={partition: one.offset for partition, one in committed.items()},
        ends=ends,
    )


def _member(one: MemberDescription) -> Member:
    return Member(
        member_id=one.member_id,
        client_id=one.client_id,
        host=one.host,
        assigned=tuple(one.assignment),
        subscribed=None if one.subscription is None else tuple(one.subscription),
        epoch=one.member_epoch,
    )


def _topics(questions: Questions, cluster: Cluster, look: Look) -> tuple[Cluster, dict[str, Topic]]:
    names = {each.topic for each in look.committed}
    for one in look.members:
        names |= {*(one.subscribed or ()), *(each.topic for each in one.assigned)}
    described, absent = [], {}
    for name in sorted(names):
        try:
            found = described_topic(questions, name)
        except KafkaError as error:
            questions.note(f"topic {name}", error)
            continue
        if isinstance(found, Topic):
            absent[name] = found
        else:
            described.append(found)
    cluster, topics, _ = topic_facts(questions, cluster, described)
    return cluster, {**topics, **absent}


def _ends(topics: Mapping[str, Topic]) -> dict[TopicPartition, int]:
    return {
        one.name: one.last_stable
        for topic in topics.values()
        for one in topic.partitions
        if one.last_stable is not None
    }


def _is_odd(look: Look) -> bool:
    """Tell whether a second look says more: the group is not stable, or members are behind."""
    if look.state not in SETTLED:
        return True
    behind = any(look.ends.get(each, 0) > offset for each, offset in look.committed.items())
    return bool(look.members) and behind


def _again(questions: Questions, group: Group, before: Look) -> Group:
    described = _described(questions, group)
    if not isinstance(described, GroupDescription):
        return described
    look = _look(questions, described, offsets(questions, list(before.ends), committed=True))
    group = replace(group, looks=(before, look))
    return replace(group, waiting_since_ms=_waiting_since(questions, group))


def _waiting_since(questions: Questions, group: Group) -> dict[TopicPartition, int]:
    """Return the time of the first record that waits, where nothing was committed meanwhile."""
    before, after = group.looks
    found = {}
    for name in standing(before, after)[:MAX_STANDING]:
        partition = group.partition(name)
        if partition is None or not partition.has_leader:
            continue
        try:
            at_ms = first_time(questions.client, partition.leader_id, name, after.committed[name])
        except KafkaError as error:
            questions.note(f"the records of {name}", error)
            continue
        if at_ms is not None:
            found[name] = at_ms
    return found


def _only_markers(questions: Questions, group: Group) -> frozenset[TopicPartition]:
    look = group.latest
    if look is None:
        return frozenset()
    found = set()
    for name, offset in look.committed.items():
        partition, end = group.partition(name), look.ends.get(name)
        if partition is None or end is None or not 0 < end - offset <= MAX_MARKER_LAG:
            continue
        try:
            if only_markers_between(questions.client, partition.leader_id, name, offset, end):
                found.add(name)
        except KafkaError as error:
            questions.note(f"the records of {name}", error)
    return frozenset(found)
