"""Seeded histories of a consumer group, and bugs planted in it that they must find.

A failure names its seed: `MILLRACE_SIM_SEEDS=1 MILLRACE_SIM_FIRST_SEED=<seed>` replays it alone.
"""

import os
from dataclasses import replace

import pytest

from broker.coordinator.consumer_group import (
    departures,
    heartbeat,
    new_targets,
    reconciliation,
    subscriptions,
    targets,
)
from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.consumer_group.member import CurrentAssignment
from broker.coordinator.group import offsets
from broker.errors import ErrorCode
from tests.sim.consumer_group_world import ConsumerGroupWorld
from tests.sim.migrating_group_world import MigratingGroupWorld

FIRST_SEED = int(os.environ.get("MILLRACE_SIM_FIRST_SEED", "0"))
SEED_COUNT = int(os.environ.get("MILLRACE_SIM_SEEDS", "30"))
EVENT_COUNT = 150


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEED_COUNT))
def test_a_partition_is_held_by_one_and_the_group_comes_to_rest(seed):
    ConsumerGroupWorld(seed=seed).run(EVENT_COUNT)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEED_COUNT))
def test_a_group_changes_its_kind_under_its_members(seed):
    MigratingGroupWorld(seed=seed).run(EVENT_COUNT)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + max(SEED_COUNT // 2, 1)))
def test_a_group_may_change_while_it_is_being_assigned(seed, monkeypatch):
    monkeypatch.setattr(new_targets, "COST_AT_ONCE", 1)
    MigratingGroupWorld(seed=seed).run(EVENT_COUNT)


def everything_is_free(patch):
    real = heartbeat.reconcile

    def blind(*arguments, **named):
        return real(*arguments, **{**named, "owners": {}})

    patch.setattr(heartbeat, "reconcile", blind)


def nobody_has_to_give_up(patch):
    patch.setattr(reconciliation, "has_any", lambda owned, reported: False)


def any_epoch_is_good(patch):
    patch.setattr(heartbeat, "validate_epoch", lambda member, request: None)


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


BUGS = [
    everything_is_free,
    nobody_has_to_give_up,
    any_epoch_is_good,
    any_commit_is_good,
    commits_are_good_by_the_member_alone,
    silence_is_not_noticed,
    growing_topics_are_not_noticed,
    what_is_pending_is_not_owned,
    a_target_is_taken_at_once,
    the_old_epoch_goes_on_after_a_member_has_left,
    an_assignment_is_made_once,
]


@pytest.mark.parametrize("plant", BUGS)
def test_a_planted_bug_is_found(plant, monkeypatch):
    plant(monkeypatch)
    for seed in range(60):
        try:
            ConsumerGroupWorld(seed=seed).run(EVENT_COUNT)
        except (AssertionError, KeyError):
            return
    pytest.fail("no history shows it")
