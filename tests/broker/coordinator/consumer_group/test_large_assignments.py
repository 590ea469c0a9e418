"""What would take too long at once is assigned in steps, and the group may change meanwhile."""

import pytest

from broker.coordinator.group_state import modern_group
from tests.lib.consumer_group_scenario import Consumer, ConsumerScenario

PARTITION_COUNT = 60


@pytest.fixture
def world(monkeypatch):
    monkeypatch.setattr(modern_group, "COST_AT_ONCE", 20)
    world = ConsumerScenario()
    world.topics(orders=PARTITION_COUNT // 2, payments=PARTITION_COUNT // 2)
    return world


def settled_group(world, member_count=4, **more) -> list[Consumer]:
    options = [{name: f"{value}{n}" for name, value in more.items()} for n in range(member_count)]
    consumers = [world.consumer("orders", "payments", **each) for each in options]
    world.settle(*consumers)
    assert sum(len(each.owned) for each in consumers) == PARTITION_COUNT
    return consumers


def begin_to_assign(world, consumers) -> Consumer:
    """Let another member come, and the assignor begin."""
    newcomer = world.consumer("orders", "payments")
    newcomer.beat()
    while world.consumer_group.new_targets is None:
        world.advance(100)
        consumers[-1].beat()
    return newcomer


def test_others_have_their_turn_between_the_steps(world):
    consumers = settled_group(world)
    newcomer = begin_to_assign(world, consumers)
    epoch, turns = world.consumer_group.target_epoch, 0
    while world.consumer_group.new_targets is not None:
        assert world.consumer_group.target_epoch == epoch
        newcomer.beat()
        assert newcomer.owned == frozenset()
        world.advance(1)
        turns += 1
    assert turns > 3
    world.settle(*consumers, newcomer)
    assert {len(each.owned) for each in (*consumers, newcomer)} == {PARTITION_COUNT // 5}


def test_members_come_and_go_meanwhile(world):
    consumers = settled_group(world)
    newcomer = begin_to_assign(world, consumers)
    consumers.pop(0).leave()
    late = world.consumer("orders", "payments")
    late.beat()
    assert world.consumer_group.new_targets is not None
    world.settle(*consumers, newcomer, late)
    assert {len(each.owned) for each in (*consumers, newcomer, late)} == {PARTITION_COUNT // 5}


def test_a_static_member_that_comes_back_meanwhile_has_the_new_target(world):
    consumers = settled_group(world, instance_id="instance")
    newcomer = begin_to_assign(world, consumers)
    gone = consumers[0]
    gone.leave(epoch=-2)
    consumers[0] = back = world.consumer("orders", "payments", instance_id=gone.instance_id)
    back.beat()
    assert back.member_id != gone.member_id
    assert world.consumer_group.new_targets is not None
    world.advance(100)
    targets = world.consumer_group.targets
    assert sum(map(len, targets[back.member_id].values())) == PARTITION_COUNT // 5
    world.settle(*consumers, newcomer)
    assert {len(each.owned) for each in (*consumers, newcomer)} == {PARTITION_COUNT // 5}


def test_whoever_loads_the_group_meanwhile_begins_anew(world):
    consumers = settled_group(world)
    newcomer = begin_to_assign(world, consumers)
    world.reload()
    assert world.consumer_group.new_targets is None
    world.settle(*consumers, newcomer)
    assert {len(each.owned) for each in (*consumers, newcomer)} == {PARTITION_COUNT // 5}
