"""Bugs to plant in the coordinator of streams groups: each omits or changes one rule."""

from dataclasses import replace

from broker.coordinator.streams_group import departures, heartbeat, reconciliation, targets
from broker.coordinator.streams_group.member import CurrentAssignment, Held, Target
from broker.coordinator.streams_group.streams_group import StreamsGroup


def every_active_task_is_free(patch):
    patch.setattr(StreamsGroup, "is_active_free", lambda *arguments: True)


def every_standby_task_is_free(patch):
    patch.setattr(StreamsGroup, "is_standby_free", lambda *arguments: True)


def standbys_of_the_own_process_are_not_looked_at(patch):
    patch.setattr(StreamsGroup, "_has_standby", lambda *arguments: False)


def nobody_has_to_give_up(patch):
    patch.setattr(reconciliation.Reported, "has_any_of", lambda *arguments: False)


def any_epoch_is_good(patch):
    patch.setattr(heartbeat, "validate_epoch", lambda member, request: None)
    patch.setattr(heartbeat, "confirmed", lambda member, request: heartbeat.reported_tasks(request))


def silence_is_not_noticed(patch):
    patch.setattr(departures, "restart_timers", lambda *arguments: None)


def growing_topics_are_not_noticed(patch):
    real = heartbeat.configured_for
    patch.setattr(
        heartbeat,
        "configured_for",
        lambda step, group, topology: group.configured or real(step, group, topology),
    )


def what_is_pending_is_not_owned(patch):
    whole = StreamsGroup.replay_current

    def forgetful(group, member_id, current):
        if current is not None:
            current = replace(current, pending_revocation=Held())
        whole(group, member_id, current)

    patch.setattr(StreamsGroup, "replay_current", forgetful)


def a_target_is_taken_at_once(patch):
    def jump(current, target, *, target_epoch, **more):
        held = Held(
            *(
                {name: dict.fromkeys(each, target_epoch) for name, each in tasks.items()}
                for tasks in (target.active, target.standby)
            )
        )
        return CurrentAssignment(target_epoch, current.member_epoch, assigned=held)

    patch.setattr(heartbeat, "reconcile", jump)


def a_new_process_keeps_the_tasks(patch):
    patch.setattr(heartbeat, "changes_process", lambda member, request: False)


def the_first_delay_never_ends(patch):
    patch.setattr(targets, "on_initial_delay", lambda step, group: None)


def the_old_epoch_goes_on_after_a_member_has_left(patch):
    patch.setattr(
        departures,
        "remove",
        lambda step, group, member, reason: departures.erase(step, group, member),
    )


def everyone_gets_everything(patch):
    real = targets.write_targets

    def generous(step, group, new):
        every = {
            name: frozenset(range(each.task_count)) for name, each in new.subtopologies.items()
        }
        new.targets = dict.fromkeys(new.targets, Target(every))
        real(step, group, new)

    patch.setattr(targets, "write_targets", generous)


MUTATIONS = [
    every_active_task_is_free,
    every_standby_task_is_free,
    standbys_of_the_own_process_are_not_looked_at,
    nobody_has_to_give_up,
    any_epoch_is_good,
    silence_is_not_noticed,
    growing_topics_are_not_noticed,
    what_is_pending_is_not_owned,
    a_target_is_taken_at_once,
    a_new_process_keeps_the_tasks,
    the_first_delay_never_ends,
    the_old_epoch_goes_on_after_a_member_has_left,
    everyone_gets_everything,
]
