"""Asks for a share group: members, start offsets, what is left to finish, and single records."""

from collections import defaultdict
from dataclasses import replace

from common.kafka.admin.client import AdminClient
from common.kafka.admin.share_groups import (
    ARCHIVED,
    ShareGroupDescription,
    ShareRun,
    describe_share_groups,
    share_offsets,
    share_runs,
)
from common.kafka.admin.topics import describe_topics
from common.kafka.errors import KafkaError
from common.kafka.topics import TopicPartition
from explain.asking.questions import Questions
from explain.facts import Group, Look, Member, SharedRun


def share_look(questions: Questions, group: Group) -> Group:
    """Return a share group with one more look; its start offsets count as commits.

    A partition's end is its start offset and the records that are left to finish.
    """
    try:
        outcome = describe_share_groups(questions.client, [group.group_id])[group.group_id]
    except KafkaError as error:
        outcome = error
    if not isinstance(outcome, ShareGroupDescription):
        questions.note(f"share group {group.group_id}", outcome)
        return group
    offsets = questions.ask(
        f"the offsets of share group {group.group_id}",
        lambda client: share_offsets(client, group.group_id),
        {},
    )
    started = {name: one for name, one in offsets.items() if one.start_offset is not None}
    look = Look(
        at_ms=questions.now_ms(),
        state=outcome.state,
        members=tuple(
            Member(
                member_id=one.member_id,
                client_id=one.client_id,
                host=one.host,
                assigned=tuple(one.assignment),
                epoch=one.member_epoch,
            )
            for one in outcome.members
        ),
        epoch=outcome.group_epoch,
        committed={name: one.start_offset or 0 for name, one in started.items()},
        ends={
            name: (one.start_offset or 0) + one.lag
            for name, one in started.items()
            if one.lag is not None
        },
    )
    assigned = {each for one in look.members for each in one.assigned}
    return replace(
        group,
        looks=(*group.looks, look),
        coordinator_id=outcome.coordinator.node_id,
        unstarted=tuple(sorted((assigned | offsets.keys()) - started.keys())),
    )


def shared_runs(questions: Questions, group: Group) -> dict[TopicPartition, tuple[SharedRun, ...]]:
    """Return what the coordinators keep of single records, of partitions that are not finished."""
    look = group.latest
    by_topic: dict[str, list[int]] = defaultdict(list)
    for name, start in look.committed.items() if look else ():
        if look is not None and look.ends.get(name, start) > start:
            by_topic[name.topic].append(name.partition)

    def ask(client: AdminClient) -> dict[TopicPartition, tuple[SharedRun, ...]]:
        found = {}
        for topic in describe_topics(client, by_topic) if by_topic else ():
            runs = share_runs(client, group.group_id, topic.topic_id, by_topic[topic.name])
            for number, its_runs in runs.items():
                found[TopicPartition(topic.name, number)] = tuple(map(_run, its_runs))
        return found

    return questions.ask(f"the records of share group {group.group_id}", ask, {})


def _run(one: ShareRun) -> SharedRun:
    is_archived = one.state == ARCHIVED
    return SharedRun(one.first_offset, one.last_offset, is_archived, one.delivery_count)
