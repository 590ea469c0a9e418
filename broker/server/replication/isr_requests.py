"""Requests to the controller for changes of the in-sync sets of this broker's leaders.

`IsrChanges` decides the content and the time of each AlterPartition; this module has the timers.
Every half of `replica.lag.time.max.ms` it checks for followers that have fallen behind.
"""

import asyncio
import logging
from collections.abc import Callable

from broker.replication.isr import IsrChange
from broker.replication.isr_changes import IsrChanges
from broker.server.clock import Clock
from broker.server.cluster.metadata_quorum import AskController
from broker.server.metrics import Metrics
from broker.server.replication.partitions import Partition, Partitions
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.alter_partition import AlterPartitionResponse

log = logging.getLogger("millstream.isr")

ALTER_PARTITION_VERSION = 3
TIMEOUT_MS = 10_000
"""A request that was lost is sent again after this."""


class IsrRequests:
    """Owns the AlterPartition requests of this broker; there is one at a time."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        partitions: Partitions,
        ask: AskController,
        metrics: Metrics,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._partitions = partitions
        self._ask = ask
        self._metrics = metrics
        self._broker_epoch = broker_epoch
        self._changes: IsrChanges[Partition] = IsrChanges()
        self._timer: asyncio.Handle | None = None
        partitions.on_isr_change = self.submit

    def submit(self, partition: Partition, change: IsrChange) -> None:
        """Request a change, together with the other changes of this turn."""
        self._changes.submit(partition.key, partition, change)
        if self._timer is None:
            self._timer = self._loop.call_soon(self._send)

    def forget(self, partition: Partition) -> None:
        """Drop the changes of a partition that has another leader, or is deleted."""
        self._changes.forget(partition.key)

    def stop(self) -> None:
        """Stop all requests and timers."""
        if self._timer is not None:
            self._timer.cancel()

    def look_for_laggards(self) -> None:
        """Request the removal of followers that have fallen behind from the in-sync sets."""
        now_ms = self._clock.now_ms()
        for partition in self._partitions:
            leader = partition.leader
            if leader is not None and leader.followers and leader.maybe_shrink_isr(now_ms):
                self._partitions.look_at_isr(partition)
        self._partitions.reconsider()

    def _send(self) -> None:
        self._timer = None
        request = self._changes.next_request(
            self._partitions.node_id, self._broker_epoch(), self._clock.now_ms()
        )
        if request is None:
            self._schedule()
            return
        self._ask(
            request,
            ALTER_PARTITION_VERSION,
            self._on_response,
            timeout_ms=TIMEOUT_MS,
            # `IsrChanges` has to know every copy of a request that may be under way.
            is_sent_once=True,
        )

    def _schedule(self) -> None:
        deadline_ms = self._changes.next_deadline_ms()
        if deadline_ms >= 0 and self._timer is None:
            delay_ms = max(0, deadline_ms - self._clock.now_ms())
            self._timer = self._loop.call_later(delay_ms / 1000, self._send)

    def _on_response(self, response: Message) -> None:
        assert isinstance(response, AlterPartitionResponse), response
        now_ms = self._clock.now_ms()
        if response.error_code == ErrorCode.REQUEST_TIMED_OUT:
            self._changes.handle_no_answer(now_ms)
        for partition, change, result in self._changes.handle_response(response, now_ms):
            leader = partition.leader
            if leader is None:
                continue
            if result.error_code:
                self._metrics.failed_isr_updates += 1
            else:
                # The metadata may have brought this change before the answer did.
                self._note(partition, change.before, frozenset(result.isr))
            if leader.handle_isr_answer(change, result, now_ms):
                self._partitions.on_high_watermark(partition)
            self._partitions.look_at_isr(partition)
        self._schedule()

    def _note(self, partition: Partition, before: frozenset[int], after: frozenset[int]) -> None:
        if after - before:
            self._metrics.isr_expands += 1
        if before - after:
            self._metrics.isr_shrinks += 1
        log.info(
            "in-sync replicas changed topic_partition=%s isr=%s before=%s",
            partition.topic_partition,
            sorted(after),
            sorted(before),
        )
