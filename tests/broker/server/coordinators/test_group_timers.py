"""The timer of a group shard under uvloop, whose handles are not asyncio's."""

import asyncio

import pytest
import uvloop

from broker.coordinator.group.output import Output
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.shard_commits import ShardCommits


class Shard:
    """Has one deadline, and then none."""

    def __init__(self, deadline_ms):
        self.deadline_ms = deadline_ms

    def next_deadline_ms(self):
        return self.deadline_ms

    def on_deadline(self, now):
        self.deadline_ms = None
        return Output()


class Clock:
    def now_ms(self):
        return 1_000

    def timestamp_ms(self):
        return 0


@pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop])
def test_a_deadline_that_has_come_already_can_be_looked_at_again(new_loop):
    loop = new_loop()
    try:
        groups = Groups(loop, None, Clock(), None, None, None)
        shard = groups._shards[0] = Shard(deadline_ms=1_000)
        groups._commits[0] = ShardCommits(loop, None, 1, lambda reply: None)
        groups._run(0, Output())
        groups._run(0, Output())
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(asyncio.sleep(0))
        assert shard.deadline_ms is None
    finally:
        groups.stop()
        loop.close()
