"""The shell around the shards of one internal topic: appends their records, then sends replies.

There is one shard per partition of the topic that this broker leads. It owns the keys (groups,
transactional ids) that are hashed to the partition. A shard returns records, replies and effects;
the records of one turn of the loop are appended as one batch, and replies and effects follow when
that is committed (`shard_commits`). Only the records of a transaction are appended at once, because
the log was checked for them in this turn. If an append fails the shard is dropped, its waiting
requests are refused, and a new shard is loaded from the log (`shard_loading`): until that is loaded
its keys get COORDINATOR_LOAD_IN_PROGRESS.

A `ShardKind` describes the kind of shard; `Groups`, `Transactions` and `ShareStates` add the rest.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from broker.coordinator.output import (
    EVERY_TOPIC,
    Instant,
    Loading,
    Output,
    Reply,
    ShardContext,
    Token,
    TopicRights,
    joined,
)
from broker.coordinator.partitioning import partition_for
from broker.log.append import AppendOrigin
from broker.log.partition_log import PartitionLog
from broker.records.errors import CorruptBatch
from broker.server.clock import Clock, Timer
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.shard_batches import encoded_batches, transaction_append
from broker.server.coordinators.shard_commits import Outlets, ShardCommits
from broker.server.coordinators.shard_loading import load
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps
from broker.server.quorum.quorum_activity import Samples
from broker.server.replication.partitions import Partition, Partitions
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.wire import DecodeError

log = logging.getLogger("millstream.coordinators")


class Shard(Protocol):
    """The operations of every kind of shard, without the requests of one kind."""

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply one record, in log order, while loading."""

    def loaded(self, now: Instant) -> Loading:
        """Begin to serve, after all records are replayed."""

    def unload(self, code: ErrorCode) -> list[Reply]:
        """End the shard; return a refusal for each question that is not answered."""

    def forget(self, token: Token, now: Instant) -> Output:
        """Drop a question whose reply is no longer needed."""

    def next_deadline_ms(self) -> int | None:
        """Return when `on_deadline` must be called; None if no deadline is set."""

    def on_deadline(self, now: Instant) -> Output:
        """Act on every deadline that has passed."""


_LOADING_SECONDS: Final = 0.005
"""The time that a turn of the loop may spend on loading shards; it always loads one piece."""


class AskedShard(Later):
    """Identifies one question to the shard; the question is dropped if its connection closes."""

    __slots__ = ("_forget", "shard_number")

    def __init__(self, shard_number: int, forget: Callable[["AskedShard"], None]) -> None:
        super().__init__()
        self.shard_number = shard_number
        self._forget = forget

    def abandon(self) -> None:
        """Tell the shard to drop the question."""
        super().abandon()
        self._forget(self)


ShardT = TypeVar("ShardT", bound=Shard)
Ask = Callable[[ShardT, AskedShard, ShardContext, Instant], Output]


@dataclass(frozen=True, slots=True)
class ShardKind(Generic[ShardT]):
    """The kind of these shards."""

    topic: str
    make: Callable[[], ShardT]
    refuse: Callable[[Reply, ErrorCode], Reply]
    """Makes the refusal that replaces an answer."""
    commit_timeout_ms: int
    begin: Callable[[int, Any], None] = lambda number, effect: None
    """Begins a committed effect of a shard."""
    load: Callable[[ShardT, PartitionLog], Iterator[None]] = load
    abandon: Callable[[int], None] = lambda number: None
    """Drops the effects of a shard that is unloaded."""


class ShardParts(NamedTuple):
    """The objects that the shards of every kind work with."""

    loop: asyncio.AbstractEventLoop
    clock: Clock
    metadata: ClusterMetadata
    partitions: Partitions
    spared: Callable[[], AbstractContextManager[None]] = nullcontext
    """A context whose new objects the garbage collector does not visit."""
    rights_of: Callable[[RequestContext], TopicRights] = lambda context: EVERY_TOPIC


class _Loading(NamedTuple, Generic[ShardT]):
    """A shard that is being loaded."""

    shard: ShardT
    partition: Partition
    steps: Loading
    began_ms: int


