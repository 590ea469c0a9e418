"""The shell around shards: replies wait for the commit, and timers work under uvloop."""

import asyncio
from contextlib import contextmanager
from types import SimpleNamespace
from weakref import ref

import pytest
import uvloop

from broker.coordinator.output import Output, Reply
from broker.records.build import build_batch
from broker.server.coordinators.shard_commits import Outlets, ShardCommits
from broker.server.coordinators.shards import ShardKind, ShardParts, Shards
from common.kafka.errors import ErrorCode, KafkaError
from tests.lib.served_replica import ServedReplica, SimulatedLoop, fetched

TOPIC = "orders"


class Shard:
    """Has one deadline, and then none."""

    def __init__(self, deadline_ms):
        self.deadline_ms = deadline_ms

    def next_deadline_ms(self):
        return self.deadline_ms

    def on_deadline(self, now):
        self.deadline_ms = None
        return Output()

    def unload(self, code):
        return []


class Clock:
    def __init__(self, loop):
        self._loop = loop

    def call_later(self, delay_ms, callback, *arguments):
        return self._loop.call_later(delay_ms / 1000, callback, *arguments)

    def now_ms(self):
        return 1_000

    def timestamp_ms(self):
        return 0


def kind() -> ShardKind:
    return ShardKind(TOPIC, make=lambda: Shard(None), refuse=refuse, commit_timeout_ms=1)


def refuse(reply: Reply, code: ErrorCode) -> Reply:
    return Reply(reply.token, code)


class Loop:
    """Its time goes on only with what is done."""

    def __init__(self):
        self.seconds, self.soon = 0.0, []

    def time(self):
        return self.seconds

    def call_soon(self, act):
        self.soon.append(act)

    def turn(self):
        acts, self.soon = self.soon, []
        for act in acts:
            act()


def test_shards_are_loaded_one_after_another_for_a_few_ms_a_turn():
    loop, loaded = Loop(), []

    def load(number, log):
        for _ in range(5):
            loaded.append(number)
            loop.seconds += 0.003
            yield
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    led = [
        SimpleNamespace(
            topic_partition=SimpleNamespace(partition=number),
            leader=1,
            log=SimpleNamespace(directory=""),
        )
        for number in range(2)
    ]
    partitions = SimpleNamespace(topic=lambda name: led, get=lambda name, number: led[number])
    numbers, spared = iter(range(2)), []

    @contextmanager
    def spare():
        before = len(loaded)
        yield
        spared.append(len(loaded) - before)

    of_numbers = ShardKind(TOPIC, lambda: next(numbers), refuse, commit_timeout_ms=1, load=load)
    shards = Shards(ShardParts(loop, Clock(loop), None, partitions, spare), of_numbers)
    shards.follow_partitions()
    assert loaded == [0, 0]
    shards.follow_partitions()
    assert loaded == [0, 0]
    loop.turn()
    assert loaded == [0, 0, 0, 0]
    while loop.soon:
        loop.turn()
    assert loaded == [0] * 5 + [1] * 5
    assert sum(spared) == len(loaded)
    turns = len(spared)
    shards.follow_partitions()
    assert len(spared) == turns, "there is nothing to load"


def test_shards_whose_partitions_go_are_freed_one_a_turn():
    loop = Loop()
    partitions = SimpleNamespace(topic=lambda name: [])
    shards = Shards(ShardParts(loop, Clock(loop), None, partitions), kind())
    for number in range(3):
        shards._shards[number] = Shard(deadline_ms=None)
        shards._commits[number] = ShardCommits(
            loop, None, 1, Outlets(None, None, None), on_awaited=None
        )
    alive = [ref(shard) for shard in shards._shards.values()]
    shards.follow_partitions()
    counts = []
    while loop.soon:
        counts.append(sum(each() is not None for each in alive))
        loop.turn()
    assert counts == [3, 2, 1]
    assert [each() for each in alive] == [None] * 3


@pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop])
def test_a_deadline_that_has_come_already_can_be_looked_at_again(new_loop):
    loop = new_loop()
    try:
        shards = Shards(ShardParts(loop, Clock(loop), None, None), kind())
        shard = shards._shards[0] = Shard(deadline_ms=1_000)
        shards._commits[0] = ShardCommits(loop, None, 1, Outlets(None, None, None), on_awaited=None)
        shards._run(0, Output())
        shards._run(0, Output())
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(asyncio.sleep(0))
        assert shard.deadline_ms is None
    finally:
        shards.stop()
        loop.close()


def test_deadlines_that_have_come_together_take_one_turn_of_the_loop_each():
    loop = asyncio.new_event_loop()
    try:
        shards = Shards(ShardParts(loop, Clock(loop), None, None), kind())
        for number in range(3):
            shards._shards[number] = Shard(deadline_ms=1_000)
            shards._commits[number] = ShardCommits(
                loop, None, 1, Outlets(None, None, None), on_awaited=None
            )
            shards._run(number, Output())
        left = []
        while any(shard.deadline_ms for shard in shards._shards.values()):
            left.append(sum(shard.deadline_ms is not None for shard in shards._shards.values()))
            loop.call_soon(loop.stop)
            loop.run_forever()  # One turn.
        assert [count for count in left if count < 3] == [2, 1], left
    finally:
        shards.stop()
        loop.close()


class Committing:
    """A shard's commits on a partition with two followers that are slow."""

    def __init__(self, timeout_ms: int = 5_000) -> None:
        self.loop = SimulatedLoop()
        self.served = ServedReplica()
        self.partition = self.served.partitions.get(TOPIC, 0)
        self.said: list[object] = []
        outlets = Outlets(self.said.append, refuse, self.said.append)
        self.commits = ShardCommits(
            self.loop, self.partition, timeout_ms, outlets, on_awaited=self.served.partitions.stir
        )

    def say(self, name: str) -> tuple[Reply, str]:
        reply, effect = Reply(name, "done"), f"effect of {name}"
        self.write(name)
        self.commits.tell(Output(replies=[reply], effects=[effect]))
        return reply, effect

    def write(self, name: str) -> None:
        """Write what nobody waits for."""
        batch = build_batch([(b"key", name.encode(), (), 0)])
        self.served.partitions.append(self.partition, batch, timestamp_ms=0, is_awaited=False)
        self.commits.note_append()
        self.commits.tell(Output())

    def commit(self) -> None:
        for waits in self.partition.leader.waits.take_all():
            waits.on_committed(ErrorCode.NONE)


def test_replies_and_effects_wait_for_the_commit_in_their_order():
    shard = Committing()
    first, second = shard.say("first"), shard.say("second")
    assert shard.said == []
    shard.commit()
    assert shard.said == [*first, *second]


def test_a_reply_has_a_deadline_and_an_effect_has_none():
    shard = Committing(timeout_ms=100)
    _, effect = shard.say("slow")
    shard.loop.advance(100)
    refused = Reply("slow", ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert shard.said == [refused]
    shard.commit()
    assert shard.said == [refused, effect]


def test_what_a_lost_leadership_leaves_uncommitted_has_no_effect():
    shard = Committing()
    shard.say("lost")
    for waits in shard.partition.leader.waits.take_all():
        waits.on_sent_away()
    assert shard.said == [Reply("lost", ErrorCode.NOT_COORDINATOR)]


def test_followers_are_woken_for_what_somebody_waits_for():
    shard = Committing()
    waits = shard.served.follow(2, 0, wait_ms=500)
    shard.write("nobody waits")
    shard.served.loop.advance()
    assert waits.answer is None
    shard.commits.tell(Output(replies=[Reply("who comes later", "done")]))
    shard.served.loop.advance()
    assert fetched(waits).records, "and what was written before comes along"


def test_followers_have_what_nobody_waits_for_when_they_ask_again():
    shard = Committing()
    waits = shard.served.follow(2, 0, wait_ms=500)
    shard.write("nobody waits")
    shard.served.loop.advance(500)
    assert fetched(waits).records
