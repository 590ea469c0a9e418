"""The numbers of groups for /metrics."""

from broker.server.coordinators.group_metrics import PREFIX, group_families
from tests.lib.consumer_group_scenario import ConsumerScenario


def numbers(world: ConsumerScenario) -> dict[tuple[str, str], float]:
    return {
        (family.name.removeprefix(PREFIX), "".join(sample.labels.values())): sample.value
        for family in group_families([world.shard])
        for sample in family.samples
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
