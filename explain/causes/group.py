"""Why a group gets nothing: its state, its members, its subscription, its coordinator."""

from collections.abc import Iterator
from typing import Final

from common.kafka.topics import TopicPartition
from explain.causes.cause import Figures, fact, notice, problem
from explain.facts import GroupCase, Look

CLASSIC, CONSUMER, SHARE, STREAMS = "Classic", "Consumer", "Share", "Streams"
STABLE, EMPTY, DEAD = "Stable", "Empty", "Dead"
LOADING: Final = "COORDINATOR_LOAD_IN_PROGRESS"
CONSUMERS: Final = ("", "consumer")
"""The protocol types of groups of consumers."""


def _missing(case: GroupCase) -> Iterator[Figures]:
    group = case.group
    if not group.looks and group.coordinator_error is None and group.kind is None:
        yield {
            "group": group.group_id,
            "similar": f" Similar: {', '.join(group.similar)}." if group.similar else "",
        }


def _coordinator_loads(case: GroupCase) -> Iterator[Figures]:
    if case.group.coordinator_error == LOADING:
        yield {"group": case.group.group_id}


def _coordinator_away(case: GroupCase) -> Iterator[Figures]:
    error = case.group.coordinator_error
    if error is not None and error != LOADING:
        yield {"group": case.group.group_id, "error": error}


def _no_members(case: GroupCase) -> Iterator[Figures]:
    look = case.group.latest
    if look is not None and not look.members and case.group.kind != SHARE:
        yield {
            "group": case.group.group_id,
            "partitions": len(look.committed),
            "lag": lag(look),
        }


def _other_protocol(case: GroupCase) -> Iterator[Figures]:
    if case.group.kind == CLASSIC and case.group.protocol_type not in CONSUMERS:
        yield {"group": case.group.group_id, "protocol": case.group.protocol_type}


def _streams(case: GroupCase) -> Iterator[Figures]:
    if case.group.kind == STREAMS:
        yield {"group": case.group.group_id}


def _assignor_clash(case: GroupCase) -> Iterator[Figures]:
    look, wanted = case.group.latest, case.group.wanted_assignor
    is_other = wanted is not None and case.group.assignor not in ("", wanted)
    if is_other and case.group.kind == CLASSIC and look is not None and look.members:
        yield {
            "group": case.group.group_id,
            "assignor": case.group.assignor,
            "wanted": wanted,
            "members": len(look.members),
        }


def _looks(case: GroupCase) -> tuple[Look, Look] | None:
    looks = case.group.looks
    return (looks[0], looks[-1]) if len(looks) > 1 else None


def _rebalancing(case: GroupCase) -> Iterator[Figures]:
    both = _looks(case)
    if both and all(look.state not in {STABLE, EMPTY, DEAD} for look in both):
        yield {
            "group": case.group.group_id,
            "state": both[1].state,
            "for": both[1].at_ms - both[0].at_ms,
            "members": len(both[1].members),
        }


def _changing(case: GroupCase) -> Iterator[Figures]:
    both = _looks(case)
    if both is None or not (both[0].members and both[1].members):
        return
    before, after = ({one.member_id: one for one in look.members} for look in both)
    if before.keys() == after.keys() and both[0].epoch == both[1].epoch:
        return
    gone = [before[each].client_id for each in before.keys() - after.keys()]
    come = [after[each].client_id for each in after.keys() - before.keys()]
    yield {
        "group": case.group.group_id,
        "within": both[1].at_ms - both[0].at_ms,
        "gone": sorted(gone),
        "come": sorted(come),
    }


def _stable(case: GroupCase) -> Look | None:
    """Return the last look at a group whose members all know what is theirs."""
    look = case.group.latest
    return look if look is not None and look.state == STABLE and look.members else None


def _subscribed(look: Look) -> set[str]:
    return {topic for one in look.members for topic in one.subscribed or ()}


def _subscribed_missing(case: GroupCase) -> Iterator[Figures]:
    look = case.group.latest
    for name in sorted(_subscribed(look)) if look else ():
        topic = case.group.topics.get(name)
        if topic is not None and not topic.exists:
            yield {
                "group": case.group.group_id,
                "topic": name,
                "similar": f" Similar: {', '.join(topic.similar)}." if topic.similar else "",
            }


def _partitions_of(case: GroupCase, names: set[str]) -> list[TopicPartition]:
    return [
        one.name
        for name in sorted(names)
        if name in case.group.topics
        for one in case.group.topics[name].partitions
    ]


def _unowned(case: GroupCase) -> Iterator[Figures]:
    look = _stable(case)
    if look is None:
        return
    owned = {each for one in look.members for each in one.assigned}
    left = [each for each in _partitions_of(case, _subscribed(look)) if each not in owned]
    if left:
        yield {"group": case.group.group_id, "partitions": left, "count": len(left)}


def _idle(case: GroupCase) -> Iterator[Figures]:
    look = _stable(case)
    if look is None or case.group.kind == SHARE:
        return
    idle = [one for one in look.members if not one.assigned]
    partitions = _partitions_of(case, _subscribed(look))
    if idle and partitions and len(look.members) > len(partitions):
        yield {
            "group": case.group.group_id,
            "idle": len(idle),
            "clients": sorted({one.client_id for one in idle}),
            "members": len(look.members),
            "partitions": len(partitions),
        }


