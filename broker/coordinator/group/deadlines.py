"""Acts on deadlines: each goes to the file that handles it, by the kind of its group.

A group of another kind may have had the name when the deadline was set: then nothing happens.
"""

from broker.coordinator.classic_group import liveness, rebalance, sync
from broker.coordinator.classic_group.classic_group import ClassicDeadline, ClassicGroup
from broker.coordinator.consumer_group import classic_members, departures, subscriptions, targets
from broker.coordinator.consumer_group.consumer_group import ConsumerDeadline, ConsumerGroup
from broker.coordinator.group_state.step import Deadline, Step
from broker.coordinator.share_group import departures as share_departures
from broker.coordinator.share_group import targets as share_targets
from broker.coordinator.share_group.share_group import ShareDeadline, ShareGroup
from broker.coordinator.streams_group import departures as streams_departures
from broker.coordinator.streams_group import targets as streams_targets
from broker.coordinator.streams_group.streams_group import StreamsDeadline, StreamsGroup


def on_deadline(step: Step, deadline: Deadline) -> None:
    """Act on one deadline."""
    shard, kind, group_id, member_id = step.shard, *deadline
    match kind:
        case ClassicDeadline():
            if group := shard.of(ClassicGroup).get(group_id):
                on_classic_deadline(step, group, kind, member_id)
        case ConsumerDeadline():
            if consumer_group := shard.of(ConsumerGroup).get(group_id):
                on_consumer_deadline(step, consumer_group, kind, member_id)
        case ShareDeadline():
            if share_group := shard.of(ShareGroup).get(group_id):
                on_share_deadline(step, share_group, kind, member_id)
        case StreamsDeadline():
            if streams_group := shard.of(StreamsGroup).get(group_id):
                on_streams_deadline(step, streams_group, kind, member_id)
        case _:
            raise AssertionError(deadline)


def on_classic_deadline(
    step: Step, group: ClassicGroup, kind: ClassicDeadline, member_id: str
) -> None:
    """Act on a deadline of a classic group."""
    match kind:
        case ClassicDeadline.JOIN:
            rebalance.on_join_deadline(step, group)
        case ClassicDeadline.SYNC:
            sync.on_sync_deadline(step, group)
        case ClassicDeadline.SESSION:
            liveness.on_session_deadline(step, group, member_id)


def on_consumer_deadline(
    step: Step, group: ConsumerGroup, kind: ConsumerDeadline, member_id: str
) -> None:
    """Act on a deadline of a consumer group."""
    match kind:
        case ConsumerDeadline.SESSION:
            departures.on_session_deadline(step, group, member_id)
        case ConsumerDeadline.REVOCATION:
            departures.on_revocation_deadline(step, group, member_id)
        case ConsumerDeadline.CLASSIC_JOIN | ConsumerDeadline.CLASSIC_SYNC:
            classic_members.on_classic_deadline(step, group, member_id)
        case ConsumerDeadline.MATCHING:
            subscriptions.on_matching(step, group, member_id)
        case ConsumerDeadline.ASSIGNING:
            targets.go_on_assigning(step, group)


def on_share_deadline(step: Step, group: ShareGroup, kind: ShareDeadline, member_id: str) -> None:
    """Act on a deadline of a share group."""
    match kind:
        case ShareDeadline.SESSION:
            share_departures.on_session_deadline(step, group, member_id)
        case ShareDeadline.ASSIGNING:
            share_targets.go_on_assigning(step, group)


def on_streams_deadline(
    step: Step, group: StreamsGroup, kind: StreamsDeadline, member_id: str
) -> None:
    """Act on a deadline of a streams group."""
    match kind:
        case StreamsDeadline.SESSION:
            streams_departures.on_session_deadline(step, group, member_id)
        case StreamsDeadline.REVOCATION:
            streams_departures.on_revocation_deadline(step, group, member_id)
        case StreamsDeadline.INITIAL_DELAY:
            streams_targets.on_initial_delay(step, group)
        case StreamsDeadline.ASSIGNING:
            streams_targets.go_on_assigning(step, group)
