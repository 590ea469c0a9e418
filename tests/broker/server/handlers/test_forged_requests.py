"""A client that claims to be a broker or another client is refused, without any effect."""

from collections.abc import Iterator
from typing import Any

import pytest

from broker.replication.fetch_session import session_cache
from broker.server.apis import SERVED_APIS
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import encode_request, request_class
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from common.kafka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.fuzz.in_process import InProcessNode, answer_to, in_process_node
from tests.fuzz.valid_requests import BROKER, TOPIC

UNKNOWN = ErrorCode.UNKNOWN_LEADER_EPOCH
INTER_BROKER_APIS = sorted(API_VERSION_RANGES.keys() - set(SERVED_APIS))


@pytest.fixture(scope="module")
def node() -> Iterator[InProcessNode]:
    with in_process_node() as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_is_moved(node: InProcessNode) -> Iterator[None]:
    before = state_of(node)
    yield
    assert state_of(node) == before


def state_of(node: InProcessNode) -> list[Any]:
    """Give what a forged request could move."""
    image = node.quorum.image
    broker = node.node._broker
    assert broker is not None
    here = [
        (partition.topic_partition, partition.log.high_watermark, partition.log.log_end_offset)
        for partition in broker.partitions
    ]
    registered = [(known.epoch, known.is_fenced) for known in image.brokers.values()]
    led = [
        (partition.leader, partition.leader_epoch, partition.partition_epoch, partition.isr)
        for topic in image.topics.by_name.values()
        for partition in topic.partitions.values()
    ]
    return [here, registered, led, node.quorum.node.leader_epoch]


def ask(node: InProcessNode, request: Message, version: int) -> Any:
    frame = encode_request(request.__api_key__, version, 1, "forger", request)[4:]
    return answer_to(frame, node.send(BROKER, frame))


def fetch_request(node: InProcessNode, version: int, **more: Any) -> FetchRequest:
    epoch = more.pop("leader_epoch", -1)
    wanted = FetchPartition(partition=0, current_leader_epoch=epoch, partition_max_bytes=1000)
    topic = FetchTopic(topic=TOPIC, partitions=[wanted])
    if version >= 13:
        topic = FetchTopic(topic_id=node.world.topic_id, partitions=[wanted])
    return FetchRequest(max_wait_ms=0, topics=[topic], **more)


@pytest.mark.parametrize("replica_id", [1, 2, 2**31 - 1])
@pytest.mark.parametrize("version", [12, 14, 15, 17])
def test_who_is_no_replica_fetches_nothing_as_one(
    node: InProcessNode, version: int, replica_id: int
) -> None:
    who: dict[str, Any] = {"replica_id": replica_id}
    if version >= 15:
        who = {"replica_state": ReplicaState(replica_id=replica_id, replica_epoch=1 << 40)}
    (topic,) = ask(node, fetch_request(node, version, **who), version).responses
    assert (topic.partitions[0].error_code, topic.partitions[0].records) == (UNKNOWN, b"")


def epochs_told(node: InProcessNode, leader_epoch: int) -> list[int]:
    """Ask in every way for a partition in a leader epoch; give the errors."""
    fetch = fetch_request(node, 12, leader_epoch=leader_epoch)
    offsets = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=TOPIC,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=0, current_leader_epoch=leader_epoch, timestamp=-1
                    )
                ],
            )
        ],
    )
    ends = OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderTopic(
                topic=TOPIC,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=0, current_leader_epoch=leader_epoch, leader_epoch=0
                    )
                ],
            )
        ]
    )
    return [
        ask(node, fetch, 12).responses[0].partitions[0].error_code,
        ask(node, offsets, 7).topics[0].partitions[0].error_code,
        ask(node, ends, 4).topics[0].partitions[0].error_code,
    ]


@pytest.mark.parametrize(
    ("leader_epoch", "code"),
    [
        (-1, 0),
        (0, 0),
        (1, UNKNOWN),
        (2**31 - 1, UNKNOWN),
        (-2, ErrorCode.FENCED_LEADER_EPOCH),
        (-(2**31), ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_a_leader_epoch_that_is_not_is_refused(
    node: InProcessNode, leader_epoch: int, code: int
) -> None:
    assert epochs_told(node, leader_epoch) == [code] * 3


@pytest.mark.parametrize("api_key", INTER_BROKER_APIS)
def test_what_brokers_and_controllers_ask_is_not_served_to_clients(
    node: InProcessNode, api_key: ApiKey
) -> None:
    message = request_class(api_key)()
    frame = encode_request(api_key, API_VERSION_RANGES[api_key].max, 1, "forger", message)[4:]
    assert node.send(BROKER, frame) == []


def test_they_are_all_that_could_move_something() -> None:
    assert {
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.VOTE,
    } <= set(INTER_BROKER_APIS)


def open_session(node: InProcessNode) -> int:
    return int(ask(node, fetch_request(node, 12, session_epoch=0), 12).session_id)


@pytest.mark.parametrize(
    ("session", "epoch", "code"),
    [
        (1, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (None, 7, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (None, -5, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ],
)
def test_a_fetch_session_that_was_guessed_is_refused(
    node: InProcessNode, session: int | None, epoch: int, code: int
) -> None:
    session_id = open_session(node)
    guessed = fetch_request(node, 12, session_id=session or session_id, session_epoch=epoch)
    assert ask(node, guessed, 12).error_code == code
    own = fetch_request(node, 12, session_id=session_id, session_epoch=1)
    assert ask(node, own, 12).error_code == 0


def test_another_hosts_session_is_not_found_and_goes_on(
    node: InProcessNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = open_session(node)
    acceptor = node._listeners[BROKER].acceptor
    connect = acceptor.connect
    with monkeypatch.context() as patched:
        patched.setattr(acceptor, "connect", lambda taken, host: connect(taken, "10.0.0.9"))
        for epoch in (1, 0, -1):
            stolen = fetch_request(node, 12, session_id=session_id, session_epoch=epoch)
            code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND if epoch == 1 else ErrorCode.NONE
            assert ask(node, stolen, 12).error_code == code
    own = fetch_request(node, 12, session_id=session_id, session_epoch=1)
    assert ask(node, own, 12).error_code == 0


def test_of_a_thousand_sessions_and_one_more_the_last_goes_without(node: InProcessNode) -> None:
    broker = node.node._broker
    assert broker is not None
    while len(broker.fetch_sessions) < session_cache.SLOTS:
        assert open_session(node) > 0
    full = fetch_request(node, 12, session_epoch=0)
    answer = ask(node, full, 12)
    assert (answer.session_id, answer.error_code) == (0, 0)
    assert answer.responses[0].partitions[0].error_code == 0
    # A replica's session is worth a consumer's place, but not that of who only says he is one.
    forged = fetch_request(
        node, 15, session_epoch=0, replica_state=ReplicaState(replica_id=2, replica_epoch=1)
    )
    assert ask(node, forged, 15).session_id == 0
    assert len(broker.fetch_sessions) == session_cache.SLOTS
    assert broker.fetch_sessions.eviction_count == 0