class Shards(Generic[ShardT]):
    """Every shard of one kind that this broker owns."""

    def __init__(self, parts: ShardParts, kind: ShardKind[ShardT]) -> None:
        self._loop, self._clock, self._metadata, self._partitions, self._spared = parts[:5]
        self._rights_of = parts.rights_of
        self._kind = kind
        self._shards: dict[int, ShardT] = {}
        self._commits: dict[int, ShardCommits] = {}
        self._turns: dict[int, list[Output]] = {}
        """By shard, its outputs of this turn of the loop, from the first with records."""
        self._loading: dict[int, _Loading[ShardT]] = {}
        """The shards to load, in order."""
        self._is_loading_on = False
        """True if a turn of the loop is scheduled to load them."""
        self._damaged: set[int] = set()
        """Shards of this broker whose log cannot be read; their keys have no coordinator."""
        # The time of each timer is kept here: a uvloop handle does not know its time if that has
        # already passed.
        self._timers: dict[int, tuple[int, Timer]] = {}
        self._due: dict[int, None] = {}
        """Shards whose deadline has come, in order: one runs in each turn of the loop."""
        self._gone: list[ShardT] = []
        """Shards that are unloaded and not freed yet."""
        self.load_times_ms = Samples(self._clock.now_ms())
        """How long shards lately took to load, the wait for others included."""

    def partition_counts(self) -> dict[str, int]:
        """Return how many partitions are active, are loading, and cannot be read."""
        return {
            "active": len(self._shards),
            "loading": len(self._loading),
            "failed": len(self._damaged),
        }

    # --- loading ---

    def follow_partitions(self) -> None:
        """Load or unload shards, to have one for each partition that this broker leads."""
        led = {
            partition.topic_partition.partition
            for partition in self._partitions.topic(self._kind.topic)
            if partition.leader is not None
        }
        for number in self._shards.keys() - led:
            self._unload_shard(number)
        for number in self._loading.keys() - led:
            del self._loading[number]
        self._damaged &= led
        for number in sorted(led - self._shards.keys() - self._loading.keys() - self._damaged):
            self._begin_to_load(number)
        # `spared` freezes all objects, so it is not entered if there is no shard to load.
        if self._loading and not self._is_loading_on:
            self._go_on_loading()

    def _unload_shard(self, number: int) -> None:
        """Unload a shard and refuse its waiting requests: its keys have another coordinator."""
        self._kind.abandon(number)
        self._commits.pop(number).refuse_all(ErrorCode.NOT_COORDINATOR)
        self._refuse(self._turns.pop(number, ()))
        shard = self._shards.pop(number)
        for reply in shard.unload(ErrorCode.NOT_COORDINATOR):
            self._deliver(reply)
        self._let_go(shard)
        running = self._timers.pop(number, None)
        if running is not None:
            running[1].cancel()

    def _let_go(self, shard: ShardT) -> None:
        """Free a shard in a later turn, one per turn: freeing its groups takes milliseconds."""
        if not self._gone:
            self._loop.call_soon(self._forget_one)
        self._gone.append(shard)

    def _forget_one(self) -> None:
        self._gone.pop()
        if self._gone:
            self._loop.call_soon(self._forget_one)

    def _begin_to_load(self, number: int) -> None:
        shard = self._kind.make()
        partition = self._partitions.get(self._kind.topic, number)
        steps = self._load(shard, partition)
        self._loading[number] = _Loading(shard, partition, steps, self._clock.now_ms())

    def _load(self, shard: ShardT, partition: Partition) -> Loading:
        yield from self._kind.load(shard, partition.log)
        return (yield from shard.loaded(self._now()))

    def _go_on_loading(self) -> None:
        """Load one shard after another, within the time of a turn of the loop."""
        end = self._loop.time() + _LOADING_SECONDS
        with self._spared():
            while self._loading and self._loop.time() < end:
                self._load_piece(*next(iter(self._loading.items())))
        self._is_loading_on = bool(self._loading)
        if self._is_loading_on:
            self._loop.call_soon(self._go_on_loading)

    def _load_piece(self, number: int, loading: _Loading[ShardT]) -> None:
        try:
            next(loading.steps)
        except StopIteration as done:
            self._begin_to_serve(number, loading, done.value)
        except (CorruptBatch, DecodeError, KafkaError) as error:
            del self._loading[number]
            self._damaged.add(number)
            log.error(
                "shard cannot be loaded directory=%s reason=%s: restore it, or delete the records "
                "up to behind the damage, and start again",
                loading.partition.log.directory,
                error,
            )

    def _begin_to_serve(self, number: int, loading: _Loading[ShardT], said: Output) -> None:
        del self._loading[number]
        now_ms = self._clock.now_ms()
        self.load_times_ms.add(now_ms - loading.began_ms, now_ms)
        self._shards[number] = loading.shard
        outlets = Outlets(self._deliver, self._kind.refuse, partial(self._kind.begin, number))
        commits = self._commits[number] = ShardCommits(
            self._loop,
            loading.partition,
            self._kind.commit_timeout_ms,
            outlets,
            on_awaited=self._partitions.stir,
        )
        # The records of the previous leader, whose commit this broker does not know yet.
        commits.note_append()
        self._run(number, said)

    def _number_of(self, coordinator_key: str) -> int:
        """Return the shard of a key; raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        topic = self._metadata.image.topics.by_name.get(self._kind.topic)
        number = -1 if topic is None else partition_for(coordinator_key, len(topic.partitions))
        self._validate_number(number)
        return number

    def _validate_number(self, number: int) -> None:
        """Raise the refusal, unless this shard is loaded."""
        if number in self._shards:
            return
        if number in self._loading:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                "The coordinator is loading and hence can't process requests.",
            )
        raise KafkaError(ErrorCode.NOT_COORDINATOR, "This is not the correct coordinator.")

    def _now(self) -> Instant:
        return Instant(now_ms=self._clock.now_ms(), timestamp_ms=self._clock.timestamp_ms())

    # --- requests ---

    def answer(
        self, context: RequestContext, coordinator_key: str, ask: Ask[ShardT]
    ) -> Answer | Steps[Answer]:
        """Put one request to the key's shard, and answer with its reply. Raises KafkaError."""
        asked = self._ask(context, self._number_of(coordinator_key), ask)
        if asked.is_done:
            response: Answer = asked.value
            return response
        return _reply_to(asked)

    def ask(self, context: RequestContext, coordinator_key: str, ask: Ask[ShardT]) -> AskedShard:
        """Put one question to the key's shard, and return its reply. Raises KafkaError."""
        return self._ask(context, self._number_of(coordinator_key), ask)

    def ask_every_shard(self, context: RequestContext, ask: Ask[ShardT]) -> Steps[list[AskedShard]]:
        """Put the same question to all shards. Raises KafkaError while one is being loaded."""
        if self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        asked: list[AskedShard] = []
        for number in sorted(self._shards):
            if number in self._shards:  # It may have been unloaded since.
                asked.append(self._ask(context, number, ask))
            yield None
        return asked

    def _ask(self, context: RequestContext, number: int, ask: Ask[ShardT]) -> AskedShard:
        asked = AskedShard(number, self._forget)
        shard_context = ShardContext(
            api_version=context.api_version,
            client_id=context.header.client_id or "",
            client_host=f"/{context.connection.peer.host}",
            rights=self._rights_of(context),
        )
        self._run(number, ask(self._shards[number], asked, shard_context, self._now()))
        return asked

    def _forget(self, asked: AskedShard) -> None:
        """Tell the shard to drop a question: its connection is closed."""
        shard = self._shards.get(asked.shard_number)
        if shard is not None:
            self._run(asked.shard_number, shard.forget(asked, self._now()))

    def run_one_by_one(self, act: Callable[[ShardT], Output]) -> None:
        """Put one input to every shard, one per turn: each may have very many keys."""
        self._run_next(act, list(self._shards.items()))

    def _run_next(self, act: Callable[[ShardT], Output], left: list[tuple[int, ShardT]]) -> None:
        if not left:
            return
        number, shard = left.pop()
        if self._shards.get(number) is shard:
            self._run(number, act(shard))
        self._loop.call_soon(self._run_next, act, left)

    def stop(self) -> None:
        """Stop all timers; outputs that are not appended are not answered."""
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._due.clear()
        self._turns.clear()

    # --- effects ---

    def _run(self, number: int, output: Output) -> None:
        """Queue an output for the end of the turn, or send its replies at once.

        The records of a transaction end the turn, and a failed append unloads the shard.
        """
        turn = self._turns.get(number)
        is_alone = output.transaction is not None
        if turn is not None:
            turn.append(output)
        elif output.records or is_alone:
            if not self._turns:
                self._loop.call_soon(self._end_turns)
            self._turns[number] = [output]
        else:
            self._commits[number].tell(output)
        if is_alone:
            self._end_turn(number)
        if number in self._shards:
            self._schedule(number)

    def _end_turns(self) -> None:
        while self._turns:  # A reply may cause another shard to write.
            self._end_turn(next(iter(self._turns)))

    def _end_turn(self, number: int) -> None:
        """Append the shard's records of this turn; the replies follow when they are committed."""
        turn = self._turns.pop(number, None)
        if turn is None:
            return  # The failed append of another shard has unloaded this one.
        try:
            self._append(number, turn)
        except (KafkaError, OSError) as error:
            self._on_append_failed(number, turn, error)
            return
        commits = self._commits[number]
        commits.note_append()
        for output in turn:
            commits.tell(output)

    def _append(self, number: int, turn: list[Output]) -> None:
        timestamp_ms = self._clock.timestamp_ms()
        partition = self._partitions.get(self._kind.topic, number)
        limit_bytes = partition.log.config.max_message_bytes
        for output in joined(turn, limit_bytes):
            for batch in encoded_batches(output, limit_bytes, timestamp_ms):
                self._partitions.append(
                    partition,
                    batch,
                    timestamp_ms=timestamp_ms,
                    origin=AppendOrigin.COORDINATOR,
                    transaction=transaction_append(output),
                    is_awaited=False,  # `ShardCommits` notes the replies that wait.
                )

    def _on_append_failed(self, number: int, turn: Iterable[Output], error: Exception) -> None:
        log.error(
            "a shard could not append topic=%s shard=%d error=%s", self._kind.topic, number, error
        )
        self._refuse(turn)
        self._unload_shard(number)
        self.follow_partitions()

    def _refuse(self, turn: Iterable[Output]) -> None:
        """Refuse the requests whose outputs could not be appended."""
        for output in turn:
            for reply in output.replies:
                self._deliver(self._kind.refuse(reply, ErrorCode.NOT_COORDINATOR))

    def _deliver(self, reply: Reply) -> None:
        asked = reply.token
        assert isinstance(asked, AskedShard), asked
        asked.done(reply.response)

    # --- time ---

    def _schedule(self, number: int) -> None:
        """Set the one timer of a shard; a timer that fires too early is set again."""
        deadline_ms = self._shards[number].next_deadline_ms()
        running = self._timers.get(number)
        if deadline_ms is None:
            if running is not None:
                running[1].cancel()
                del self._timers[number]
            return
        if running is not None:
            if running[0] <= deadline_ms:
                return
            running[1].cancel()
        delay_ms = max(0, deadline_ms - self._clock.now_ms())
        timer = self._clock.call_later(delay_ms, self._on_deadline, number)
        self._timers[number] = deadline_ms, timer

    def _on_deadline(self, number: int) -> None:
        del self._timers[number]
        if not self._due:
            self._loop.call_soon(self._run_due)
        self._due[number] = None

    def _run_due(self) -> None:
        """Run one shard whose deadline has come: all of them at once could block the loop."""
        number = next(iter(self._due), -1)  # -1: there is none.
        self._due.pop(number, None)
        if number in self._shards:
            self._run(number, self._shards[number].on_deadline(self._now()))
        if self._due:
            self._loop.call_soon(self._run_due)

    def run_all_due(self) -> None:
        """Run every shard whose deadline has come, before the next request of a client."""
        while self._due:
            self._run_due()


def _reply_to(asked: AskedShard) -> Steps[Answer]:
    response: Answer = yield asked
    return response
