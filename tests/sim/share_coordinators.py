"""The share coordinators of a simulated cluster: real shards over logs that crashes shorten.

A shard's records are committed some time after they are appended; only then are questions
answered. A crash loses records that are not committed, or keeps them, and every answer that waits.
The shard is then loaded on another node.

Checked at every commit: the start offset and the leader epoch of a share-partition never fall.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from broker.coordinator.output import CoordinatorRecord, Instant, Output
from broker.coordinator.partitioning import partition_for
from broker.coordinator.share_state.shard import ShareStateShard
from broker.coordinator.share_state.state import SharePartitionKey, ShareStateConfig
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.server.coordinators.share_states import coordinator_key
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages import read_share_group_state as reading
from common.kafka.protocol.messages import write_share_group_state as writing
from tests.sim.scheduler import Scheduler
from tests.sim.share_loop import EPOCH_MS

SHARD_COUNT = 2
COMMIT_MS = 5
LISTENER = "PLAINTEXT"


@dataclass
class Weather:
    """The faults of the way to the coordinators, as probabilities."""

    loss: float = 0.0
    duplication: float = 0.0
    slow_ms: int = 2


@dataclass
class Shard:
    """One partition of `__share_group_state`: its log, and the node that leads it."""

    leader: int
    log: list[CoordinatorRecord] = field(default_factory=list)
    committed: int = 0
    running: ShareStateShard | None = None
    incarnation: int = 0
    starts: dict[SharePartitionKey, int] = field(default_factory=dict)
    epochs: dict[SharePartitionKey, int] = field(default_factory=dict)


class ShareCoordinators:
    """All shards, the node that each is on, and the answers that wait for a commit."""

    def __init__(
        self, scheduler: Scheduler, node_ids: list[int], partition_counts: dict[bytes, int]
    ) -> None:
        self.scheduler = scheduler
        self.weather = Weather()
        self._partition_counts = partition_counts
        self.node_ids = node_ids
        self.shards = [Shard(leader=scheduler.random.choice(node_ids)) for _ in range(SHARD_COUNT)]
        for shard in self.shards:
            self._load(shard)
        self.image = SimpleNamespace(
            topics=SimpleNamespace(
                by_name={SHARE_GROUP_STATE: SimpleNamespace(partitions=self.shards)}
            ),
            brokers={
                node_id: SimpleNamespace(
                    broker_id=node_id,
                    is_fenced=False,
                    endpoints={LISTENER: ("node", node_id)},
                    rack=None,
                )
                for node_id in node_ids
            },
        )

    # --- the shards ---

    @property
    def now(self) -> Instant:
        return Instant(self.scheduler.now_ms, EPOCH_MS + self.scheduler.now_ms)

    def _load(self, shard: Shard) -> None:
        running = ShareStateShard(
            ShareStateConfig(updates_per_snapshot=5),
            lambda topic_id: self._partition_counts.get(topic_id, 0),
        )
        for offset, record in enumerate(shard.log):
            running.replay(*record, offset)
        for _ in running.loaded(self.now):
            pass
        shard.running = running
        shard.committed = len(shard.log)
        self._check(shard)

    def crash(self, index: int, keeps: bool) -> None:
        """Stop a shard, and load it elsewhere after a while."""
        shard = self.shards[index]
        if shard.running is None:
            return
        shard.running = None
        shard.incarnation += 1
        if not keeps:
            del shard.log[shard.committed :]
        others = [node_id for node_id in self.node_ids if node_id != shard.leader]
        shard.leader = self.scheduler.random.choice(others)
        self.scheduler.after(self.scheduler.random.randint(5, 300), lambda: self._load(shard))

    def shard_of(self, key: SharePartitionKey) -> Shard:
        return self.shards[partition_for(coordinator_key(key), SHARD_COUNT)]

    def initialize(self, key: SharePartitionKey, start_offset: int = 0) -> None:
        """Begin the state of a share-partition, as the group coordinator does."""
        from common.kafka.protocol.messages.initialize_share_group_state import PartitionData

        shard = self.shard_of(key)
        assert shard.running is not None
        wanted = PartitionData(partition=key.partition, state_epoch=1, start_offset=start_offset)
        output = shard.running.initialize("t", key, wanted, self.now)
        shard.log += output.records
        shard.committed = len(shard.log)

    def _append(self, shard: Shard, output: Output, then: Callable[[], None]) -> None:
        """Append records, and go on when they are committed, unless the shard has crashed."""
        shard.log += output.records
        end, incarnation = len(shard.log), shard.incarnation

        def commit() -> None:
            if shard.incarnation == incarnation:
                shard.committed = max(shard.committed, end)
                self._check(shard)
                then()

        self.scheduler.after(self.scheduler.random.randint(0, COMMIT_MS), commit)

    def _check(self, shard: Shard) -> None:
        assert shard.running is not None
        for key, kept in shard.running.table.kept.items():
            if len(shard.log) > shard.committed:
                continue  # A part of the table is not committed.
            start, epoch = kept.state.start_offset, kept.state.leader_epoch
            assert start >= shard.starts.get(key, -1), ("the stored start fell", key, start)
            assert epoch >= shard.epochs.get(key, -1), ("the stored epoch fell", key, epoch)
            shard.starts[key], shard.epochs[key] = start, epoch

    # --- the requests of leaders ---

    def connect(self, address: tuple[str, int]) -> Any:
        return _Connection(self, address)

    def handle(
        self, node_id: int, request: Message, on_answer: Callable[[Message | None], None]
    ) -> None:
        """Handle a request at a node; nobody is told if a shard crashes meanwhile."""
        assert isinstance(
            request, writing.WriteShareGroupStateRequest | reading.ReadShareGroupStateRequest
        )
        results: dict[tuple[bytes, int], Any] = {}
        places = [
            (topic.topic_id, wanted) for topic in request.topics for wanted in topic.partitions
        ]

        def note(topic_id: bytes, result: Any) -> None:
            results[topic_id, result.partition] = result
            if len(results) == len(places):
                on_answer(_answer(request, results))

        for topic_id, wanted in places:
            key = SharePartitionKey(request.group_id, topic_id, wanted.partition)
            shard = self.shard_of(key)
            writes = isinstance(request, writing.WriteShareGroupStateRequest)
            kind = writing.PartitionResult if writes else reading.PartitionResult
            if shard.leader != node_id or shard.running is None:
                code = (
                    ErrorCode.NOT_COORDINATOR
                    if shard.leader != node_id
                    else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                )
                note(topic_id, kind(partition=wanted.partition, error_code=code))
                continue
            handler = shard.running.write if writes else shard.running.read
            output = handler("t", key, wanted, self.now)  # type: ignore[arg-type]
            (reply,) = output.replies
            self._append(
                shard, output, lambda reply=reply, topic_id=topic_id: note(topic_id, reply.response)
            )


def _answer(request: Message, results: dict[tuple[bytes, int], Any]) -> Message:
    topics: dict[bytes, list[Any]] = {}
    for (topic_id, _), result in results.items():
        topics.setdefault(topic_id, []).append(result)
    if isinstance(request, writing.WriteShareGroupStateRequest):
        return writing.WriteShareGroupStateResponse(
            results=[
                writing.WriteStateResult(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ]
        )
    return reading.ReadShareGroupStateResponse(
        results=[
            reading.ReadStateResult(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ]
    )


class _Connection:
    """Like `ClientConnection`: each request is answered once, with None if it was lost."""

    def __init__(self, coordinators: ShareCoordinators, address: tuple[str, int]) -> None:
        self.address = address
        self._coordinators = coordinators
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True

    def ask(
        self,
        request: Message,
        version: int,
        timeout_ms: int,
        on_answer: Callable[[Message | None], None],
    ) -> None:
        coordinators, told = self._coordinators, False
        scheduler, weather = coordinators.scheduler, coordinators.weather
        random = scheduler.random

        def tell(answer: Message | None) -> None:
            nonlocal told
            if not told and not self._is_closed:
                told = True
                on_answer(answer)

        def arrive_back(answer: Message | None) -> None:
            if random.random() < weather.loss:
                scheduler.after(random.randint(0, 50), lambda: tell(None))
            else:
                scheduler.after(random.randint(0, weather.slow_ms), lambda: tell(answer))

        for _ in range(1 + (random.random() < weather.duplication)):
            if random.random() < weather.loss:
                scheduler.after(random.randint(0, 50), lambda: tell(None))
                continue
            delay_ms = random.randint(0, weather.slow_ms)
            scheduler.after(
                delay_ms,
                lambda: coordinators.handle(self.address[1], request, arrive_back),
            )
        scheduler.after(timeout_ms, lambda: tell(None))
