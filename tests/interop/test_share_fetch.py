"""ShareFetch and ShareAcknowledge at a real broker, by members that speak the protocol themselves.

The states are initialised as the group coordinator does it, so no membership is needed.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen
from uuid import uuid4

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from broker.errors import ErrorCode
from broker.protocol.messages.share_fetch import ShareFetchResponse
from broker.records.batch import split_batches
from millrace.testing import LocalBroker
from tests.lib.share_member import ShareMember, acquired, errors, initialize, topic_id_of

pytestmark = pytest.mark.interop

LOCK_MS = 1_000
ACCEPT, RELEASE, REJECT, RENEW = [1], [2], [3], [4]


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    settings = {
        "group.share.min.record.lock.duration.ms": LOCK_MS,
        "group.share.record.lock.duration.ms": LOCK_MS,
        "group.share.max.share.sessions": 20,
    }
    with LocalBroker(num_partitions=2, **settings) as started:
        yield started


def produce(broker: LocalBroker, topic: str, count: int, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
    for number in range(count):
        producer.produce(topic, f"{number}".encode(), partition=partition)
    assert producer.flush(30) == 0


@pytest.fixture
def group(broker: LocalBroker) -> "Iterator[Group]":
    with Group(broker) as made:
        yield made


class Group:
    """A share group with a topic of its own; its members are closed at the end."""

    def __init__(self, broker: LocalBroker) -> None:
        self.broker = broker
        self.name = f"group-{uuid4()}"
        self.topic = f"topic-{uuid4()}"
        produce(broker, self.topic, 10)
        self.topic_id = topic_id_of(broker.bootstrap_servers, self.topic)
        initialize(broker.bootstrap_servers, self.name, self.topic_id, 2, start_offset=0)
        self.members: list[ShareMember] = []

    def member(self, member_id: str | None = None) -> ShareMember:
        member = ShareMember(self.broker.bootstrap_servers, self.name, self.topic_id, member_id)
        self.members.append(member)
        return member

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, *error: object) -> None:
        for member in self.members:
            member.close()


def values(response: ShareFetchResponse) -> list[bytes]:
    """The values of the records that were sent, of all partitions."""
    return [
        bytes(record.value or b"")
        for topic in response.responses
        for each in topic.partitions
        for batch in split_batches(bytes(each.records))
        for record in batch.records()
    ]


# --- acquire and acknowledge ---


def test_records_are_acquired_acknowledged_and_not_delivered_again(group: Group) -> None:
    member = group.member()
    first = member.fetch([0, 1])
    assert acquired(first) == {0: [(0, 9, 1)]}
    assert values(first) == [f"{number}".encode() for number in range(10)]
    assert errors(first) == [(0, 0, 0), (1, 0, 0)]  # The first answer has every partition.
    assert first.acquisition_lock_timeout_ms == LOCK_MS
    second = member.fetch(acknowledged={0: [(0, 9, ACCEPT)]}, max_wait_ms=0)
    assert errors(second) == [(0, 0, 0)]  # Only what was acknowledged.
    assert acquired(second) == {}
    third = member.fetch(max_wait_ms=LOCK_MS + 500)
    assert third.responses == []


def test_released_records_go_to_another_member_with_a_higher_count(group: Group) -> None:
    one, two = group.member(), group.member()
    one.fetch([0])
    assert acquired(two.fetch([0], max_wait_ms=0)) == {}
    assert errors(one.acknowledge({0: [(0, 9, RELEASE)]})) == [(0, 0)]
    assert acquired(two.fetch()) == {0: [(0, 9, 2)]}


def test_a_fetch_waits_for_records_that_are_produced(group: Group) -> None:
    member = group.member()
    member.fetch([0])
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(member.fetch, max_wait_ms=30_000)
        produce(group.broker, group.topic, 1)
        started = time.monotonic()
        assert acquired(waiting.result()) == {0: [(10, 10, 1)]}
    assert time.monotonic() - started < 10


def test_a_fetch_waits_for_records_that_become_available(group: Group) -> None:
    one, two = group.member(), group.member()
    one.fetch([0])
    two.fetch([0], max_wait_ms=0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(two.fetch, max_wait_ms=30_000)
        assert acquired(waiting.result()) == {0: [(0, 9, 2)]}  # The lock of the other has ended.


def test_a_closed_connection_gives_its_records_back(group: Group) -> None:
    one, two = group.member(), group.member()
    one.fetch([0])
    two.fetch([0], max_wait_ms=0)
    one.close()
    assert acquired(two.fetch(max_wait_ms=LOCK_MS // 2)) == {0: [(0, 9, 2)]}


@pytest.mark.parametrize("way", ["fetch", "acknowledge"])
def test_the_last_request_of_a_session_acknowledges_and_releases_the_rest(
    group: Group, way: str
) -> None:
    one, two = group.member(), group.member()
    one.fetch([0])
    two.fetch([0], max_wait_ms=0)
    if way == "fetch":
        last = one.fetch(acknowledged={0: [(0, 4, ACCEPT)]}, epoch=-1)
        assert acquired(last) == {}
        assert errors(last) == [(0, 0, 0)]
    else:
        assert errors(one.acknowledge({0: [(0, 4, ACCEPT)]}, epoch=-1)) == [(0, 0)]
    assert acquired(two.fetch(max_wait_ms=LOCK_MS // 2)) == {0: [(5, 9, 2)]}
    assert one.fetch(epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_renewal_keeps_the_records(group: Group) -> None:
    one, two = group.member(), group.member()
    one.fetch([0])
    two.fetch([0], max_wait_ms=0)
    for _ in range(3):
        time.sleep(LOCK_MS / 2_000)
        renewed = one.fetch(
            acknowledged={0: [(0, 9, RENEW)]},
            is_renew_ack=True,
            max_records=0,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=0,
        )
        assert errors(renewed) == [(0, 0, 0)]
    assert acquired(two.fetch(max_wait_ms=0)) == {}
    assert errors(one.acknowledge({0: [(0, 9, ACCEPT)]})) == [(0, 0)]


def test_in_record_limit_mode_two_members_share_a_batch(group: Group) -> None:
    one, two = group.member(), group.member()
    assert acquired(one.fetch([0], max_records=4, is_record_limit=True)) == {0: [(0, 3, 1)]}
    assert acquired(two.fetch([0], max_records=4, is_record_limit=True)) == {0: [(4, 7, 1)]}


def test_a_request_that_wants_nothing_acquires_nothing(group: Group) -> None:
    member = group.member()
    assert acquired(member.fetch([0], max_records=0)) == {}
    assert acquired(member.fetch(max_bytes=0)) == {}
    assert acquired(member.fetch()) == {0: [(0, 9, 1)]}


def test_records_that_the_log_has_deleted_are_not_waited_for(group: Group) -> None:
    member = group.member()
    member.fetch([0])
    admin = AdminClient({"bootstrap.servers": group.broker.bootstrap_servers})
    deleted = admin.delete_records([TopicPartition(group.topic, 0, 7)])
    for result in deleted.values():
        result.result()
    assert errors(member.fetch(acknowledged={0: [(0, 4, RELEASE)]}, max_wait_ms=0)) == [(0, 0, 0)]
    assert acquired(member.fetch(max_wait_ms=LOCK_MS * 2)) == {0: [(7, 9, 2)]}


# --- bad input: Kafka's error, and nothing is moved ---


@pytest.mark.parametrize(
    ("batches", "code"),
    [
        ([(0, 20, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(100, 110, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(5, 4, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(0, 5, ACCEPT), (5, 9, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(5, 9, ACCEPT), (0, 4, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(0, 9, [])], ErrorCode.INVALID_REQUEST),
        ([(0, 9, [1, 1])], ErrorCode.INVALID_REQUEST),
        ([(0, 9, [9])], ErrorCode.INVALID_REQUEST),
        ([(0, 9, RENEW)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_invalid_acknowledgements_are_refused(group: Group, batches: list, code: int) -> None:
    member = group.member()
    member.fetch([0])
    assert errors(member.acknowledge({0: batches})) == [(0, code)]
    assert errors(member.fetch(acknowledged={0: batches}, max_wait_ms=0)) == [(0, 0, code)]
    assert errors(member.acknowledge({0: [(0, 9, ACCEPT)]})) == [(0, 0)]


def test_records_of_another_member_are_refused(group: Group) -> None:
    one, two = group.member(), group.member()
    one.fetch([0])
    two.fetch([0], max_wait_ms=0)
    refused = two.acknowledge({0: [(0, 9, ACCEPT)]})
    assert errors(refused) == [(0, ErrorCode.INVALID_RECORD_STATE)]
    assert errors(one.acknowledge({0: [(5, 9, ACCEPT)]})) == [(0, 0)]
    again = one.acknowledge({0: [(5, 9, RELEASE)]})
    assert errors(again) == [(0, ErrorCode.INVALID_RECORD_STATE)]
    assert errors(one.acknowledge({0: [(0, 4, ACCEPT)]})) == [(0, 0)]
    assert errors(one.acknowledge({0: [(0, 9, RELEASE)]})) == [(0, 0)]  # It is below the start.


def test_partitions_that_are_not_read_here_are_refused(group: Group) -> None:
    member = group.member()
    first = member.fetch([0, 7])
    assert sorted(errors(first)) == [(0, 0, 0), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
    refused = member.acknowledge({1: [(0, 0, ACCEPT)]})
    assert errors(refused) == [(1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    member.topic_id = uuid4().bytes
    assert errors(member.acknowledge({0: [(0, 0, ACCEPT)]})) == [(0, ErrorCode.UNKNOWN_TOPIC_ID)]
    unknown = member.fetch([0], max_wait_ms=0)
    assert (0, ErrorCode.UNKNOWN_TOPIC_ID, 0) in errors(unknown)


@pytest.mark.parametrize("epoch", [0, 2, 3, 2**31 - 1, -2])
def test_epochs_that_jump_are_refused(group: Group, epoch: int) -> None:
    member = group.member()
    member.fetch([0])
    refusal = ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge({0: [(0, 9, ACCEPT)]}, epoch=epoch).error_code == refusal
    if epoch:
        assert member.fetch(epoch=epoch).error_code == refusal
    assert errors(member.acknowledge({0: [(0, 9, ACCEPT)]})) == [(0, 0)]


def test_a_session_does_not_begin_with_acknowledgements(group: Group) -> None:
    member = group.member()
    refused = member.fetch(acknowledged={0: [(0, 0, ACCEPT)]})
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert member.acknowledge({}, epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


@pytest.mark.parametrize("member_id", [None, "", "m" * 37])
def test_a_member_needs_an_id(group: Group, member_id: str | None) -> None:
    member = group.member()
    member.member_id = member_id
    assert member.fetch([0]).error_code == ErrorCode.INVALID_REQUEST
    assert member.acknowledge({}, epoch=1).error_code == ErrorCode.INVALID_REQUEST


def test_a_request_needs_a_group(group: Group) -> None:
    member = group.member()
    member.group_id = None
    assert member.fetch([0]).error_code == ErrorCode.INVALID_REQUEST
    assert member.acknowledge({}, epoch=1).error_code == ErrorCode.INVALID_REQUEST


def test_a_renewal_asks_for_no_records(group: Group) -> None:
    member = group.member()
    member.fetch([0])
    refused = member.fetch(acknowledged={0: [(0, 9, RENEW)]}, is_renew_ack=True)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message is not None
    assert "maxRecords must be set to 0" in refused.error_message
    assert errors(member.acknowledge({0: [(0, 9, ACCEPT)]})) == [(0, 0)]


def test_ten_thousand_sessions_get_the_limit_and_the_broker_lives(group: Group) -> None:
    member = group.member()
    codes = set()
    for number in range(10_000):
        member.member_id = f"member-{number}"
        codes.add(member.fetch([0], max_records=0, max_wait_ms=0, epoch=0).error_code)
    assert codes == {ErrorCode.NONE, ErrorCode.SHARE_SESSION_LIMIT_REACHED}
    member.close()  # All of its sessions end.
    other = group.member()
    assert acquired(other.fetch([0], max_wait_ms=5_000)) == {0: [(0, 9, 1)]}


def test_a_group_without_a_state_is_refused(group: Group) -> None:
    member = group.member()
    member.group_id = "never initialised"
    refused = member.fetch([0], max_wait_ms=5_000)
    assert errors(refused) == [(0, ErrorCode.UNKNOWN_SERVER_ERROR, 0)]


def test_the_metrics_page_has_kafkas_names(group: Group) -> None:
    member = group.member()
    member.fetch([0])
    member.acknowledge({0: [(0, 4, ACCEPT)]})
    assert group.broker.http_url is not None
    page = urlopen(f"{group.broker.http_url}/metrics").read().decode()
    labels = f'group="{group.name}",partition="0",topic="{group.topic}"'
    assert f"kafka_server_share_partition_metrics_in_flight_message_count{{{labels}}} 5.0" in page
    for name in (
        'kafka_server_share_group_metrics_record_acknowledgements_total{ack_type="Accept"}',
        "kafka_server_share_session_cache_share_sessions_count 1.0",
        f'kafka_server_broker_topic_metrics_total_share_fetch_requests_total{{topic="{group.topic}"}}',
    ):
        assert name in page, name
