"""Acts on deadlines: each goes to the file that handles it, by the kind of its group.

A group of another kind may have had the name when the deadline was set: then nothing happens.
"""

from broker.coordinator.consumer_group import classic_members, departures, subscriptions, targets
from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.group import liveness, rebalance, sync
from broker.coordinator.group.classic_group import ClassicGroup
from broker.coordinator.group.step import Deadline, DeadlineKind, Step
from broker.coordinator.share_group import departures as share_departures
from broker.coordinator.share_group import targets as share_targets
from broker.coordinator.share_group.share_group import ShareGroup
from broker.coordinator.streams_group import departures as streams_departures
from broker.coordinator.streams_group import targets as streams_targets
from broker.coordinator.streams_group.streams_group import StreamsGroup


def on_deadline(step: Step, deadline: Deadline) -> None:
    """Act on one deadline."""
    shard, group_id = step.shard, deadline.group_id
    if consumer_group := shard.consumer_groups.get(group_id):
        on_consumer_deadline(step, consumer_group, deadline)
    elif share_group := shard.share_groups.get(group_id):
        on_share_deadline(step, share_group, deadline)
    elif streams_group := shard.streams_groups.get(group_id):
        on_streams_deadline(step, streams_group, deadline)
    elif group := shard.groups.get(group_id):
        on_classic_deadline(step, group, deadline)


def on_classic_deadline(step: Step, group: ClassicGroup, deadline: Deadline) -> None:
    """Act on a deadline of a classic group."""
    match deadline.kind:
        case DeadlineKind.JOIN:
            rebalance.on_join_deadline(step, group)
        case DeadlineKind.SYNC:
            sync.on_sync_deadline(step, group)
        case DeadlineKind.SESSION:
            liveness.on_session_deadline(step, group, deadline.member_id)
        case _:
            pass


def on_consumer_deadline(step: Step, group: ConsumerGroup, deadline: Deadline) -> None:
    """Act on a deadline of a consumer group."""
    match deadline.kind:
        case DeadlineKind.CONSUMER_SESSION:
            departures.on_session_deadline(step, group, deadline.member_id)
        case DeadlineKind.REVOCATION:
            departures.on_revocation_deadline(step, group, deadline.member_id)
        case DeadlineKind.CLASSIC_JOIN | DeadlineKind.CLASSIC_SYNC:
            classic_members.on_classic_deadline(step, group, deadline.member_id)
        case DeadlineKind.MATCHING:
            subscriptions.on_matching(step, group, deadline.member_id)
        case DeadlineKind.ASSIGNING:
            targets.go_on_assigning(step, group)
        case _:
            pass


def on_share_deadline(step: Step, group: ShareGroup, deadline: Deadline) -> None:
    """Act on a deadline of a share group."""
    match deadline.kind:
        case DeadlineKind.SHARE_SESSION:
            share_departures.on_session_deadline(step, group, deadline.member_id)
        case DeadlineKind.ASSIGNING:
            share_targets.go_on_assigning(step, group)
        case _:
            pass


def on_streams_deadline(step: Step, group: StreamsGroup, deadline: Deadline) -> None:
    """Act on a deadline of a streams group."""
    match deadline.kind:
        case DeadlineKind.CONSUMER_SESSION:
            streams_departures.on_session_deadline(step, group, deadline.member_id)
        case DeadlineKind.REVOCATION:
            streams_departures.on_revocation_deadline(step, group, deadline.member_id)
        case DeadlineKind.INITIAL_DELAY:
            streams_targets.on_initial_delay(step, group)
        case DeadlineKind.ASSIGNING:
            streams_targets.go_on_assigning(step, group)
        case _:
            pass
