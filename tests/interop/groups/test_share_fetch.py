"""ShareFetch and ShareAcknowledge at a real broker, by members that speak the protocol themselves.

The states are initialised as the group coordinator does it, so no membership is needed.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from millstream.testing import LocalBroker
from tests.lib.raw_kafka import RawConnection
from tests.lib.share_group_of_topic import (
    Group,
    delete_records,
    offset_and_lag,
    produce,
    set_group,
    values,
)
from tests.lib.share_member import acquired, errors, initialize
from tests.lib.waiting import until

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


@pytest.fixture
def group(broker: LocalBroker) -> "Iterator[Group]":
    with Group(broker) as made:
        yield made


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


def test_offsets_that_were_changed_between_two_sessions_are_followed(group: Group) -> None:
    """The group has no session, although the connection is open."""
    member = group.member()
    member.fetch([0])
    member.acknowledge({0: [(0, 9, ACCEPT)]})
    member.fetch(epoch=-1)
    where = group.broker.bootstrap_servers
    initialize(where, group.name, group.topic_id, 2, start_offset=3, state_epoch=2)
    member.epoch = 0
    assert acquired(member.fetch([0])) == {0: [(3, 9, 1)]}


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
    delete_records(group, 7)
    assert errors(member.fetch(acknowledged={0: [(0, 4, RELEASE)]}, max_wait_ms=0)) == [(0, 0, 0)]
    assert acquired(member.fetch(max_wait_ms=LOCK_MS * 2)) == {0: [(7, 9, 2)]}


def test_records_that_the_log_has_deleted_are_no_lag(group: Group) -> None:
    member = group.member()
    member.fetch([0])
    delete_records(group, 10)
    member.fetch(max_wait_ms=0)
    until(lambda: offset_and_lag(group) == (10, 0), shown=lambda: offset_and_lag(group))


# --- bad input: Kafka's error, and nothing is moved ---


@pytest.mark.parametrize(
    ("batches", "code"),
    [
        ([(0, 20, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(100, 110, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(5, 4, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(0, 5, ACCEPT), (5, 9, ACCEPT)], ErrorCode.INVALID_RECORD_STATE),
        ([(0, 5, ACCEPT), (4, 9, ACCEPT)], ErrorCode.INVALID_REQUEST),
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


@pytest.mark.parametrize("mode", [-1, 2, 127])
def test_an_unknown_acquire_mode_is_refused_and_opens_no_session(group: Group, mode: int) -> None:
    member = group.member()
    refused = member.fetch([0], acquire_mode=mode)
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert acquired(member.fetch([0])) == {0: [(0, 9, 1)]}


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
    groups = "kafka_server_sharegroupmetrics_"
    labels = f'group="{group.name}",partition="0",topic="{group.topic}"'
    partitions = "kafka_server_sharepartitionmetrics_"
    assert f"{partitions}inflightmessagecount{{{labels}}} 5.0" in page
    assert f"{partitions}inflightbatchmessagecount_sum{{{labels}}} 10.0" in page
    for name in (
        'kafka_server_sharegroupmetrics_recordacknowledgements_total{ackType="Accept"}',
        f"{partitions}fetchlocktimems_count{{{labels}}} 1.0",
        f"{partitions}fetchlockratio_sum{{{labels}}} 100.0",
        'numdelayedoperations{delayedOperation="ShareFetch"} 0.0',
        "kafka_server_delayedsharefetchmetrics_expires_total",
        "kafka_server_sharesessioncache_sharesessionscount 1.0",
        f'{groups}topicpartitionsacquiretimems_count{{group="{group.name}"}} 1.0',
        f'{groups}requesttopicpartitionsfetchratio_sum{{group="{group.name}"}} 100.0',
        f'kafka_server_brokertopicmetrics_totalsharefetchrequests_total{{topic="{group.topic}"}}',
    ):
        assert name in page, name


def test_a_member_above_its_quota_acknowledges_and_acquires_nothing(group: Group) -> None:
    member = group.member()
    produce(group.broker, group.topic, 3_000, partition=1)
    set_consumer_quota(group.broker, 1_000)
    try:
        first = member.fetch([0, 1])
        assert first.throttle_time_ms > 0
        other = group.member()  # The same client on another connection, which is not muted yet.
        second = other.fetch([0, 1], max_wait_ms=0)
        assert acquired(second) == {}
        assert second.throttle_time_ms > 0
    finally:
        set_consumer_quota(group.broker, None)


# --- transactions ---


def transact(
    broker: LocalBroker,
    topic: str,
    values: list[bytes],
    *,
    is_commit: bool,
    is_batch_each: bool = False,
) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"t-{uuid4()}"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=1)
        if is_batch_each:
            producer.flush(30)
    producer.flush(30)
    if is_commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_records_of_an_aborted_transaction(group: Group, isolation: str) -> None:
    set_group(group, "share.isolation.level", isolation)
    transact(group.broker, group.topic, [b"lost"] * 3, is_commit=False)
    transact(group.broker, group.topic, [b"kept"] * 2, is_commit=True)
    # Offset 3 and 6 have the markers, which are written after the producer is answered.
    consumer = Consumer({"bootstrap.servers": group.broker.bootstrap_servers, "group.id": "ends"})
    until(lambda: consumer.get_watermark_offsets(TopicPartition(group.topic, 1))[1] == 7, 30.0)
    consumer.close()
    member = group.member()
    response = member.fetch([1])
    if isolation == "read_committed":
        assert acquired(response) == {1: [(3, 6, 1)]}
    else:
        assert acquired(response) == {1: [(0, 6, 1)]}
    first = acquired(response)[1][0][0]
    assert errors(member.acknowledge({1: [(first, 6, ACCEPT)]})) == [(1, 0)]
    assert acquired(member.fetch(max_wait_ms=0)) == {}


def test_a_member_does_not_wait_beside_a_long_aborted_transaction(group: Group) -> None:
    set_group(group, "share.isolation.level", "read_committed")
    count, wait_ms = 40, 5_000
    lost = [b"x" * 1_000] * count
    transact(group.broker, group.topic, lost, is_commit=False, is_batch_each=True)
    transact(group.broker, group.topic, [b"kept"], is_commit=True)
    member = group.member()
    began, found = time.monotonic(), member.fetch([1], max_bytes=2_000, max_wait_ms=wait_ms)
    while not acquired(found):
        found = member.fetch(max_bytes=2_000, max_wait_ms=wait_ms)
    assert acquired(found)[1][0][0] == count, "the marker comes after what was aborted"
    assert time.monotonic() - began < wait_ms / 1000, "no fetch waited for its whole time"


def test_an_open_transaction_holds_back_a_group_that_reads_committed(group: Group) -> None:
    set_group(group, "share.isolation.level", "read_committed")
    producer = Producer(
        {"bootstrap.servers": group.broker.bootstrap_servers, "transactional.id": f"t-{uuid4()}"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(group.topic, b"open", partition=1)
    producer.flush(30)
    member = group.member()
    assert acquired(member.fetch([1], max_wait_ms=200)) == {}
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(member.fetch, max_wait_ms=30_000)
        producer.commit_transaction(30)
        assert acquired(waiting.result()) == {1: [(0, 1, 1)]}


# --- settings of a group ---


def set_consumer_quota(broker: LocalBroker, value: float | None) -> None:
    """Set the quota of all clients, or take it away."""
    request = AlterClientQuotasRequest(
        entries=[
            EntryData(
                entity=[EntityData(entity_type="client-id", entity_name=None)],
                ops=[OpData(key="consumer_byte_rate", value=value or 0.0, remove=value is None)],
            )
        ]
    )
    with RawConnection(broker.bootstrap_servers) as connection:
        connection.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, request)


def test_settings_of_a_group_act_at_once(group: Group) -> None:
    member = group.member()
    set_group(group, "share.partition.max.record.locks", "100")
    produce(group.broker, group.topic, 500, partition=1)
    got = acquired(member.fetch([1], is_record_limit=True))
    assert got == {1: [(0, 99, 1)]}
    assert acquired(member.fetch(max_wait_ms=0)) == {}
    set_group(group, "share.partition.max.record.locks", "200")
    assert acquired(member.fetch(is_record_limit=True)) == {1: [(100, 199, 1)]}


@pytest.mark.parametrize(
    ("reset", "first"), [("earliest", 0), ("latest", 10), ("by_duration:PT1H", 0)]
)
def test_a_new_group_begins_where_its_setting_says(group: Group, reset: str, first: int) -> None:
    group.name = f"group-{uuid4()}"
    set_group(group, "share.auto.offset.reset", reset)
    initialize(group.broker.bootstrap_servers, group.name, group.topic_id, 2)
    member = group.member()
    got = acquired(member.fetch([0], max_wait_ms=500))
    assert got == ({0: [(0, 9, 1)]} if first == 0 else {})
    member.fetch(epoch=-1)
    produce(group.broker, group.topic, 1)
    other = group.member()
    got = acquired(other.fetch([0], max_wait_ms=5_000))
    assert got[0][0][0] == first, "the first offset is the same for the next leader"