def _quota(case: GroupCase) -> Iterator[Figures]:
    look = case.group.latest
    if look is None or not lag(look):
        return
    for each in case.group.quotas:
        yield {
            "group": case.group.group_id,
            "quota": each.name,
            "value": f"{each.value:g}",
            "entity": each.entity,
        }


def lag(look: Look) -> int:
    """Return how many offsets a group has left, in the partitions where it has committed."""
    return sum(
        max(look.ends[each] - offset, 0)
        for each, offset in look.committed.items()
        if each in look.ends
    )


def _stands(case: GroupCase) -> Iterator[Figures]:
    look = case.group.latest
    if look is not None and look.members:
        yield {
            "group": case.group.group_id,
            "kind": case.group.kind,
            "state": look.state,
            "members": len(look.members),
            "coordinator": case.group.coordinator_id,
            "assignor": case.group.assignor or "none",
        }


GROUP = (
    problem(
        "group-missing",
        _missing,
        "There is no group {group}: it has no members, and no committed offsets.{similar}",
        "Check the group.id of the consumers. A group exists from its first member or commit on, "
        "and its offsets expire offsets.retention.minutes after its last member has left.",
    ),
    problem(
        "group-coordinator-loads",
        _coordinator_loads,
        "The coordinator of group {group} is reading the group's log back "
        "(COORDINATOR_LOAD_IN_PROGRESS), so members can neither join nor commit.",
        "Wait: it ends by itself, after seconds to minutes.",
    ),
    problem(
        "group-coordinator-unavailable",
        _coordinator_away,
        "Group {group} waits for its coordinator ({error}): members can neither join nor commit.",
        "Look at the topic __consumer_offsets, whose leaders are the coordinators: `millstream "
        "explain topic __consumer_offsets`.",
    ),
    problem(
        "group-without-members",
        _no_members,
        "Group {group} has no members, so nobody reads for it. It has committed offsets in "
        "{partitions:partition} and is {lag:offset} behind.",
        "Start a consumer with this group.id. If it runs, it cannot reach the coordinator, uses "
        "another cluster, or was removed after max.poll.interval.ms or session.timeout.ms.",
    ),
    problem(
        "group-of-another-protocol",
        _other_protocol,
        "Group {group} belongs to the protocol {protocol!r}, not to consumers: a consumer with "
        "this group.id is refused with INCONSISTENT_GROUP_PROTOCOL.",
        "Give the consumer a group.id of its own.",
    ),
    notice(
        "group-of-streams",
        _streams,
        "Group {group} is a group of Kafka Streams (KIP-1071), which is not explained here.",
        "`millstream streams-groups --describe --group {group}` shows it.",
    ),
    problem(
        "group-assignor-clash",
        _assignor_clash,
        "Group {group} has {members:member} with the assignor {assignor}: a member that offers "
        "only {wanted} is refused with INCONSISTENT_GROUP_PROTOCOL, unless all of them offer it.",
        "Give all members the same partition.assignment.strategy. To change it, let them offer "
        "both first.",
    ),
    problem(
        "group-rebalancing",
        _rebalancing,
        "Group {group} has been in state {state} for at least {for:duration}, with "
        "{members:member}: while it rebalances, nobody reads.",
        "A member that takes longer than max.poll.interval.ms over its records, or joins again and "
        "again, holds the others up. Look at the log of the members.",
    ),
    notice(
        "group-members-change",
        _changing,
        "The members of group {group} have changed within {within:duration} (gone: "
        "[{gone:names}], new: [{come:names}]), or its assignment has.",
        "Once is normal after a start or a stop. If it goes on, a member restarts, or is removed "
        "after session.timeout.ms or max.poll.interval.ms and joins again.",
    ),
    problem(
        "group-subscribed-to-no-topic",
        _subscribed_missing,
        "Group {group} subscribes to topic {topic}, which does not exist.{similar}",
        "Create it, or correct the subscription. Members find a new topic after at most "
        "metadata.max.age.ms.",
    ),
    problem(
        "group-partition-without-owner",
        _unowned,
        "{count:subscribed partition} of group {group} belong to no member, so nobody reads: "
        "{partitions:names}.",
        "Let the group rebalance: restart a member. Check a custom assignor, and whether members "
        "subscribe to different topics.",
    ),
    notice(
        "group-idle-members",
        _idle,
        "Group {group} has more members ({members}) than subscribed partitions ({partitions}): "
        "{idle:member} have nothing to do (client ids {clients:names}).",
        "Add partitions to the topic, or stop the idle members; they take over when others end.",
    ),
    notice(
        "group-quota",
        _quota,
        "Group {group} is behind, and its clients have a quota: {quota} is {value} for {entity}. "
        "Above it, the brokers delay their answers.",
        "Compare the quota with the size of the records that are produced; `millstream configs` "
        "changes it.",
    ),
    fact(
        "group-state",
        _stands,
        "Group {group} ({kind}) is {state} with {members:member}, assignor {assignor}, coordinator "
        "broker {coordinator}.",
    ),
)
