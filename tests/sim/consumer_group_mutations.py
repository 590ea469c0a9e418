"""Bugs to plant in the coordinator of consumer groups: each omits or changes one rule."""

from dataclasses import replace

from broker.coordinator.consumer_group import (
    departures,
    heartbeat,
    reconciliation,
    subscriptions,
    targets,
)
from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.consumer_group.member import CurrentAssignment
from broker.coordinator.group import offsets
from common.kafka.errors import ErrorCode


def everything_is_free(patch):
    real = heartbeat.reconcile

    def blind(*arguments, **named):
        return real(*arguments, **{**named, "owners": {}})

    patch.setattr(heartbeat, "reconcile", blind)


def nobody_has_to_give_up(patch):
    patch.setattr(reconciliation, "has_any", lambda owned, reported: False)


def any_epoch_is_good(patch):
    patch.setattr(heartbeat, "validate_epoch", lambda member, request: None)
    what_the_epoch_before_leaves_out_is_given_up(patch)


def what_the_epoch_before_leaves_out_is_given_up(patch):
    def believed(member, request):
        return heartbeat.reported_partitions(request)

    patch.setattr(heartbeat, "confirmed_partitions", believed)


def any_commit_is_good(patch):
    patch.setattr(offsets, "committing_member", lambda *arguments: None)


def commits_are_good_by_the_member_alone(patch):
    patch.setattr(offsets, "commit_refusal", lambda *arguments: ErrorCode.NONE)


def silence_is_not_noticed(patch):
    patch.setattr(departures, "restart_timers", lambda *arguments: None)


def growing_topics_are_not_noticed(patch):
    patch.setattr(subscriptions, "compute_metadata_hash", lambda step, group: 1)


def what_is_pending_is_not_owned(patch):
    whole = ConsumerGroup.replay_current

    def forgetful(group, member_id, current):
        if current is not None:
            current = replace(current, pending_revocation={})
        whole(group, member_id, current)

    patch.setattr(ConsumerGroup, "replay_current", forgetful)


def a_target_is_taken_at_once(patch):
    def jump(current, target, *, target_epoch, reported, owners):
        owned = {
            topic_id: dict.fromkeys(partitions, target_epoch)
            for topic_id, partitions in target.items()
        }
        return CurrentAssignment(target_epoch, current.member_epoch, assigned=owned)

    patch.setattr(heartbeat, "reconcile", jump)


def the_old_epoch_goes_on_after_a_member_has_left(patch):
    patch.setattr(departures, "refresh", lambda *arguments, **more: None)


def an_assignment_is_made_once(patch):
    real = targets.maybe_assign
    patch.setattr(
        heartbeat,
        "maybe_assign",
        lambda step, group: bool(group.target_epoch) or real(step, group),
    )


MUTATIONS = [
    everything_is_free,
    nobody_has_to_give_up,
    any_epoch_is_good,
    what_the_epoch_before_leaves_out_is_given_up,
    any_commit_is_good,
    commits_are_good_by_the_member_alone,
    silence_is_not_noticed,
    growing_topics_are_not_noticed,
    what_is_pending_is_not_owned,
    a_target_is_taken_at_once,
    the_old_epoch_goes_on_after_a_member_has_left,
    an_assignment_is_made_once,
]
