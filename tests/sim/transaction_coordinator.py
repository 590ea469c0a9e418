"""One coordinator of a transaction simulation: the shard, its log, and the outputs before their
commit.

The newest coordinator commits its appended records after a delay. A replaced coordinator that does
not know of its successor continues: it commits no records and its answers are lost, but its
markers arrive. (Answers without an append are lost too: until a coordinator learns of its
successor, neither ours nor Kafka's would refuse the request.)
"""

from types import SimpleNamespace
from typing import Any

from broker.coordinator.output import CoordinatorRecord, Instant, Output, ShardContext
from broker.coordinator.transaction.markers import SendMarkers
from broker.coordinator.transaction.shard import TransactionShard
from broker.server.coordinators.marker_sender import MarkerSender
from broker.server.peers import Peers
from common.kafka.errors import ErrorCode
from tests.lib.logs import last_of
from tests.sim.transaction_network import OnAnswer

WALL_MS = 1_700_000_000_000
SHARD = 0


class Loop:
    """Virtual time behind the event loop's methods that the sender calls."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def call_soon(self, work: Any, *arguments: object) -> Any:
        return self.call_later(0, work, *arguments)

    def call_later(self, delay_s: float, work: Any, *arguments: object) -> Any:
        handle = SimpleNamespace(is_cancelled=False)
        handle.cancel = lambda: setattr(handle, "is_cancelled", True)

        def fire() -> None:
            if not handle.is_cancelled:
                work(*arguments)

        self._scheduler.after(round(delay_s * 1_000), fire)
        return handle


class Coordinator:
    """A coordinator. Invariant: `waiting` is in the order of the offsets to be committed."""

    def __init__(self, simulation: Any, epoch: int, log: list[CoordinatorRecord]) -> None:
        self.simulation = simulation
        self.epoch = epoch
        self.log = log
        self.is_dead = False
        self.waiting: list[tuple[int, Output]] = []
        loop: Any = Loop(simulation.scheduler)
        data = simulation.data
        self.sender = MarkerSender(
            data,
            lambda: Peers(loop, data, data.connect, "INTERNAL"),
            20,
            lambda number: epoch,
            self._on_written,
        )
        self.shard = TransactionShard(
            simulation.config,
            take_producer_id=simulation.take_producer_id,
            transaction_version=lambda: simulation.server_version,
        )
        for key, value in log:
            self.shard.replay(key, value)
        self.run(last_of(self.shard.loaded(self.now)), must_commit=True)

    @property
    def now(self) -> Instant:
        now_ms = self.simulation.scheduler.now_ms
        return Instant(now_ms, WALL_MS + now_ms)

    @property
    def is_newest(self) -> bool:
        return self.simulation.newest is self

    def handle(self, method: str, version: int, request: Any, on_answer: OnAnswer) -> None:
        """Pass a request to the shard; a replaced coordinator answers NOT_COORDINATOR."""
        if self.is_dead:
            on_answer(ErrorCode.NOT_COORDINATOR)
            return
        context = ShardContext(version)
        self.run(getattr(self.shard, method)(on_answer, context, request, self.now))

    def run(self, output: Output, *, must_commit: bool = False) -> None:
        """Append the records; replies and effects wait until all records are committed."""
        self.log += output.records
        self.waiting.append((len(self.log), output))
        if output.records or must_commit:
            end = len(self.log)
            delay_ms = self.simulation.commit_delay_ms()
            self.simulation.scheduler.after(delay_ms, lambda: self._commit(end))
        else:
            self._tell()
        self._schedule()

    def _commit(self, end: int) -> None:
        if self.is_newest and not self.is_dead:
            self.simulation.commit(end)
            self._tell()

    def _tell(self) -> None:
        while self.is_newest and self.waiting:
            end, output = self.waiting[0]
            if end > self.simulation.committed_count:
                return
            del self.waiting[0]
            for on_answer, response in output.replies:
                on_answer(response)
            for effect in output.effects:
                self.sender.send(SHARD, effect)

    def _on_written(self, number: int, markers: SendMarkers, partitions: Any) -> None:
        if not self.is_dead:
            self.run(self.shard.markers_written(markers, partitions, self.now))

    def _schedule(self) -> None:
        due_ms = self.shard.next_deadline_ms()
        if due_ms is not None:
            at_ms = max(due_ms, self.simulation.scheduler.now_ms)
            self.simulation.scheduler.at(at_ms, self._on_deadline)

    def _on_deadline(self) -> None:
        due_ms = self.shard.next_deadline_ms()
        if not self.is_dead and due_ms is not None and due_ms <= self.now.now_ms:
            self.run(self.shard.on_deadline(self.now))

    def die(self) -> None:
        """Stop: the coordinator learned of its successor, or crashed."""
        self.is_dead = True
        self.waiting.clear()
        self.sender.forget(SHARD)
        self.sender.stop()
