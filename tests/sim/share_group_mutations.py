"""Bugs to plant in the coordinator of share groups: each omits or changes one rule."""

from broker.coordinator.share_group import departures, heartbeat, initialization, targets
from broker.coordinator.share_group.state_partitions import StatePartitions


def partitions_whose_state_is_awaited_are_assigned(patch):
    real = targets.assignable

    def hasty(step, group):
        return {topic_id: group.states.all_of(topic_id) for topic_id in real(step, group)}

    patch.setattr(targets, "assignable", hasty)


def partitions_without_state_are_assigned(patch):
    def careless(step, group):
        known = step.shard.image().topics.by_name
        names = [name for name in group.topic_counts if name in known]
        return {known[name].topic_id: frozenset(known[name].partitions) for name in names}

    patch.setattr(targets, "assignable", careless)


def a_refused_state_counts_as_begun(patch):
    patch.setattr(StatePartitions, "failed", StatePartitions.confirmed)


def a_state_is_asked_for_once(patch):
    real = initialization.lacking_state

    def once(step, group):
        wanted = real(step, group)
        return {one: named for one, named in wanted.items() if one not in group.states.initializing}

    patch.setattr(initialization, "lacking_state", once)


def what_nobody_awaits_is_awaited(patch):
    real = heartbeat.maybe_initialize

    def impatient(step, group):
        return real(step, group) or bool(group.states.initializing)

    patch.setattr(heartbeat, "maybe_initialize", impatient)


def a_begun_state_brings_no_epoch(patch):
    patch.setattr(heartbeat, "is_waiting_for_epoch", lambda step, group: False)


def growing_topics_are_not_noticed(patch):
    patch.setattr(initialization, "lacking_state", lambda step, group: {})


def deleted_topics_are_kept(patch):
    patch.setattr(StatePartitions, "without", lambda states, topic_ids: states)


def silence_is_not_noticed(patch):
    patch.setattr(departures, "restart_session", lambda *arguments: None)


def those_who_leave_are_kept(patch):
    patch.setattr(departures, "remove", lambda *arguments: None)


def a_changed_assignment_is_not_told(patch):
    real = heartbeat.follow_target

    def silent(step, group, member, *, has_changed):
        before = dict(member.current.partitions)
        real(step, group, member, has_changed=has_changed)
        if before:
            member.current.partitions.clear()
            member.current.partitions.update(before)

    patch.setattr(heartbeat, "follow_target", silent)


def one_member_gets_everything(patch):
    real = targets.assign

    def unfair(members, partitions):
        first = {min(members): members[min(members)]} if members else {}
        found = yield from real(first, partitions)
        return {member_id: found.get(member_id, {}) for member_id in members}

    patch.setattr(targets, "assign", unfair)


def old_targets_count_as_new(patch):
    patch.setattr(targets, "is_early", lambda *arguments: True)


MUTATIONS = [
    partitions_whose_state_is_awaited_are_assigned,
    partitions_without_state_are_assigned,
    a_refused_state_counts_as_begun,
    a_state_is_asked_for_once,
    what_nobody_awaits_is_awaited,
    a_begun_state_brings_no_epoch,
    growing_topics_are_not_noticed,
    deleted_topics_are_kept,
    silence_is_not_noticed,
    those_who_leave_are_kept,
    a_changed_assignment_is_not_told,
    one_member_gets_everything,
    old_targets_count_as_new,
]
