"""The numbers of groups for /metrics."""

from broker.server.coordinators.group_metrics import group_numbers
from tests.lib.consumer_group_scenario import ConsumerScenario


def numbers(world: ConsumerScenario) -> dict[tuple[str, str], int]:
    return {
        (each.name, each.label[1] if each.label else ""): each.value
        for each in group_numbers([world.shard])
    }


def test_a_consumer_group_is_counted_by_its_state():
    world = ConsumerScenario()
    world.topics(orders=2)
    assert numbers(world)["group_count", "consumer"] == 0
    assert numbers(world)["consumer_group_rebalance", ""] == 0
    consumer = world.consumer("orders")
    world.settle(consumer)
    found = numbers(world)
    assert found["group_count", "consumer"] == 1
    assert found["consumer_group_count", "stable"] == 1
    assert found["consumer_group_count", "empty"] == 0
    assert found["consumer_group_rebalance", ""] == 1
    assert found["streams_group_count", "stable"] == 0
