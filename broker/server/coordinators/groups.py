"""The shell around the group shards: appends their records, then sends their replies.

One shard per partition of `__consumer_offsets` that this broker leads, each the owner of its
groups. A shard returns records and replies; the records are appended as one batch, and the replies
go out when that is committed (`shard_commits`). If an append fails the shard is dropped, everyone
it owes an answer is refused, and a new one is loaded from the log (`shard_loading`); while that
goes on its groups are answered COORDINATOR_LOAD_IN_PROGRESS.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

from broker.coordinator.group.config import GroupConfig
from broker.coordinator.group.output import Instant, Output, Reply
from broker.coordinator.group.output import RequestContext as GroupContext
from broker.coordinator.group.partitioning import partition_for
from broker.coordinator.group.refusals import refuse
from broker.coordinator.group.shard import GroupShard
from broker.errors import ErrorCode, KafkaError
from broker.log.append import AppendOrigin
from broker.metadata.topic_names import CONSUMER_OFFSETS
from broker.protocol.message import Message
from broker.records.build import build_batch
from broker.records.errors import CorruptBatch
from broker.server.clock import Clock, Random
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.asked import AskedShard, when_answered
from broker.server.coordinators.shard_commits import ShardCommits
from broker.server.coordinators.shard_loading import load
from broker.server.network.connection import Connection
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.replication.partitions import Partition, Partitions

log = logging.getLogger("millrace.groups")

Ask = Callable[[GroupShard, AskedShard, GroupContext, Instant], Output]


class _Loading(NamedTuple):
    """A shard on its way."""

    shard: GroupShard
    partition: Partition
    pieces: Iterator[None]


class Groups:
    """Every group shard this broker owns."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: GroupConfig,
        clock: Clock,
        random_source: Random,
        metadata: ClusterMetadata,
        partitions: Partitions,
    ) -> None:
        self._loop = loop
        self._config = config
        self._clock = clock
        self._random = random_source
        self._metadata = metadata
        self._partitions = partitions
        self._shards: dict[int, GroupShard] = {}
        self._commits: dict[int, ShardCommits] = {}
        self._loading: dict[int, _Loading] = {}
        self._damaged: set[int] = set()
        """Led here, and nobody can read them; their groups have no coordinator."""
        # When each timer fires is kept here: uvloop gives a handle that does not know it for a time
        # that has come already.
        self._timers: dict[int, tuple[float, asyncio.Handle]] = {}
        self._open: dict[Connection, dict[AskedShard, None]] = {}
        """What is asked and not answered."""

    # --- loading ---

    def follow_partitions(self) -> None:
        """Have a shard for each partition of the offsets topic that this broker leads."""
        led = {
            partition.topic_partition.partition
            for partition in self._partitions.topic(CONSUMER_OFFSETS)
            if partition.leader is not None
        }
        for number in self._shards.keys() - led:
            self._unload_shard(number)
        for number in self._loading.keys() - led:
            del self._loading[number]
        self._damaged &= led
        for number in sorted(led - self._shards.keys() - self._loading.keys() - self._damaged):
            self._begin_to_load(number)

    def _unload_shard(self, number: int) -> None:
        """Send away who waits here: the groups of this shard have another coordinator now."""
        self._commits.pop(number).refuse_all(ErrorCode.NOT_COORDINATOR)
        for reply in self._shards.pop(number).unload(ErrorCode.NOT_COORDINATOR):
            self._deliver(reply)
        running = self._timers.pop(number, None)
        if running is not None:
            running[1].cancel()

    def _begin_to_load(self, number: int) -> None:
        """Load the first piece of a shard, which is nearly always all of it."""
        shard = GroupShard(self._config, self._random)
        partition = self._partitions.get(CONSUMER_OFFSETS, number)
        loading = _Loading(shard, partition, load(shard, partition.log))
        self._loading[number] = loading
        self._go_on_loading(number, loading)

    def _go_on_loading(self, number: int, loading: _Loading) -> None:
        if self._loading.get(number) is not loading:
            return  # It is led elsewhere by now.
        try:
            has_more = next(loading.pieces, self) is not self
        except (CorruptBatch, KafkaError) as error:
            del self._loading[number]
            self._damaged.add(number)
            log.error(
                "groups cannot be loaded directory=%s reason=%s: restore it, or delete the records "
                "up to behind the damage, and start again",
                loading.partition.log.directory,
                error,
            )
            return
        if has_more:
            self._loop.call_soon(self._go_on_loading, number, loading)
            return
        del self._loading[number]
        self._shards[number] = loading.shard
        commits = self._commits[number] = ShardCommits(
            self._loop, loading.partition, self._config.commit_timeout_ms, self._deliver
        )
        # What the leader before has written, and nobody here knows yet to be committed.
        commits.note_append()
        self._run(number, loading.shard.loaded(self._now()))

    def _number_of(self, group_id: str) -> int:
        """Return the shard of a group; raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        offsets = self._metadata.image.topics.by_name.get(CONSUMER_OFFSETS)
        if offsets is not None:
            number = partition_for(group_id, len(offsets.partitions))
            if number in self._shards:
                return number
            if number in self._loading:
                raise KafkaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    "The coordinator is loading and hence can't process requests.",
                )
        raise KafkaError(ErrorCode.NOT_COORDINATOR, "This is not the correct coordinator.")

    def _now(self) -> Instant:
        return Instant(now_ms=self._clock.now_ms(), timestamp_ms=self._clock.timestamp_ms())

    # --- requests ---

    def answer(self, context: RequestContext, group_id: str, ask: Ask) -> Answer:
        """Put one request to the group's shard; its answer may come later. Raises KafkaError."""
        asked = self.ask(context, group_id, ask)
        return when_answered(context, (asked,), lambda: _message(asked))

    def ask(self, context: RequestContext, group_id: str, ask: Ask) -> AskedShard:
        """Put one question to the group's shard; see `when_answered`. Raises KafkaError."""
        return self._ask(context, self._number_of(group_id), ask)

    def ask_every_shard(self, context: RequestContext, ask: Ask) -> list[AskedShard]:
        """Put the same question to all shards. Raises KafkaError while one is being loaded."""
        if self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [self._ask(context, number, ask) for number in sorted(self._shards)]

    def _ask(self, context: RequestContext, number: int, ask: Ask) -> AskedShard:
        asked = AskedShard(context, number)
        group_context = GroupContext(
            api_version=context.api_version,
            client_id=context.header.client_id or "",
            client_host=f"/{context.connection.peer.host}",
        )
        self._run(number, ask(self._shards[number], asked, group_context, self._now()))
        if asked.response is None:
            self._open.setdefault(context.connection, {})[asked] = None
        return asked

    def on_closed(self, connection: Connection) -> None:
        """Forget whoever waited on a connection that is gone."""
        for asked in self._open.pop(connection, {}):
            shard = self._shards.get(asked.shard_number)
            if shard is not None:
                self._run(asked.shard_number, shard.forget(asked, self._now()))

    def on_topic_deleted(self, topic: str, topic_id: bytes) -> None:
        """Drop the offsets that were committed for a topic that is gone."""
        self._run_all(lambda shard: shard.on_topic_deleted(topic, topic_id))

    def expire_offsets(self) -> None:
        """Drop offsets that nobody has used for offsets.retention.minutes."""
        timestamp_ms = self._clock.timestamp_ms()
        self._run_all(lambda shard: shard.expire_offsets(timestamp_ms))

    def _run_all(self, act: Callable[[GroupShard], Output]) -> None:
        for number, shard in list(self._shards.items()):
            # An append that fails for one may take others along.
            if self._shards.get(number) is shard:
                self._run(number, act(shard))

    def stop(self) -> None:
        """Stop all timers."""
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    # --- effects ---

    def _run(self, number: int, output: Output) -> None:
        commits = self._commits[number]
        if output.records:
            try:
                self._append(number, output)
            except (KafkaError, OSError) as error:
                self._on_append_failed(number, output, error)
                return
            commits.note_append()
        commits.tell(output.replies)
        self._schedule(number)

    def _append(self, number: int, output: Output) -> None:
        timestamp_ms = self._clock.timestamp_ms()
        partition = self._partitions.get(CONSUMER_OFFSETS, number)
        for records in output.batches(partition.log.config.max_message_bytes):
            self._partitions.append(
                partition,
                build_batch([(key, value, (), timestamp_ms) for key, value in records]),
                timestamp_ms=timestamp_ms,
                origin=AppendOrigin.COORDINATOR,
            )

    def _on_append_failed(self, number: int, output: Output, error: Exception) -> None:
        log.error("a group shard could not append shard=%d error=%s", number, error)
        code = ErrorCode.NOT_COORDINATOR
        for reply in output.replies:
            self._deliver(refuse(reply, code))
        self._unload_shard(number)
        self.follow_partitions()

    def _deliver(self, reply: Reply) -> None:
        asked = reply.token
        assert isinstance(asked, AskedShard), asked
        of_connection = self._open.get(asked.context.connection)
        if of_connection is not None:
            of_connection.pop(asked, None)
            if not of_connection:
                del self._open[asked.context.connection]
        asked.answer(reply.response)

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
        self._run(number, self._shards[number].on_deadline(self._now()))


def _message(asked: AskedShard) -> Message:
    assert isinstance(asked.response, Message), asked.response
    return asked.response
