"""Online migration (KIP-848): a classic group in use becomes a consumer group, and back.

Upgrade: a consumer joins a classic group of consumers. The classic members continue with JoinGroup
and SyncGroup (`classic_members.py`), in the epoch that was their generation. Downgrade: the last
member that uses the consumer protocol leaves. A group without members changes its kind in any case.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from broker.coordinator.classic_group import rebalance
from broker.coordinator.classic_group.classic_group import (
    ClassicDeadline,
    ClassicGroup,
    GroupEvent,
    GroupState,
)
from broker.coordinator.classic_group.member import CONSUMER_PROTOCOL_TYPE, Member
from broker.coordinator.classic_group.records import group_record, group_tombstone
from broker.coordinator.classic_group.sessions import end_session, restart_session
from broker.coordinator.consumer_group.consumer_group import ConsumerDeadline, ConsumerGroup
from broker.coordinator.consumer_group.member import (
    Assignment,
    ClassicMetadata,
    CurrentAssignment,
    MemberState,
    MemberSubscription,
)
from broker.coordinator.consumer_group.records import (
    ConsumerGroupRecord,
    Current,
    GroupEpoch,
    MemberMetadata,
    Regex,
    Target,
    TargetEpoch,
)
from broker.coordinator.consumer_group.replay import replay, write
from broker.coordinator.group_state.step import Deadline, Step
from broker.metadata.image import TopicsImage
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    version_of,
)
from common.kafka.protocol.wire import DecodeError

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Prospect:
    """The group that a member wants to join, as it would become; `settle` writes it."""

    group: ConsumerGroup
    records: tuple[ConsumerGroupRecord, ...] = ()
    replaced: ClassicGroup | None = None

    def settle(self, step: Step) -> None:
        """Replace the classic group, if any, and write the records of the consumer group."""
        if self.replaced is not None:
            dissolve(step, self.replaced)
        for record in self.records:
            step.append(record.encoded())
        step.shard.of(ConsumerGroup)[self.group.group_id] = self.group


def prospect(step: Step, group_id: str) -> Prospect:
    """Return the group to join: an existing one, a new one, or the upgrade of a classic one.

    Raise GROUP_ID_NOT_FOUND for a classic group that cannot be upgraded.
    """
    group = step.shard.of(ConsumerGroup).get(group_id)
    if group is not None:
        return Prospect(group)
    if step.shard.has_other_group(group_id, than=step.shard.of(ClassicGroup)):
        raise not_a_consumer_group(group_id)
    classic = step.shard.of(ClassicGroup).get(group_id)
    if classic is None or classic.state is GroupState.EMPTY:
        return Prospect(ConsumerGroup(group_id), replaced=classic)
    validate_upgrade(step, classic)
    try:
        records = upgraded(step, classic)
    except DecodeError as error:
        raise not_a_consumer_group(group_id) from error
    made: dict[str, ConsumerGroup] = {}
    for record in records:
        replay(made, record)
    return Prospect(made[group_id], records, classic)


# Upgrade.


def not_a_consumer_group(group_id: str) -> KafkaError:
    """Return the error for a group of another kind."""
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def validate_upgrade(step: Step, group: ClassicGroup) -> None:
    """Raise GROUP_ID_NOT_FOUND for a group that may not become a consumer group."""
    config = step.shard.config.consumer
    if (
        not config.migration_policy.allows_upgrade
        or group.protocol_type != CONSUMER_PROTOCOL_TYPE
        or len(group.members) > config.max_size
    ):
        raise not_a_consumer_group(group.group_id)


def upgraded(step: Step, group: ClassicGroup) -> tuple[ConsumerGroupRecord, ...]:
    """Return the records of the consumer group for a classic group; raise DecodeError."""
    group_id, epoch = group.group_id, group.generation_id
    records: list[ConsumerGroupRecord] = []
    subscriptions = {
        member.member_id: decode_subscription(member.protocols[0].metadata)
        for member in group.members.values()
    }
    for member in group.members.values():
        said = subscriptions[member.member_id]
        subscription = MemberSubscription(
            instance_id=member.group_instance_id,
            rack_id=said.rack_id or None,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=frozenset(said.topics),
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
        )
        records.append(MemberMetadata(group_id, member.member_id, subscription))
    records.append(GroupEpoch(group_id, epoch))
    targets = holdings(group, subscriptions, step.shard.image().topics)
    records += [Target(group_id, each, targets.get(each, {})) for each in group.members]
    records.append(TargetEpoch(group_id, epoch))
    for member_id in group.members:
        owned = {
            topic_id: dict.fromkeys(partitions, epoch)
            for topic_id, partitions in targets.get(member_id, {}).items()
        }
        current = CurrentAssignment(epoch, epoch, MemberState.STABLE, owned)
        records.append(Current(group_id, member_id, current))
    return tuple(records)


def holdings(
    group: ClassicGroup,
    subscriptions: dict[str, ConsumerProtocolSubscription],
    topics: TopicsImage,
) -> Mapping[str, Assignment]:
    """Return the partitions that each classic member may be reading, in any state of a rebalance.

    Cooperative members (KIP-429) continue to read while they join, and revoke only what the next
    SyncGroup takes from them. So a member may read its last assignment and the partitions that it
    reported when it joined; the coordinator drops the former when a rebalance is interrupted.
    """
    assigned = [
        (member.member_id, decode_assignment(member.assignment).assigned_partitions)
        for member in group.members.values()
        if member.assignment
    ]
    # If two members report the same partition, the one of the older generation has lost it
    # without knowing it (KIP-792).
    newest_first = sorted(subscriptions.items(), key=lambda each: -each[1].generation_id)
    said = [(member_id, each.owned_partitions) for member_id, each in newest_first]
    return without_doubles(
        (member_id, with_ids(partitions, topics)) for member_id, partitions in assigned + said
    )


def with_ids(partitions: Sequence[TopicPartition], topics: TopicsImage) -> Assignment:
    """Return partitions by topic id, without those of deleted topics."""
    return {
        topics.by_name[each.topic].topic_id: frozenset(each.partitions)
        for each in partitions
        if each.topic in topics.by_name and each.partitions
    }


def without_doubles(claims: Iterable[tuple[str, Assignment]]) -> Mapping[str, Assignment]:
    """Give a partition that several members claim to the first of them."""
    taken: set[tuple[bytes, int]] = set()
    cleaned: dict[str, dict[bytes, frozenset[int]]] = {}
    for member_id, claim in claims:
        own = cleaned.setdefault(member_id, {})
        for topic_id, partitions in claim.items():
            free = frozenset(each for each in partitions if (topic_id, each) not in taken)
            taken.update((topic_id, each) for each in free)
            if free:
                own[topic_id] = own.get(topic_id, frozenset()) | free
    return cleaned


def dissolve(step: Step, group: ClassicGroup) -> None:
    """End a classic group that becomes a consumer group; its waiting members join again."""
    for member in list(group.members.values()):
        rebalance.remove_parked(step, group, member, ErrorCode.REBALANCE_IN_PROGRESS)
        end_session(step, group, member.member_id)
    for member_id in sorted(group.pending_member_ids):
        end_session(step, group, member_id)
    for kind in (ClassicDeadline.JOIN, ClassicDeadline.SYNC):
        step.cancel(Deadline(kind, group.group_id))
    group.move(GroupEvent.REMOVED, step.now.timestamp_ms)
    if group.is_persisted:
        step.append(group_tombstone(group.group_id))
    del step.shard.of(ClassicGroup)[group.group_id]


# Downgrade.


def erase_group(step: Step, group: ConsumerGroup) -> None:
    """Write the tombstones of a group and of its members."""
    for member_id in list(group.members):
        for kind in ConsumerDeadline:
            step.cancel(Deadline(kind, group.group_id, member_id))
        write(step, Current(group.group_id, member_id, None))
    for member_id in list(group.targets):
        write(step, Target(group.group_id, member_id, None))
    write(step, TargetEpoch(group.group_id, None))
    for member_id in list(group.members):
        write(step, MemberMetadata(group.group_id, member_id, None))
    for pattern in list(group.regexes):
        write(step, Regex(group.group_id, pattern, None))
    write(step, GroupEpoch(group.group_id, None))


def maybe_downgrade(step: Step, group: ConsumerGroup) -> bool:
    """Downgrade a group that has only classic members left; return True if it was done."""
    if not group.members or not all(each.uses_classic_protocol for each in group.members.values()):
        return False
    policy = step.shard.config.consumer.migration_policy
    if not policy.allows_downgrade or len(group.members) > step.shard.config.group_max_size:
        return False
    classic = downgraded(step, group)
    if classic is None:
        return False
    erase_group(step, group)
    step.shard.of(ClassicGroup)[group.group_id] = classic
    classic.is_persisted = True
    step.append(group_record(classic, classic.members.values()))
    for member in classic.members.values():
        restart_session(step, classic, member)
    logger.info("group was downgraded to a classic group group=%s", group.group_id)
    rebalance.prepare_rebalance(step, classic, "the last member of the consumer protocol left")
    return True


def downgraded(step: Step, group: ConsumerGroup) -> ClassicGroup | None:
    """Return the classic group in its place; None if its members share no protocol.

    The members keep all partitions that they own, with those that they were about to revoke. This
    assignment is used only if a consumer joins before the members have joined again.
    """
    classic = ClassicGroup(
        group.group_id, generation_id=group.group_epoch, protocol_type=CONSUMER_PROTOCOL_TYPE
    )
    topics = step.shard.image().topics
    for each in group.members.values():
        said = each.subscription
        assert said.classic is not None, each
        member = Member(
            each.member_id,
            said.instance_id,
            said.client_id,
            said.client_host,
            said.rebalance_timeout_ms,
            said.classic.session_timeout_ms,
            said.classic.protocols,
            as_bytes(each.current.held, said.classic, topics),
        )
        classic.add(member, CONSUMER_PROTOCOL_TYPE)
    if not any(count == len(classic.members) for count in classic.supported_protocols.values()):
        return None
    classic.protocol_name = classic.select_protocol()
    classic.subscribed_topics = classic.compute_subscribed_topics()
    classic.state = GroupState.STABLE
    classic.current_state_timestamp_ms = step.now.timestamp_ms
    return classic


def as_bytes(assignment: Assignment, classic: ClassicMetadata, topics: TopicsImage) -> bytes:
    """Encode an assignment for a classic member, in the version of its subscription."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=topics.by_id[topic_id].name, partitions=sorted(partitions))
            for topic_id, partitions in assignment.items()
            if topic_id in topics.by_id
        ]
    )
    return encode_assignment(message, version_of(classic.protocols[0].metadata))
