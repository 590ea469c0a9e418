"""What a shard writes in one turn of the loop: one batch, answered once it is committed."""

from dataclasses import replace
from math import isnan
from types import SimpleNamespace

import pytest

from broker.coordinator.output import CoordinatorRecord, EndOfTransaction, Output, Reply
from broker.server.coordinators.shards import ShardKind, ShardParts, Shards
from common.kafka.errors import ErrorCode, KafkaError
from tests.lib.logs import read_batches
from tests.lib.served_replica import TOPIC, Client, ServedReplica

CODE = "code"


class Shard:
    """Writes what it is asked to, and answers with it."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.deadline_ms = None

    def replay(self, key, value):
        self.written.append(key.decode())

    def loaded(self, now):
        yield from ()
        return Output()

    def unload(self, code):
        return []

    def next_deadline_ms(self):
        return self.deadline_ms

    def on_deadline(self, now):
        self.deadline_ms = None
        return Output([CoordinatorRecord(b"expired", b"")])

    def write(self, token, *names, size=0, transaction=None, effects=(), deadline_ms=None):
        self.deadline_ms = deadline_ms
        self.written += names
        records = [CoordinatorRecord(name.encode(), b"v" * size) for name in names]
        return Output(records, [Reply(token, names)], list(effects), transaction)


class Served:
    """One shard on a partition, with two followers unless it is the only replica."""

    def __init__(self, isr=(1, 2, 3), replicas=(1, 2, 3), begin=lambda number, effect: None):
        self.node = ServedReplica(isr=isr)
        if len(replicas) == 1:
            self.node.change(isr=[1], replicas=[1])
        self.parts = ShardParts(
            self.node.loop,
            self.node.clock,
            SimpleNamespace(image=self.node.image),
            self.node.partitions,
        )
        refuse = lambda reply, code: Reply(reply.token, (CODE, code))  # noqa: E731
        self.kind = ShardKind(TOPIC, Shard, refuse, commit_timeout_ms=5_000, begin=begin)
        self.shards = Shards(self.parts, self.kind)
        self.shards.follow_partitions()
        self.client = Client()

    def ask(self, *names, **more):
        header = SimpleNamespace(client_id="")
        context = SimpleNamespace(connection=self.client, api_version=0, header=header)
        return self.shards.ask(
            context, "any", lambda shard, token, who, now: shard.write(token, *names, **more)
        )

    def batches(self):
        """Give the keys of every batch in the log."""
        batches = read_batches(self.node.partition.log)
        return [[record.key.decode() for record in batch.records()] for batch in batches]

    def end_turn(self):
        self.node.loop.advance()


def test_what_is_written_in_one_turn_is_one_batch():
    served = Served(isr=(1,), replicas=(1,))
    asked = [served.ask("a"), served.ask("b", "c")]
    assert served.batches() == []
    assert [each.value for each in asked] == [None, None]
    served.end_turn()
    assert served.batches() == [["a", "b", "c"]]
    assert [each.value for each in asked] == [("a",), ("b", "c")]


def test_a_shard_whose_deadline_has_come_can_be_run_before_the_next_request():
    served = Served(isr=(1,), replicas=(1,))
    served.ask("a", deadline_ms=1)
    served.end_turn()
    served.node.loop.now_ms = 1
    served.node.loop.take_turn()
    served.shards.run_all_due()
    served.ask("a request")
    served.end_turn()
    assert served.batches() == [["a"], ["expired", "a request"]]


def test_each_turn_has_a_batch_of_its_own():
    served = Served(isr=(1,), replicas=(1,))
    for name in "ab":
        served.ask(name)
        served.end_turn()
    assert served.batches() == [["a"], ["b"]]


def test_who_writes_nothing_is_told_at_once_unless_somebody_wrote_before():
    served = Served(isr=(1,), replicas=(1,))
    assert served.ask().value == ()
    served.ask("a")
    asked = served.ask()
    assert asked.value is None
    served.end_turn()
    assert asked.value == ()


def test_a_batch_of_many_is_answered_when_it_is_committed():
    served = Served()
    asked = [served.ask("a"), served.ask("b")]
    served.end_turn()
    served.node.follow(2, 2)
    assert [each.value for each in asked] == [None, None]
    served.node.follow(3, 2)
    assert [each.value for each in asked] == [("a",), ("b",)]


def test_records_that_belong_together_are_in_one_batch_however_full_it_is():
    served = Served(isr=(1,), replicas=(1,))
    served.node.set_topic("max.message.bytes", "1000")
    for names in (("a", "b"), ("c", "d"), ("e", "f")):
        served.ask(*names, size=250)
    served.end_turn()
    assert served.batches() == [["a", "b"], ["c", "d"], ["e", "f"]]


def test_a_failed_append_is_told_to_all_who_wrote_in_that_turn(monkeypatch):
    served = Served(isr=(1,), replicas=(1,))
    asked = [served.ask("a"), served.ask("b"), served.ask()]

    def fail(*arguments, **more):
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    with monkeypatch.context() as patch:
        patch.setattr(served.node.partitions, "append", fail)
        served.end_turn()
    refused = (CODE, ErrorCode.NOT_COORDINATOR)
    assert [each.value for each in asked] == [refused] * 3
    # What the new shard knows is what is in the log: nothing.
    served.ask("c")
    served.end_turn()
    assert served.batches() == [["c"]]
    assert served.shards._shards[0].written == ["c"]


def test_a_shard_that_goes_before_the_end_of_its_turn_writes_nothing():
    served = Served()
    asked = served.ask("a")
    served.node.change(leader=2)
    served.shards.follow_partitions()
    assert asked.value == (CODE, ErrorCode.NOT_COORDINATOR)
    served.end_turn()
    assert served.batches() == []


@pytest.mark.parametrize("is_first", [True, False])
def test_the_end_of_a_transaction_is_written_at_once_behind_what_was_said_before(is_first):
    served = Served(isr=(1,), replicas=(1,))
    end = EndOfTransaction(9, 0, is_commit=True, coordinator_epoch=0)
    before = [] if is_first else [served.ask("a")]
    asked = served.ask(transaction=end)
    after = served.ask("b")
    assert [each.value for each in before] == [("a",)][: len(before)]
    assert asked.value == ()
    assert after.value is None
    is_control = [batch.header.is_control for batch in read_batches(served.node.partition.log)]
    assert is_control == [False] * len(before) + [True]
    served.end_turn()
    assert after.value == ("b",)


def test_a_stopped_shard_writes_nothing_any_more():
    served = Served(isr=(1,), replicas=(1,))
    served.ask("a")
    served.shards.stop()
    served.end_turn()
    assert served.batches() == []


def test_an_effect_that_has_the_shard_write_again_is_no_end_of_writing():
    served = Served(isr=(1,), replicas=(1,), begin=lambda number, effect: effect())
    again = []
    served.ask("a", effects=[lambda: again.append(served.ask("b"))])
    served.end_turn()
    assert again[0].value == ("b",)
    assert served.batches() == [["a"], ["b"]]
    assert served.shards._turns == {}


def test_how_long_a_partition_took_to_load_is_known_for_a_minute():
    served = Served()

    def load(shard, log):
        served.node.loop.now_ms += 700
        yield

    shards = Shards(served.parts, replace(served.kind, load=load))
    shards.follow_partitions()
    served.end_turn()
    times, now_ms = shards.load_times_ms, served.node.clock.now_ms()
    assert (times.average(now_ms), times.largest(now_ms)) == (700, 700)
    assert isnan(times.average(now_ms + 60_001))
