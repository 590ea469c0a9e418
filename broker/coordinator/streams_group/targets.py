"""When the assignor runs, and what the cluster's topics make of the topology.

A new group waits for `initial_rebalance_delay_ms` before its first assignment, so that its members
can arrive. Later the assignor runs at most once per `assignment_interval_ms` (KIP-1263). Until then
the old targets hold. The computation is interruptible; the targets are for the epoch in which it
began, and if the group epoch has grown meanwhile, it runs again.
"""

import logging
from hashlib import blake2b

from broker.coordinator.group_state.modern_group import completed, is_early
from broker.coordinator.group_state.step import Deadline, Step
from broker.coordinator.output import record_size_bytes
from broker.coordinator.streams_group.configured_topology import (
    ConfiguredTopology,
    StatusCode,
    configure,
)
from broker.coordinator.streams_group.member import NO_TOPOLOGY_EPOCH, Target
from broker.coordinator.streams_group.new_targets import NewTargets
from broker.coordinator.streams_group.records import GroupEpoch, TargetEpoch
from broker.coordinator.streams_group.replay import write
from broker.coordinator.streams_group.sticky import MemberSpec, SubtopologySpec
from broker.coordinator.streams_group.streams_group import StreamsDeadline, StreamsGroup
from broker.coordinator.streams_group.topology import StreamsTopology
from common.kafka.protocol.messages.streams_group_heartbeat import Status

logger = logging.getLogger(__name__)

NO_TARGET = Target()
RECORDS_IN_ONE = 4
"""A member's current tasks, with an epoch each and with those that it has yet to give up, take less
than this many records of a target."""
NUM_STANDBY_REPLICAS = "num.standby.replicas"


def configured_for(
    step: Step, group: StreamsGroup, topology: StreamsTopology
) -> ConfiguredTopology:
    """Return the topology on the present topics; raise KafkaError, with nothing changed."""
    if group.configured is not None and group.seen_topics_version == step.shard.topics_version:
        return group.configured
    return configure(topology, existing_topics(step, topology))


def existing_topics(step: Step, topology: StreamsTopology) -> dict[str, int]:
    """Return the partition counts of the required topics that exist."""
    topics = step.shard.image().topics.by_name
    names = [name for name in topology.required_topics() if name in topics]
    return {name: len(topics[name].partitions) for name in sorted(names)}


def refresh(
    step: Step, group: StreamsGroup, configured: ConfiguredTopology, *, has_changed: bool
) -> None:
    """Begin a new group epoch if members, topics, topology or settings have changed."""
    topology = group.topology
    assert topology is not None, group.group_id
    metadata_hash = group.metadata_hash
    if group.configured is not configured:
        metadata_hash = compute_metadata_hash(step, topology)
    validated = topology.epoch if configured.is_ready else NO_TOPOLOGY_EPOCH
    configs = assignment_configs(step, group.group_id)
    before = group.metadata_hash, group.validated_topology_epoch, group.assignment_configs
    if has_changed or (metadata_hash, validated, configs) != before:
        epoch = group.group_epoch + 1
        write(step, GroupEpoch(group.group_id, epoch, metadata_hash, validated, configs))
        step.shard.rebalance_counts[StreamsGroup] += 1
    group.configured = configured
    group.seen_topics_version = step.shard.topics_version


def assignment_configs(step: Step, group_id: str) -> dict[str, str]:
    """Return the settings that the targets depend on, as they are recorded."""
    return {NUM_STANDBY_REPLICAS: str(step.streams_config(group_id).num_standby_replicas)}


def compute_metadata_hash(step: Step, topology: StreamsTopology) -> int:
    """Hash the required topics and their partition counts, as for a consumer group.

    Kafka uses another function. So a broker that takes a group over from the other implementation
    begins a new epoch, in which no task moves.
    """
    topics = step.shard.image().topics.by_name
    digest = blake2b(digest_size=8)
    for name, count in existing_topics(step, topology).items():
        digest.update(topics[name].topic_id)
        digest.update(count.to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True)


def delay_first(step: Step, group: StreamsGroup) -> None:
    """Let the first assignment of a group without members wait for more members."""
    delay_ms = step.streams_config(group.group_id).initial_rebalance_delay_ms
    if delay_ms > 0 and not group.is_first_delayed:
        group.is_first_delayed = True
        step.schedule(Deadline(StreamsDeadline.INITIAL_DELAY, group.group_id), delay_ms)


def on_initial_delay(step: Step, group: StreamsGroup) -> None:
    """Compute the first assignment."""
    group.is_first_delayed = False
    if group.members and group.configured is not None:
        maybe_assign(step, group)


def maybe_assign(step: Step, group: StreamsGroup) -> Status | None:
    """Compute and write the targets if they are due; return why they are delayed.

    A long computation continues at the next deadline.
    """
    if group.is_first_delayed:
        return delayed("Assignment delayed due to the configured initial rebalance delay.")
    if group.target_epoch >= group.group_epoch:
        return None
    interval_ms = step.streams_config(group.group_id).assignment_interval_ms
    if is_early(step, group.assignment_timestamp_ms, interval_ms):
        return delayed("Assignment delayed due to the configured assignment interval.")
    if group.new_targets is None:
        group.new_targets = begin_to_assign(group)
        go_on_assigning(step, group)
    if group.target_epoch < group.group_epoch:
        return delayed("Assignment delayed: it is being computed.")
    return None


def delayed(detail: str) -> Status:
    """Return the status of a delayed assignment."""
    return Status(status_code=StatusCode.ASSIGNMENT_DELAYED, status_detail=detail)


def begin_to_assign(group: StreamsGroup) -> NewTargets:
    """Return the computation of the targets, with a copy of the group's present state."""
    configured = group.configured
    assert configured is not None, group.group_id
    subtopologies = configured.subtopologies if configured.is_ready else {}
    return NewTargets(
        group_id=group.group_id,
        epoch=group.group_epoch,
        members={
            member_id: MemberSpec(
                member.metadata.process_id, group.targets.get(member_id, NO_TARGET)
            )
            for member_id, member in group.members.items()
        },
        subtopologies={
            name: SubtopologySpec(each.task_count, each.is_stateful)
            for name, each in subtopologies.items()
        },
        standby_count=int(group.assignment_configs.get(NUM_STANDBY_REPLICAS, "0")),
    )


def go_on_assigning(step: Step, group: StreamsGroup) -> None:
    """Continue the computation, and write the targets when it is done."""
    new = completed(step, group, StreamsDeadline.ASSIGNING)
    if new is None:
        return
    limit_bytes = step.shard.config.max_batch_bytes // RECORDS_IN_ONE
    if any(record_size_bytes(record) > limit_bytes for record in new.records.values()):
        logger.error(
            "group cannot be assigned group=%s: the tasks of one member do not fit a record",
            group.group_id,
        )
        return
    if new.unassigned_standby_count:
        logger.warning(
            "group has too few processes for its standby tasks group=%s missing=%d",
            group.group_id, new.unassigned_standby_count,
        )  # fmt: skip
    write_targets(step, group, new)


def write_targets(step: Step, group: StreamsGroup, new: NewTargets) -> None:
    """Write the targets of the members that are still in the group."""
    for member_id, record in new.records.items():
        if member_id in group.members:
            step.append(record)
            group.replay_target(member_id, new.targets[member_id])
    # This record is the last one: if the batches are split and only some of them are kept, the
    # computation runs again.
    write(step, TargetEpoch(group.group_id, new.epoch, step.now.timestamp_ms))
