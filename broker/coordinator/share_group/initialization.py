"""The state of share-partitions begins before their first assignment, and ends with their topic.

A heartbeat that finds subscribed partitions without state notes them as initialising, and asks the
share coordinator to begin their state (InitializeShareGroupState): an effect, `InitializeState`.
The shell reports the results to `on_results`. A partition without a result, because the answer was
lost or this coordinator has just taken the group over, is asked for again after
`group.share.initialize.retry.interval.ms`; to begin a state of the same epoch twice does no harm.

Where a partition begins is a matter of the group's settings, when the group first sees the topic.
A partition that is added later begins at its first record: `latest` would lose what is written
before the group sees it (KAFKA-20742, mended after Kafka 4.3.1).
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from broker.coordinator.group_state.step import Step
from broker.coordinator.share_group.records import ShareStatePartitions
from broker.coordinator.share_group.replay import write
from broker.coordinator.share_group.share_group import ShareGroup
from broker.coordinator.share_group.state_partitions import (
    NamedPartitions,
    Partitions,
    StatePartitions,
)

logger = logging.getLogger(__name__)

UNSET = -1
"""The start offset of a partition that begins where the group's settings say."""
FIRST = 0
"""That of a partition whose every record is new to the group."""


@dataclass(frozen=True, slots=True)
class InitializeState:
    """Asks the share coordinator to begin the state of partitions."""

    group_id: str
    state_epoch: int
    start_offsets: Mapping[bytes, Mapping[int, int]]
    """By topic id and partition."""


def maybe_initialize(step: Step, group: ShareGroup) -> bool:
    """Ask for the state of subscribed partitions without one; return True if some are awaited.

    What else is initialising is not awaited: an offset that an administrator has set, and whose
    answer was lost, or a partition of a topic without subscribers.
    """
    wanted = lacking_state(step, group)
    start_offsets = {
        topic_id: {each: start_of(group, topic_id, each) for each in sorted(named.partitions)}
        for topic_id, named in wanted.items()
    }
    if wanted and begin(step, group, wanted):
        for topic_id, of_topic in start_offsets.items():
            group.begun_at.setdefault(topic_id, {}).update(of_topic)
        effect = InitializeState(group.group_id, group.group_epoch, start_offsets)
        step.output.effects.append(effect)
    states, topics = group.states, step.shard.image().topics.by_name
    subscribed = (topics[name].topic_id for name in group.topic_counts if name in topics)
    return any(
        states.all_of(topic_id) != states.initialized_of(topic_id) for topic_id in subscribed
    )


def start_of(group: ShareGroup, topic_id: bytes, partition: int) -> int:
    """Return where a partition begins: at the same place if its state has been asked for already.

    After a takeover nobody remembers that: the partition counts as added if others have state, for
    to read too much is better than to lose.
    """
    begun = group.begun_at.get(topic_id, {})
    if partition in begun:
        return begun[partition]
    known = group.states.all_of(topic_id)
    if partition in known:
        known = group.states.initialized_of(topic_id)
    return FIRST if known else UNSET


def lacking_state(step: Step, group: ShareGroup) -> dict[bytes, NamedPartitions]:
    """Return the subscribed partitions that have no state, and were not asked for recently."""
    topics = step.shard.image().topics.by_name
    retry_ms = step.share_config(group.group_id).initialize_retry_interval_ms
    wanted: dict[bytes, NamedPartitions] = {}
    for name in sorted(group.topic_counts):
        topic = topics.get(name)
        if topic is None:
            continue
        known = group.states.initialized_of(topic.topic_id)
        since_ms = group.initializing_since_ms.get(topic.topic_id)
        if since_ms is not None and 0 <= step.now.timestamp_ms - since_ms < retry_ms:
            known = group.states.all_of(topic.topic_id)
        if len(known) < len(topic.partitions):
            wanted[topic.topic_id] = NamedPartitions(name, frozenset(topic.partitions) - known)
    return {topic_id: named for topic_id, named in wanted.items() if named.partitions}


def begin(step: Step, group: ShareGroup, wanted: Mapping[bytes, NamedPartitions]) -> bool:
    """Note partitions as initialising; return False if they do not fit into a record."""
    states = group.states.begun(wanted)
    if not step.fits(ShareStatePartitions(group.group_id, states).encoded()):
        logger.error("share group has too many partitions group=%s", group.group_id)
        return False
    write_states(step, group, states)
    for topic_id in wanted:
        group.initializing_since_ms[topic_id] = step.now.timestamp_ms
    return True


def on_results(step: Step, group_id: str, done: Partitions, refused: Partitions) -> None:
    """Note what the share coordinator has begun, and what it has refused."""
    group = step.shard.of(ShareGroup).get(group_id)
    if group is None:
        return
    states = group.states.confirmed(done).failed(refused)
    if states != group.states:
        write_states(step, group, states)
    for topic_id in (*done, *refused):
        if topic_id not in states.initializing:
            group.initializing_since_ms.pop(topic_id, None)
    for topic_id, partitions in done.items():
        begun = group.begun_at.pop(topic_id, {})
        left = {each: begun[each] for each in begun.keys() - set(partitions)}
        if left:
            group.begun_at[topic_id] = left


def forget_topics(step: Step, group: ShareGroup, topic_ids: Collection[bytes]) -> None:
    """Forget deleted topics, of whose state the share coordinator takes care itself."""
    if any(topic_id in topic_ids for topic_id in group.states.topic_ids()):
        write_states(step, group, group.states.without(topic_ids))


def forget_missing_topics(step: Step, group: ShareGroup) -> None:
    """Forget the topics that were deleted while no coordinator had the group."""
    by_id = step.shard.image().topics.by_id
    gone = [topic_id for topic_id in group.states.topic_ids() if topic_id not in by_id]
    if gone:
        write_states(step, group, group.states.without(gone))


def write_states(step: Step, group: ShareGroup, states: StatePartitions) -> None:
    """Write the partitions with state."""
    write(step, ShareStatePartitions(group.group_id, states))
