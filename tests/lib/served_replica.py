"""One broker's replicas for its handlers: simulated disk, time and loop, no sockets."""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from broker.config.broker_config import BrokerConfig
from broker.log.config import LogConfig
from broker.log.log_directories import LogDirectories
from broker.log.log_directory import DirectorySettings
from broker.metadata.image import MetadataImage
from broker.model import TopicPartition
from broker.records.build import build_batch
from broker.replication.fetch_session.session_cache import FetchSessionCache
from broker.server.handlers.fetch.fetch import Fetch
from broker.server.handlers.produce.produce import Produce
from broker.server.handlers.topics.delete_records import DeleteRecords
from broker.server.metrics import Metrics
from broker.server.network.connection import Place
from broker.server.replication.parked_fetches import ParkedFetches
from broker.server.replication.parked_writes import ParkedWrites
from broker.server.replication.partitions import LedLogs, Partitions
from broker.server.replication.replicas import Replicas
from broker.server.replication.throttles import Throttles
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from common.kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from common.kafka.protocol.records.metadata import (
    BrokerEndpoint,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.lib.logs import NOW_MS
from tests.lib.simulated_storage import SimulatedStorage

TOPIC, TOPIC_ID, LISTENER = "orders", b"1" * 16, "PLAINTEXT"
BROKERS = (1, 2, 3)
PRODUCE_VERSION, FETCH_VERSION, DELETE_RECORDS_VERSION = 11, 17, 2


def epoch_of(broker_id: int) -> int:
    return 100 + broker_id


class SimulatedLoop:
    """An event loop whose time the test moves."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self._due: list[tuple[float, Any]] = []

    def time(self) -> float:
        return self.now_ms / 1000

    def call_soon(self, work: Callable[..., None], *arguments: object) -> Any:
        return self.call_later(0, work, *arguments)

    def call_later(self, delay_s: float, work: Callable[..., None], *arguments: object) -> Any:
        handle = SimpleNamespace(is_cancelled=False, run=lambda: work(*arguments))
        handle.cancel = lambda: setattr(handle, "is_cancelled", True)
        self._due.append((self.now_ms + delay_s * 1000, handle))
        return handle

    def take_turn(self) -> None:
        """Run the callbacks that are due now, but not those that they schedule."""
        due = [entry for entry in self._due if entry[0] <= self.now_ms]
        self._due = [entry for entry in self._due if entry not in due]
        for _, handle in due:
            if not handle.is_cancelled:
                handle.run()

    def advance(self, milliseconds: float = 0) -> None:
        """Run the callbacks that are due until a time."""
        end_ms = self.now_ms + milliseconds
        while due := [entry for entry in self._due if entry[0] <= end_ms]:
            at_ms, handle = entry = min(due, key=lambda entry: entry[0])
            self._due.remove(entry)
            self.now_ms = max(self.now_ms, at_ms)
            if not handle.is_cancelled:
                handle.run()
        self.now_ms = end_ms


class Client:
    """A connection with the interface for handlers. Its turns end only if the test says so."""

    def __init__(self) -> None:
        self.is_closed = False
        self.peer = SimpleNamespace(host="127.0.0.1", listener_name=LISTENER)
        self.places: list[Any] = []
        self.has_turns = False
        self._contexts: dict[Any, Context] = {}

    def begin(self, context: "Context", steps: Any) -> None:
        place = Place(steps)
        self.places.append(place)
        self._contexts[place] = context
        self.go_on(place)

    def go_on(self, place: Any) -> None:
        """Do the same as `Connection._run`."""
        awaited, place.awaited = place.awaited, None
        value = None if awaited is None else awaited.value
        try:
            while not self.is_closed:
                awaited = place.steps.send(value)
                value = None
                if awaited is None:
                    if self.has_turns:
                        return
                elif awaited.is_done:
                    value = awaited.value
                else:
                    place.awaited = awaited
                    awaited.when_done(partial(self.go_on, place))
                    return
        except StopIteration as done:
            self.places.remove(place)
            self._contexts[place].reply(done.value)

    def close(self) -> None:
        self.is_closed = True
        for place in self.places:
            if place.awaited is not None:
                place.awaited.abandon()


class Context:
    """One request, and its answer if there is one."""

    def __init__(self, api_version: int, client: Client | None = None) -> None:
        self.api_version = api_version
        self.connection: Any = client or Client()
        self.header = SimpleNamespace(client_id="test")
        self.answer: Any = None

    def reply(self, answer: Message) -> None:
        assert self.answer is None, "answered twice"
        if isinstance(answer, Message):
            self.answer = answer

    def handle(self, handle: Callable[..., object], request: Message) -> "Context":
        """Run the handler until it answers or waits."""
        answer: Any = handle(self, request)
        if isinstance(answer, Generator):
            self.connection.begin(self, answer)
        else:
            self.reply(answer)
        return self


class ServedReplica:
    """One broker of three, with a replica of `orders-0`; by default broker 1 leads."""

    def __init__(
        self,
        node_id: int = 1,
        *,
        isr: tuple[int, ...] = BROKERS,
        min_isr: int = 2,
        leader: int = 1,
        settings: Mapping[str, str] | None = None,
        directories: Sequence[str] = ("/data",),
    ) -> None:
        self.loop: Any = SimulatedLoop()
        self.image = MetadataImage()
        metadata: Any = SimpleNamespace(image=self.image)
        clock: Any = SimpleNamespace(
            timestamp_ms=lambda: NOW_MS,
            now_ms=lambda: int(self.loop.now_ms),
            call_later=lambda delay_ms, *call: self.loop.call_later(delay_ms / 1000, *call),
        )
        of_directories = DirectorySettings(
            "cluster", node_id, lambda topic: LogConfig(), lambda: b"directory-id-one"
        )
        self.directories = LogDirectories(SimulatedStorage(), list(directories), of_directories)
        self.directories.open(NOW_MS)
        self.parked_fetches = ParkedFetches(self.loop)
        self.parked_produces = ParkedWrites(self.loop)
        self.parked_deletions = ParkedWrites(self.loop)
        config = BrokerConfig.from_settings({"node.id": str(node_id), **(settings or {})})
        self.partitions = Partitions(
            node_id,
            metadata,
            clock,
            wake=self.parked_fetches.wake,
            on_flush_wanted=lambda: None,
            tells_followers_at_once=config.replication.selects_by_rack,
        )
        self.isr_changes: list[Any] = []
        self.partitions.on_isr_change = lambda partition, change: self.isr_changes.append(change)
        dynamic: Any = SimpleNamespace(static=config, current=config)
        self.replicas = Replicas(
            self.loop,
            dynamic,
            metadata,
            self.partitions,
            self.directories,
            clock,
            on_deleted=lambda: None,
            on_failure=lambda topic, partition, error: None,
        )
        failures: Any = SimpleNamespace()
        self.throttles = Throttles(node_id, config.replication, metadata)
        self.logs = logs = LedLogs(self.partitions, clock, failures, self.throttles.leader)
        sessions = FetchSessionCache(iter(range(1, 100)).__next__)
        self.clock, self.config = clock, config
        verifier: Any = SimpleNamespace()
        self.produce_handler = Produce(
            config, logs, self.parked_produces, metadata, Metrics(), verifier
        )
        self._delete_records = DeleteRecords(self.partitions, failures, self.parked_deletions)
        self.sessions = sessions
        self.fetch_handler = Fetch(config, logs, self.parked_fetches, sessions, metadata, Metrics())
        self.replay(
            *map(_registration, BROKERS),
            TopicRecord(name=TOPIC, topic_id=TOPIC_ID),
            ConfigRecord(
                resource_type=2,
                resource_name=TOPIC,
                name="min.insync.replicas",
                value=str(min_isr),
            ),
            PartitionRecord(
                partition_id=0,
                topic_id=TOPIC_ID,
                replicas=list(BROKERS),
                isr=list(isr),
                leader=leader,
                leader_epoch=0,
                partition_epoch=0,
                directories=[bytes(16)] * len(BROKERS),
            ),
        )

    def replay(self, *records: Message) -> None:
        """Change the metadata, and apply the change."""
        for record in records:
            self.image.replay(record)
        delta = self.image.take_delta()
        self.throttles.apply(delta)
        self.replicas.apply(delta)
        if delta.changed_brokers:
            self.partitions.on_brokers_changed()

    def change(self, **fields: Any) -> None:
        """Change the partition as the controller does."""
        self.replay(PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields))

    def set_topic(self, name: str, value: str) -> None:
        """Change a setting of the topic."""
        self.replay(ConfigRecord(resource_type=2, resource_name=TOPIC, name=name, value=value))

    @property
    def partition(self) -> Any:
        found = self.partitions.find(*TopicPartition(TOPIC, 0))
        assert found is not None
        return found

    @property
    def high_watermark(self) -> int:
        return int(self.partition.log.high_watermark)

    # --- requests ---

    def produce(self, *, acks: int = -1, timeout_ms: int = 30_000) -> Context:
        """Produce one record."""
        context = Context(PRODUCE_VERSION)
        batch = build_batch([(None, b"value", (), NOW_MS)])
        data = [PartitionProduceData(index=0, records=batch)]
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[TopicProduceData(name=TOPIC, partition_data=data)],
        )
        return self._handled(self.produce_handler.handle, context, request)

    def delete_records(self, offset: int, *, timeout_ms: int = 30_000) -> Context:
        """Delete the records before an offset."""
        context = Context(DELETE_RECORDS_VERSION)
        wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
        topic = DeleteRecordsTopic(name=TOPIC, partitions=[wanted])
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms)
        return self._handled(self._delete_records.handle, context, request)

    def fetch(self, offset: int, *, wait_ms: int = 500, **more: Any) -> Context:
        """Fetch as a consumer."""
        context = Context(more.pop("version", FETCH_VERSION), more.pop("client", None))
        state = more.pop("replica_state", ReplicaState())
        session = {name: more.pop(name) for name in ("session_id", "session_epoch") if name in more}
        of_request = more.pop("request", {})
        min_bytes = more.pop("min_bytes", 1)
        rack_id = more.pop("rack_id", "")
        wanted = FetchPartition(fetch_offset=offset, partition_max_bytes=1_000_000, **more)
        request = FetchRequest(
            replica_state=state,
            rack_id=rack_id,
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            topics=[FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[wanted])],
            **session,
        )
        for name, value in of_request.items():
            setattr(request, name, value)
        return self._handled(self.fetch_handler.handle, context, request)

    def follow(self, broker_id: int, offset: int, **more: Any) -> Context:
        """Fetch as a follower."""
        broker_epoch = more.pop("broker_epoch", epoch_of(broker_id))
        state = ReplicaState(replica_id=broker_id, replica_epoch=broker_epoch)
        return self.fetch(
            offset,
            **{
                "replica_state": state,
                "current_leader_epoch": 0,
                "log_start_offset": 0,
                "wait_ms": 0,
                **more,
            },
        )

    def _handled(
        self, handle: Callable[..., object], context: Context, request: Message
    ) -> Context:
        return context.handle(handle, request)


def produced(context: Context) -> tuple[int, int]:
    """Return the error and the base offset of a produce."""
    (answer,) = context.answer.responses[0].partition_responses
    return answer.error_code, answer.base_offset


def deleted(context: Context) -> tuple[int, int]:
    """Return the error and the low watermark of a DeleteRecords."""
    (answer,) = context.answer.topics[0].partitions
    return answer.error_code, answer.low_watermark


def fetched(context: Context) -> PartitionData:
    """Return the only partition of a fetch."""
    (answer,) = context.answer.responses[0].partitions
    assert isinstance(answer, PartitionData)
    return answer


def fetch_error(context: Context) -> ErrorCode:
    return ErrorCode(fetched(context).error_code)


def _registration(broker_id: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        broker_epoch=epoch_of(broker_id),
        incarnation_id=bytes([broker_id] * 16),
        fenced=False,
        rack=f"rack-{broker_id}",
        end_points=[
            BrokerEndpoint(
                name=LISTENER, host="127.0.0.1", port=9000 + broker_id, security_protocol=0
            )
        ],
    )
