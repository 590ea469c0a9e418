"""The shell around the group shards: appends their records, then sends their replies.

One shard per partition of `__consumer_offsets`, each the owner of its groups. A shard returns
records and replies; the records are appended as one batch, and only when that batch is committed
(on one node: at once) do the replies go out. If an append fails the shard is dropped, everyone it
owes an answer is refused, and a new one is loaded from the log.
"""

import asyncio
import logging
from collections.abc import Callable

from broker.coordinator.group.config import GroupConfig
from broker.coordinator.group.output import Instant, Output, Reply
from broker.coordinator.group.output import RequestContext as GroupContext
from broker.coordinator.group.partitioning import partition_for
from broker.coordinator.group.refusals import refuse
from broker.coordinator.group.shard import GroupShard
from broker.errors import ErrorCode, KafkaError
from broker.log.append import AppendOrigin
from broker.log.partition_log import PartitionLog
from broker.metadata.topic_names import CONSUMER_OFFSETS
from broker.protocol.message import Message
from broker.records.build import build_batch
from broker.records.errors import CorruptBatch
from broker.server.clock import Clock, Random
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.connection import Connection
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.replication.partitions import Partitions
from broker.server.storage.reading import committed_batches

log = logging.getLogger("millrace.groups")

Ask = Callable[[GroupShard, "Waiter", GroupContext, Instant], Output]


class Waiter:
    """Names one request that a shard owes a reply, and takes that reply."""

    __slots__ = ("context", "is_parked", "response", "shard_number")

    def __init__(self, context: RequestContext, shard_number: int) -> None:
        self.context = context
        self.shard_number = shard_number
        self.response: object | None = None
        self.is_parked = False


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
        self._damaged: set[int] = set()
        """Led here, and nobody can read them; their groups have no coordinator."""
        # When each timer fires is kept here: uvloop gives a handle that does not know it for a time
        # that has come already.
        self._timers: dict[int, tuple[float, asyncio.Handle]] = {}
        self._parked: dict[Connection, dict[Waiter, None]] = {}

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
        self._damaged &= led
        for number in sorted(led - self._shards.keys() - self._damaged):
            self._load_shard(number)

    def _unload_shard(self, number: int) -> None:
        """Send away who waits here: the groups of this shard have another coordinator now."""
        for reply in self._shards.pop(number).unload(ErrorCode.NOT_COORDINATOR):
            self._deliver(reply)
        running = self._timers.pop(number, None)
        if running is not None:
            running[1].cancel()

    def _load_shard(self, number: int) -> None:
        shard = GroupShard(self._config, self._random)
        partition_log = self._partitions.get(CONSUMER_OFFSETS, number).log
        try:
            _replay_all(shard, partition_log)
        except (CorruptBatch, KafkaError) as error:
            self._damaged.add(number)
            log.error(
                "groups cannot be loaded directory=%s reason=%s: restore it, or delete the records "
                "up to behind the damage, and start again",
                partition_log.directory,
                error,
            )
            return
        self._shards[number] = shard
        self._run(number, shard.loaded(self._now()))

    def _number_of(self, group_id: str) -> int:
        """Return the shard of a group; raises NOT_COORDINATOR when it is not here."""
        offsets = self._metadata.image.topics.by_name.get(CONSUMER_OFFSETS)
        if offsets is not None:
            number = partition_for(group_id, len(offsets.partitions))
            if number in self._shards:
                return number
        raise KafkaError(ErrorCode.NOT_COORDINATOR, "This is not the correct coordinator.")

    def _now(self) -> Instant:
        return Instant(now_ms=self._clock.now_ms(), timestamp_ms=self._clock.timestamp_ms())

    # --- requests ---

    def answer(self, context: RequestContext, group_id: str, ask: Ask) -> Answer:
        """Put one request to the group's shard; its answer may come later. Raises KafkaError."""
        number = self._number_of(group_id)
        waiter = self._ask(context, number, ask)
        if waiter.response is not None:
            assert isinstance(waiter.response, Message), waiter.response
            return waiter.response
        waiter.is_parked = True
        self._parked.setdefault(context.connection, {})[waiter] = None
        return context.defer()

    def ask_now(self, context: RequestContext, group_id: str, ask: Ask) -> object:
        """Put a question that never waits, and return the reply. Raises KafkaError."""
        return self._ask(context, self._number_of(group_id), ask).response

    def ask_every_shard(self, context: RequestContext, ask: Ask) -> list[object]:
        """Put the same question to all shards."""
        return [self._ask(context, number, ask).response for number in sorted(self._shards)]

    def _ask(self, context: RequestContext, number: int, ask: Ask) -> Waiter:
        waiter = Waiter(context, number)
        group_context = GroupContext(
            api_version=context.api_version,
            client_id=context.header.client_id or "",
            client_host=f"/{context.connection.peer.host}",
        )
        self._run(number, ask(self._shards[number], waiter, group_context, self._now()))
        return waiter

    def on_closed(self, connection: Connection) -> None:
        """Forget whoever waited on a connection that is gone."""
        for waiter in self._parked.pop(connection, {}):
            shard = self._shards.get(waiter.shard_number)
            if shard is not None:
                self._run(waiter.shard_number, shard.forget(waiter, self._now()))

    def on_topic_deleted(self, topic: str, topic_id: bytes) -> None:
        """Drop the offsets that were committed for a topic that is gone."""
        for number, shard in self._shards.items():
            self._run(number, shard.on_topic_deleted(topic, topic_id))

    def expire_offsets(self) -> None:
        """Drop offsets that nobody has used for offsets.retention.minutes."""
        timestamp_ms = self._clock.timestamp_ms()
        for number, shard in self._shards.items():
            self._run(number, shard.expire_offsets(timestamp_ms))

    def stop(self) -> None:
        """Stop all timers."""
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    # --- effects ---

    def _run(self, number: int, output: Output) -> None:
        if output.records:
            try:
                self._append(number, output)
            except (KafkaError, OSError) as error:
                self._on_append_failed(number, output, error)
                return
        for reply in output.replies:
            self._deliver(reply)
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
        for reply in [*output.replies, *self._shards[number].unload(code)]:
            self._deliver(refuse(reply, code))
        self._load_shard(number)

    def _deliver(self, reply: Reply) -> None:
        waiter = reply.token
        assert isinstance(waiter, Waiter), waiter
        if not waiter.is_parked:
            waiter.response = reply.response
            return
        of_connection = self._parked.get(waiter.context.connection)
        if of_connection is not None:
            of_connection.pop(waiter, None)
            if not of_connection:
                del self._parked[waiter.context.connection]
        assert isinstance(reply.response, Message), reply.response
        waiter.context.reply(reply.response)

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


def _replay_all(shard: GroupShard, partition_log: PartitionLog) -> None:
    for batch in committed_batches(partition_log):
        if batch.header.is_control:
            continue
        for record in batch.records():
            if record.key is not None:
                shard.replay(record.key, record.value)
