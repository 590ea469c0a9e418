"""Markers reach the current leader of every partition, and are counted once."""

from types import SimpleNamespace
from typing import Any, cast

from broker.coordinator.transaction.markers import SendMarkers
from broker.model import TopicPartition
from broker.server.coordinators import marker_sender
from broker.server.coordinators.marker_sender import (
    MAX_BACKOFF_MS,
    MAX_TRANSACTIONS_PER_REQUEST,
    MarkerSender,
)
from broker.server.peers import Peers
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.lib.served_replica import SimulatedLoop

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BACKOFF_MS = 50


class Connection:
    """A broker as the sender sees it: what it was asked; it answers when the test lets it."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.asked: list[tuple[WriteTxnMarkersRequest, Any]] = []
        self.is_closed = False

    def ask(self, request: Any, api_version: int, timeout_ms: int, on_answer: Any) -> None:
        self.asked.append((request, on_answer))

    def close(self) -> None:
        self.is_closed = True

    def answer(self, code: ErrorCode = ErrorCode.NONE) -> None:
        """Say the same of every marker of the oldest request."""
        request, on_answer = self.asked.pop(0)
        on_answer(
            WriteTxnMarkersResponse(
                markers=[
                    WritableTxnMarkerResult(
                        producer_id=marker.producer_id,
                        topics=[
                            WritableTxnMarkerTopicResult(
                                name=topic.name,
                                partitions=[
                                    WritableTxnMarkerPartitionResult(
                                        partition_index=index, error_code=code
                                    )
                                    for index in topic.partition_indexes
                                ],
                            )
                            for topic in marker.topics
                        ],
                    )
                    for marker in request.markers
                ]
            )
        )

    def lose(self) -> None:
        """Break before the answer comes."""
        self.asked.pop(0)[1](None)


class Cluster:
    """A sender among brokers 1 and 2; `t-0` is led by 1, `t-1` by 2."""

    def __init__(self) -> None:
        self.loop = SimulatedLoop()
        self.leaders = {0: 1, 1: 2}
        self.brokers = {number: self.broker(number) for number in (1, 2)}
        self.connections: dict[int, Connection] = {}
        self.slow_connections: dict[int, Connection] = {}
        self.written: list[tuple[int, str, TopicPartition]] = []
        metadata: Any = self
        connect: Any = self.connect
        self.sender = MarkerSender(
            metadata,
            lambda: Peers(cast(Any, self.loop), metadata, connect, "INTERNAL"),
            BACKOFF_MS,
            lambda number: 40 + number,
            self.on_written,
        )

    def broker(self, number: int) -> Any:
        return SimpleNamespace(is_fenced=False, endpoints={"INTERNAL": ("host", number)})

    @property
    def image(self) -> Any:
        partitions = {
            number: SimpleNamespace(leader=leader) for number, leader in self.leaders.items()
        }
        topics = SimpleNamespace(by_name={"t": SimpleNamespace(partitions=partitions)})
        return SimpleNamespace(topics=topics, brokers=self.brokers)

    def connect(self, address: tuple[str, int]) -> Connection:
        made = Connection(address)
        known = self.connections.get(address[1])
        if known is None or known.is_closed:
            self.connections[address[1]] = made
        else:
            self.slow_connections[address[1]] = made
        return made

    def on_written(self, number: int, markers: SendMarkers, partitions: Any) -> None:
        self.written += [(number, markers.transactional_id, each) for each in partitions]

    def send(self, name: str = "a", *partitions: TopicPartition, shard: int = 0) -> None:
        number = sum(map(ord, name))
        markers = SendMarkers(name, number, number, 3, True, 2, partitions or (T0, T1))
        self.sender.send(shard, markers)
        self.loop.advance()

    def wait(self) -> None:
        self.loop.advance(BACKOFF_MS)


def test_each_leader_is_asked_for_its_partitions():
    cluster = Cluster()
    cluster.send(shard=2)
    ((request, _),) = cluster.connections[1].asked
    (marker,) = request.markers
    assert (marker.producer_epoch, marker.transaction_result) == (3, True)
    assert (marker.coordinator_epoch, marker.transaction_version) == (42, 2)
    assert [(each.name, each.partition_indexes) for each in marker.topics] == [("t", [0])]
    cluster.connections[2].answer()
    cluster.connections[1].answer()
    assert cluster.written == [(2, "a", T1), (2, "a", T0)]


def test_many_transactions_go_in_one_request_and_never_too_many():
    cluster = Cluster()
    for number in range(MAX_TRANSACTIONS_PER_REQUEST + 30):
        markers = SendMarkers(f"id-{number}", number, number, 0, True, 2, (T0,))
        cluster.sender.send(0, markers)
    cluster.loop.advance()
    broker = cluster.connections[1]
    assert [len(each.markers) for each, _ in broker.asked] == [MAX_TRANSACTIONS_PER_REQUEST]
    broker.answer()
    assert [len(each.markers) for each, _ in broker.asked] == [30]
    broker.answer()
    assert len(cluster.written) == MAX_TRANSACTIONS_PER_REQUEST + 30


def test_a_request_has_no_more_partitions_than_a_broker_takes(monkeypatch):
    monkeypatch.setattr(marker_sender, "REPLICAS_OF_A_BROKER", 3)
    cluster = Cluster()
    cluster.leaders[1] = 1
    for number, partitions in enumerate(((T0, T1), (T0,), (T1,), (T0, T1))):
        cluster.sender.send(0, SendMarkers(f"id-{number}", number, number, 0, True, 2, partitions))
    cluster.loop.advance()
    broker = cluster.connections[1]
    assert [len(each.markers) for each, _ in broker.asked] == [2]
    broker.answer()
    assert [len(each.markers) for each, _ in broker.asked] == [2]


def test_what_is_refused_is_sent_to_the_leader_of_then():
    cluster = Cluster()
    cluster.send("a", T0)
    cluster.connections[1].answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    cluster.leaders[0] = 2
    assert cluster.written == []
    cluster.wait()
    cluster.connections[2].answer()
    assert cluster.written == [(0, "a", T0)]


def test_a_partition_that_takes_long_keeps_no_other_waiting():
    cluster = Cluster()
    cluster.leaders[1] = 1
    cluster.send("a", T0)
    cluster.connections[1].answer(ErrorCode.REQUEST_TIMED_OUT)
    cluster.wait()
    slow = cluster.slow_connections[1]
    assert len(slow.asked) == 1, "it is asked for again, and nobody answers for long"
    cluster.send("b", T0)
    cluster.send("c", T1)
    (request, _) = cluster.connections[1].asked[0]
    assert [marker.topics[0].partition_indexes for marker in request.markers] == [[1]]
    cluster.connections[1].answer()
    assert cluster.written == [(0, "c", T1)]
    slow.answer()
    slow.answer()
    assert [name for _, name, _ in cluster.written] == ["c", "a", "b"]
    cluster.send("d", T0)
    cluster.connections[1].answer()
    assert not slow.asked, "it is as the others are once more"


def test_a_lost_answer_is_asked_for_again():
    cluster = Cluster()
    cluster.send("a", T0)
    cluster.connections[1].lose()
    cluster.wait()
    cluster.connections[1].answer()
    assert cluster.written == [(0, "a", T0)]


def test_an_answer_that_leaves_a_marker_out_says_nothing_of_it():
    cluster = Cluster()
    cluster.send("a", T0)
    cluster.connections[1].asked.pop(0)[1](WriteTxnMarkersResponse())
    assert cluster.written == []
    cluster.wait()
    assert cluster.connections[1].asked


def test_a_partition_without_a_leader_waits_for_one():
    cluster = Cluster()
    cluster.leaders[0] = -1
    cluster.send("a", T0)
    cluster.wait()
    cluster.leaders[0] = 2
    cluster.loop.advance(2 * BACKOFF_MS)
    cluster.connections[2].answer()
    assert cluster.written == [(0, "a", T0)]


def test_a_pause_grows_until_there_is_news_of_leaders():
    cluster = Cluster()
    cluster.leaders[0] = -1
    cluster.send("a", T0)
    for _ in range(12):
        cluster.loop.advance(MAX_BACKOFF_MS)
    cluster.leaders[0] = 1
    cluster.loop.advance(BACKOFF_MS)
    assert cluster.connections == {}
    cluster.sender.on_metadata_change()
    cluster.wait()
    cluster.connections[1].answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    cluster.loop.advance(2 * BACKOFF_MS)
    cluster.connections[1].answer()
    assert cluster.written == [(0, "a", T0)]
    assert cluster.sender._backoff_ms == BACKOFF_MS


def test_a_partition_that_is_deleted_needs_no_marker():
    cluster = Cluster()
    del cluster.leaders[0]
    cluster.send()
    assert cluster.written == [(0, "a", T0)]
    cluster.connections[2].answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    del cluster.leaders[1]
    cluster.wait()
    assert cluster.written == [(0, "a", T0), (0, "a", T1)]


def test_a_broker_that_is_gone_is_not_waited_for():
    cluster = Cluster()
    cluster.send("a", T0)
    silent = cluster.connections[1]
    cluster.brokers[1].is_fenced = True
    cluster.leaders[0] = 2
    cluster.sender.on_brokers_changed()
    assert silent.is_closed
    cluster.wait()
    cluster.loop.advance()
    cluster.connections[2].answer()
    assert cluster.written == [(0, "a", T0)]


def test_a_shard_that_is_given_up_hears_nothing_of_its_markers():
    cluster = Cluster()
    cluster.send(shard=1)
    cluster.sender.forget(1)
    cluster.connections[1].answer()
    cluster.connections[2].answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    cluster.wait()
    assert cluster.written == []
    assert not cluster.connections[2].asked
    cluster.send(shard=1)
    cluster.connections[1].answer()
    assert cluster.written == [(1, "a", T0)]


def test_what_is_written_is_forgotten():
    cluster = Cluster()
    cluster.send()
    cluster.connections[1].answer()
    cluster.connections[2].answer()
    assert cluster.sender._open == {}
    assert cluster.sender._waiting == {}
