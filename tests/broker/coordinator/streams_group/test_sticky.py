"""The assignor `sticky`: balance, stickiness, standby tasks, and bounded work."""

from random import Random

import pytest

from broker.coordinator.streams_group.member import Target
from broker.coordinator.streams_group.sticky import MemberSpec, Sticky, SubtopologySpec


def assign(members, subtopologies, standby_count=0):
    sticky = Sticky(members, subtopologies, standby_count)
    cost = sum(sticky.steps())
    return sticky, cost


def fresh(*process_ids):
    return {f"m{n}": MemberSpec(process, Target()) for n, process in enumerate(process_ids)}


def again(members, targets, *, without=(), more=()):
    """The members with the targets that they have got, some gone and some new."""
    kept = {
        name: MemberSpec(spec.process_id, targets[name])
        for name, spec in members.items()
        if name not in without
    }
    return kept | {name: MemberSpec(name, Target()) for name in more}


def tasks(tasks):
    return {(name, each) for name, partitions in tasks.items() for each in partitions}


def check(members, subtopologies, standby_count, targets):
    """Every active task once; no process has a task twice; the load is even."""
    active = [each for target in targets.values() for each in tasks(target.active)]
    wanted = {(name, n) for name, each in subtopologies.items() for n in range(each.task_count)}
    assert sorted(active) == sorted(wanted)
    in_process: dict = {}
    for name, target in targets.items():
        for task in (*tasks(target.active), *tasks(target.standby)):
            assert (members[name].process_id, task) not in in_process, task
            in_process[members[name].process_id, task] = name
    stateful = {task for task in wanted if subtopologies[task[0]].is_stateful}
    processes = len({spec.process_id for spec in members.values()})
    standby = [each for target in targets.values() for each in tasks(target.standby)]
    assert set(standby) <= stateful
    assert len(standby) == len(stateful) * min(standby_count, processes - 1)


SUBTOPOLOGIES = {"a": SubtopologySpec(6, is_stateful=False), "b": SubtopologySpec(6, True)}


def test_tasks_are_spread_over_processes_by_their_threads():
    members = fresh("p", "p", "q")
    sticky, _ = assign(members, SUBTOPOLOGIES)
    check(members, SUBTOPOLOGIES, 0, sticky.targets)
    assert sorted(sum(map(len, each.active.values())) for each in sticky.targets.values()) == [
        4,
        4,
        4,
    ]


def test_nothing_moves_without_need():
    members = fresh("p", "q", "r")
    first, _ = assign(members, SUBTOPOLOGIES, 1)
    second, _ = assign(again(members, first.targets), SUBTOPOLOGIES, 1)
    assert second.targets == first.targets


def test_a_new_member_gets_its_share_and_the_others_keep_the_rest():
    members = fresh("p", "q")
    first, _ = assign(members, SUBTOPOLOGIES)
    more = again(members, first.targets, more=["new"])
    second, _ = assign(more, SUBTOPOLOGIES)
    check(more, SUBTOPOLOGIES, 0, second.targets)
    for name in members:
        kept = tasks(second.targets[name].active)
        assert kept <= tasks(first.targets[name].active)
        assert len(kept) == 4


def test_a_standby_takes_over_the_tasks_of_a_process_that_is_gone():
    subtopologies = {"b": SubtopologySpec(4, is_stateful=True)}
    members = fresh("p", "q")
    first, _ = assign(members, subtopologies, 1)
    second, _ = assign(again(members, first.targets, without=["m0"]), subtopologies, 1)
    assert tasks(second.targets["m1"].active) == {("b", n) for n in range(4)}
    assert second.unassigned_standby_count == 4


@pytest.mark.parametrize("seed", range(200))
def test_any_history_of_members_stays_balanced(seed):
    random = Random(seed)
    members = fresh(*(f"p{random.randrange(4)}" for _ in range(random.randint(1, 6))))
    subtopologies = {
        f"s{n}": SubtopologySpec(random.randint(1, 9), random.random() < 0.6)
        for n in range(random.randint(1, 4))
    }
    standby_count = random.randint(0, 2)
    for step in range(4):
        sticky, _ = assign(members, subtopologies, standby_count)
        check(members, subtopologies, standby_count, sticky.targets)
        counts = [sum(map(len, each.active.values())) for each in sticky.targets.values()]
        total = sum(each.task_count for each in subtopologies.values())
        assert max(counts) <= -(-total // len(members)) + total // 2
        gone = random.sample(sorted(members), random.randint(0, len(members) - 1))
        members = again(members, sticky.targets, without=gone, more=[f"n{seed}-{step}"])


def test_the_work_is_bounded_by_the_tasks_and_members():
    members = fresh(*(["one process"] * 2_000))
    sticky, cost = assign(members, {"a": SubtopologySpec(20_000, True)}, 2)
    assert cost < 300_000
    assert sticky.unassigned_standby_count == 40_000


def test_without_members_there_is_nothing_to_do():
    assert assign({}, SUBTOPOLOGIES)[0].targets == {}
