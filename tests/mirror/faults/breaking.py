"""What breaks, and what is changed under the mirror's hands. Each returns when that is over."""

import time
from collections.abc import Callable

from common.kafka.admin.topics import create_partitions, delete_topics
from tests.mirror.faults.world import World

Fault = Callable[[World, float], None]
"""Takes for how many seconds something is frozen or cut off."""


def kill_leader_in_source(world: World, _: float) -> None:
    node = world.leader("orders")
    world.source.kill(node)
    world.loads["orders"].more(20)
    world.source.start(node)


def freeze_source(world: World, seconds: float) -> None:
    for node in world.source.node_ids:
        world.source.pause(node)
    time.sleep(seconds)  # Nothing is heard of it, and nothing fails.
    for node in world.source.node_ids:
        world.source.resume(node)


def kill_target(world: World, _: float) -> None:
    world.target.kill()
    world.loads["orders"].more(20)
    world.target.start()


def freeze_target(world: World, seconds: float) -> None:
    world.target.pause()
    time.sleep(seconds)  # What is on its way neither fails nor arrives.
    world.target.resume()


def cut_link(world: World, seconds: float) -> None:
    world.cut_link()
    time.sleep(seconds)  # A network that drops every packet.
    world.heal_link()


def kill_mirror(world: World, _: float) -> None:
    world.mirror.kill()
    world.loads["orders"].more(50)
    world.mirror.start()


def add_partitions(world: World, _: float) -> None:
    load = world.loads["orders"]
    count = load.partitions + 1
    with world.admin() as admin:
        create_partitions(admin, {"orders": count})
    world.wait(lambda: len(world.leaders("orders")) == count)
    load.partitions = count


def make_topic_again(world: World, _: float) -> None:
    """Whatever of the old one was not copied is gone; of the new one nothing may be."""
    load = world.loads["again"]
    with load.held():
        with world.admin() as admin:
            delete_topics(admin, ["again"])
        world.wait(lambda: world.ids_of("again") == {None})
        world.earlier.append(load.written.pop(0, []))
        world.make_topic("again")
        # One that has not heard of it yet may take records into the old one, and lose them.
        world.wait(lambda: len(world.ids_of("again")) == 1)


def compact_source(world: World, _: float) -> None:
    """Keys are written over and cleaned away while the mirror is down, in mid-copy."""
    load = world.loads["states"]
    world.mirror.kill()
    first = load.written[0][-1]
    load.more(100)
    last = load.written[0][-1]
    world.wait(lambda: is_compacted(world, range(first, last)))
    world.mirror.start()


def is_compacted(world: World, numbers: range) -> bool:
    """Tell whether most of these are gone, which have no copy yet."""
    return sum(each in numbers for each in world.source_values("states")) < len(numbers) // 2


def retire_records_in_source(world: World, _: float) -> None:
    """Records go that have no copy yet, while the mirror is down."""
    load = world.loads["short"]
    world.mirror.kill()
    copied = len(set(world.copied("short")))
    load.more(50)
    world.change_config("short", "retention.ms", "1")
    world.wait(lambda: world.start_offset("short") > copied)
    world.change_config("short", "retention.ms", "-1")
    # What is under way when it is changed is over when a check later nothing more went.
    before = -1
    while (now := world.start_offset("short")) != before:
        before = now
        time.sleep(1)  # Longer than log.retention.check.interval.ms.
    world.lost_to_retention.append((copied, before))
    world.mirror.start()


FAULTS: dict[str, Fault] = {
    "a leader of the source is killed": kill_leader_in_source,
    "the source is frozen": freeze_source,
    "the target is killed": kill_target,
    "the target is frozen": freeze_target,
    "the link to the target is cut": cut_link,
    "the mirror is killed": kill_mirror,
    "partitions are added": add_partitions,
    "a topic is deleted and made again": make_topic_again,
    "the source is compacted in mid-copy": compact_source,
    "the source retires records in mid-copy": retire_records_in_source,
}
