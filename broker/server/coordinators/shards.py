"""The shell around the shards of one internal topic: appends their records, then sends replies.

One shard per partition of the topic that this broker leads, each the owner of the keys (groups,
transactional ids) that fall into it. A shard returns records, replies and effects; the records of
all that one turn of the loop brings are appended as one batch, and replies and effects go out when
that is committed (`shard_commits`). Only what belongs to a transaction is appended at once: the log
was asked about it as it is now. If an append fails the shard is dropped, everyone it owes an answer
is refused, and a new one is loaded from the log (`shard_loading`): until it is there its keys get
COORDINATOR_LOAD_IN_PROGRESS.

What kind of shard it is, a `ShardKind` says; `Groups` and its like add what only their kind knows.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from broker.coordinator.output import Instant, LoadedSteps, Output, Reply, Token, joined
from broker.coordinator.output import RequestContext as ShardContext
from broker.coordinator.partitioning import partition_for
from broker.errors import ErrorCode, KafkaError
from broker.log.append import AppendOrigin
from broker.log.partition_log import PartitionLog
from broker.records.errors import CorruptBatch
from broker.server.clock import Clock
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.asked import AskedShard
from broker.server.coordinators.shard_batches import encoded_batches, transaction_append
from broker.server.coordinators.shard_commits import Outlets, ShardCommits
from broker.server.coordinators.shard_loading import load
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from broker.server.replication.partitions import Partition, Partitions

log = logging.getLogger("millrace.coordinators")


class Shard(Protocol):
    """What every shard can do, beside the requests that are its own."""

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply one record, in log order, while loading."""

    def loaded(self, now: Instant) -> LoadedSteps:
        """Begin to serve: all records are replayed."""

    def unload(self, code: ErrorCode) -> list[Reply]:
        """End the shard; return a refusal for everyone it owes an answer."""

    def forget(self, token: Token, now: Instant) -> Output:
        """Take note that nobody waits for this reply any more."""

    def next_deadline_ms(self) -> int | None:
        """Tell when `on_deadline` must be called; None when nothing is due."""

    def on_deadline(self, now: Instant) -> Output:
        """Act on every deadline that has passed."""


_LOADING_SECONDS: Final = 0.005
"""For so long a turn of the loop may load shards; one piece it always may."""

ShardT = TypeVar("ShardT", bound=Shard)
Ask = Callable[[ShardT, AskedShard, ShardContext, Instant], Output]


@dataclass(frozen=True, slots=True)
class ShardKind(Generic[ShardT]):
    """Which shards these are."""

    topic: str
    make: Callable[[], ShardT]
    refuse: Callable[[Reply, ErrorCode], Reply]
    """Turn an answer that can no longer be given into a refusal."""
    commit_timeout_ms: int
    begin: Callable[[int, Any], None] = lambda number, effect: None
    """Begin a committed effect of a shard."""
    load: Callable[[ShardT, PartitionLog], Iterator[None]] = load
    abandon: Callable[[int], None] = lambda number: None
    """Forget the effects of a shard that is given up."""


class ShardParts(NamedTuple):
    """What the shards of any kind work with."""

    loop: asyncio.AbstractEventLoop
    clock: Clock
    metadata: ClusterMetadata
    partitions: Partitions
    spared: Callable[[], AbstractContextManager[None]] = nullcontext
    """Keeps the garbage collector from what is loaded within it."""


class _Loading(NamedTuple, Generic[ShardT]):
    """A shard on its way."""

    shard: ShardT
    partition: Partition
    steps: LoadedSteps


class Shards(Generic[ShardT]):
    """Every shard of one kind that this broker owns."""

    def __init__(self, parts: ShardParts, kind: ShardKind[ShardT]) -> None:
        self._loop, self._clock, self._metadata, self._partitions, self._spared = parts
        self._kind = kind
        self._shards: dict[int, ShardT] = {}
        self._commits: dict[int, ShardCommits] = {}
        self._turns: dict[int, list[Output]] = {}
        """By shard: what it has said in this turn of the loop, from the first that writes."""
        self._loading: dict[int, _Loading[ShardT]] = {}
        """In the order in which they are loaded."""
        self._is_loading_on = False
        """Whether a turn of the loop goes on with them."""
        self._damaged: set[int] = set()
        """Led here, and nobody can read them; their keys have no coordinator."""
        # When each timer fires is kept here: uvloop gives a handle that does not know it for a time
        # that has come already.
        self._timers: dict[int, tuple[float, asyncio.Handle]] = {}
        self._due: dict[int, None] = {}
        """Shards whose deadline has come, in turn: one of them in a turn of the loop."""
        self._gone: list[ShardT] = []
        """Unloaded, and not freed yet."""

    # --- loading ---

    def follow_partitions(self) -> None:
        """Have a shard for each partition of the topic that this broker leads."""
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
        # What is spared is frozen: not at every change of the metadata, with nothing to load.
        if self._loading and not self._is_loading_on:
            self._go_on_loading()

    def _unload_shard(self, number: int) -> None:
        """Send away who waits here: its keys have another coordinator now."""
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
        """Forget a shard soon, one a turn of the loop: to free one's groups takes milliseconds."""
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
        self._loading[number] = _Loading(shard, partition, self._load(shard, partition))

    def _load(self, shard: ShardT, partition: Partition) -> LoadedSteps:
        yield from self._kind.load(shard, partition.log)
        return (yield from shard.loaded(self._now()))

    def _go_on_loading(self) -> None:
        """Load one shard after another, for as long as a turn of the loop may take."""
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
        except (CorruptBatch, KafkaError) as error:
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
        self._shards[number] = loading.shard
        outlets = Outlets(self._deliver, self._kind.refuse, partial(self._kind.begin, number))
        commits = self._commits[number] = ShardCommits(
            self._loop,
            loading.partition,
            self._kind.commit_timeout_ms,
            outlets,
            on_awaited=self._partitions.stir,
        )
        # What the leader before has written, and nobody here knows yet to be committed.
        commits.note_append()
        self._run(number, said)

    def _number_of(self, coordinator_key: str) -> int:
        """Return the shard of a key; raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        topic = self._metadata.image.topics.by_name.get(self._kind.topic)
        number = -1 if topic is None else partition_for(coordinator_key, len(topic.partitions))
        self._validate_number(number)
        return number

    def _validate_number(self, number: int) -> None:
        """Refuse, unless this shard is here."""
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
            if number in self._shards:  # It may have gone since.
                asked.append(self._ask(context, number, ask))
            yield None
        return asked

    def _ask(self, context: RequestContext, number: int, ask: Ask[ShardT]) -> AskedShard:
        asked = AskedShard(number, self._forget)
        shard_context = ShardContext(
            api_version=context.api_version,
            client_id=context.header.client_id or "",
            client_host=f"/{context.connection.peer.host}",
        )
        self._run(number, ask(self._shards[number], asked, shard_context, self._now()))
        return asked

    def _forget(self, asked: AskedShard) -> None:
        """Tell the shard that nobody waits for its reply."""
        shard = self._shards.get(asked.shard_number)
        if shard is not None:
            self._run(asked.shard_number, shard.forget(asked, self._now()))

    def run_one_by_one(self, act: Callable[[ShardT], Output]) -> None:
        """Put one input to every shard, one a turn: each may have very many keys."""
        self._run_next(act, list(self._shards.items()))

    def _run_next(self, act: Callable[[ShardT], Output], left: list[tuple[int, ShardT]]) -> None:
        if not left:
            return
        number, shard = left.pop()
        if self._shards.get(number) is shard:
            self._run(number, act(shard))
        self._loop.call_soon(self._run_next, act, left)

    def stop(self) -> None:
        """Stop all timers; what is not appended is not answered either."""
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._due.clear()
        self._turns.clear()

    # --- effects ---

    def _run(self, number: int, output: Output) -> None:
        """Take what a shard has said. Whoever writes ends its turn, by which the shard may go."""
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
        while self._turns:  # Who is told something may have a shard write again.
            self._end_turn(next(iter(self._turns)))

    def _end_turn(self, number: int) -> None:
        """Append what the shard has written in this turn, and have it told once committed."""
        turn = self._turns.pop(number, None)
        if turn is None:
            return  # An append that failed for another shard took this one along.
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
                    is_awaited=False,  # Who is owed an answer says so, in `ShardCommits`.
                )

    def _on_append_failed(self, number: int, turn: Iterable[Output], error: Exception) -> None:
        log.error(
            "a shard could not append topic=%s shard=%d error=%s", self._kind.topic, number, error
        )
        self._refuse(turn)
        self._unload_shard(number)
        self.follow_partitions()

    def _refuse(self, turn: Iterable[Output]) -> None:
        """Tell everyone to whom the shard has said something that it was nothing."""
        for output in turn:
            for reply in output.replies:
                self._deliver(self._kind.refuse(reply, ErrorCode.NOT_COORDINATOR))

    def _deliver(self, reply: Reply) -> None:
        asked = reply.token
        assert isinstance(asked, AskedShard), asked
        asked.done(reply.response)

    # --- time ---

    def _schedule(self, number: int) -> None:
        """Keep one timer a shard; one that fires too early finds nothing due and is set again."""
        deadline_ms = self._shards[number].next_deadline_ms()
        running = self._timers.get(number)
        if deadline_ms is None:
            if running is not None:
                running[1].cancel()
                del self._timers[number]
            return
        when = self._loop.time() + max(0, deadline_ms - self._clock.now_ms()) / 1000
        if running is not None:
            if running[0] <= when:
                return
            running[1].cancel()
        self._timers[number] = when, self._loop.call_at(when, self._on_deadline, number)

    def _on_deadline(self, number: int) -> None:
        del self._timers[number]
        if not self._due:
            self._loop.call_soon(self._run_due)
        self._due[number] = None

    def _run_due(self) -> None:
        """Run one shard whose deadline has come: all of them may have very much to do at once."""
        number = next(iter(self._due), None)
        if number is None:
            return
        del self._due[number]
        if number in self._shards:
            self._run(number, self._shards[number].on_deadline(self._now()))
        if self._due:
            self._loop.call_soon(self._run_due)


def _reply_to(asked: AskedShard) -> Steps[Answer]:
    response: Answer = yield asked
    return response
