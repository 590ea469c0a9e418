"""States of one broker are made, and named: on ours and on Apache Kafka."""

from collections.abc import Iterator
from uuid import uuid4

import confluent_kafka
import pytest

from millstream.testing import LocalBroker
from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.coordinator_requests import Asks
from tests.lib.explained import GIVE_UP_SECONDS, Explained
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

SETTINGS = {
    # So that a batch opens a transaction that no coordinator knows.
    "transaction.partition.verification.enable": "false",
    "log.cleaner.backoff.ms": "100",
    "auto.create.topics.enable": "false",
}


@pytest.fixture(scope="module", params=["ours", "apache"])
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Explained]:
    if request.param == "ours":
        with LocalBroker(**SETTINGS) as broker:
            yield Explained(broker.bootstrap_servers)
    else:
        with running_node(kafka_libs(), tmp_path_factory.mktemp("apache"), SETTINGS) as bootstrap:
            yield Explained(bootstrap)


@pytest.fixture
def name() -> str:
    """A name for the topic, the group and the transactional id of one test."""
    return f"orders-{uuid4().hex[:8]}"


# --- topics ---


def test_a_topic_that_is_not_there(kafka: Explained, name: str) -> None:
    kafka.create(name)
    found = kafka.topic(name + "s")
    assert "topic-missing" in found.codes
    assert f"Similar: {name}" in found.findings[0].sentence


def test_a_partition_that_is_not_there(kafka: Explained, name: str) -> None:
    kafka.create(name, 2)
    assert "topic-partition-missing" in kafka.topic(name, 2).codes


def test_a_record_that_is_too_large(kafka: Explained, name: str) -> None:
    kafka.create(name, max_message_bytes="2000")
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 2})
    refused: list[confluent_kafka.KafkaError] = []
    producer.produce(name, bytes(3000), on_delivery=lambda error, _: refused.append(error))
    producer.flush(GIVE_UP_SECONDS)
    assert refused[0].name() == "MSG_SIZE_TOO_LARGE"
    assert "topic-record-too-large" in kafka.topic(name, record_bytes=3000).codes
    assert "topic-record-too-large" not in kafka.topic(name, record_bytes=1000).codes


def test_more_in_sync_replicas_are_asked_for_than_there_are(kafka: Explained, name: str) -> None:
    kafka.create(name, min_insync_replicas="2")
    (problem,) = kafka.topic(name).problems
    assert problem.code == "partition-min-isr-above-replicas"


# --- records ---


def test_a_record_that_everybody_can_read(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name, 3)
    kafka.commit(f"early-{name}", {(name, 0): 1})
    kafka.commit(f"late-{name}", {(name, 0): 2})
    found = kafka.topic(name, 0, 1)
    assert not found.problems
    assert found.codes >= {
        *("record-readable", "record-replicas", "record-expires", "partition-in-sync"),
        *("record-read-by", "record-not-read-by"),
    }
    by_code = {one.code: one.figures for one in found.findings}
    assert by_code["record-read-by"]["groups"] == [f"late-{name}"]
    assert by_code["record-not-read-by"]["group"] == f"early-{name}"


def test_a_record_beyond_the_end(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name, 3)
    (problem,) = kafka.topic(name, 0, 7).problems
    assert (problem.code, problem.figures["end"]) == ("record-beyond-end", 3)


def test_a_record_of_an_empty_topic(kafka: Explained, name: str) -> None:
    kafka.create(name)
    assert [one.code for one in kafka.topic(name, 0, 0).problems] == ["record-beyond-end"]


@pytest.mark.parametrize(
    ("policy", "code"),
    [("delete", "record-removed-by-retention"), ("compact", "record-removed")],
)
def test_a_record_that_was_deleted(kafka: Explained, name: str, policy: str, code: str) -> None:
    # A compacted topic refuses DeleteRecords, so it gets the policy afterwards.
    kafka.create(name)
    kafka.produce(name, 3)
    kafka.delete_before(name, 2)
    kafka.alter(name, {"cleanup.policy": policy})
    until(lambda: code in kafka.topic(name, 0, 1).codes)
    assert "record-readable" in kafka.topic(name, 0, 2).codes


def test_a_record_that_is_kept_for_ever(kafka: Explained, name: str) -> None:
    kafka.create(name, retention_ms="-1")
    kafka.produce(name)
    codes = kafka.topic(name, 0, 0).codes
    assert "record-kept" in codes
    assert "record-expires" not in codes


def test_a_record_from_the_future(kafka: Explained, name: str) -> None:
    kafka.create(name, message_timestamp_after_max_ms=str(10**13))
    kafka.produce(name, timestamp=4_000_000_000_000)
    assert "record-from-the-future" in kafka.topic(name, 0, 0).codes


def test_a_record_that_compaction_has_removed(kafka: Explained, name: str) -> None:
    kafka.create(
        name,
        cleanup_policy="compact",
        segment_bytes="1048576",
        min_cleanable_dirty_ratio="0.01",
        segment_ms="100",
    )
    kafka.produce(name, 2, key=b"a")

    def is_gone() -> bool:
        kafka.produce(name, key=b"b")  # A new record closes a segment that is old enough.
        return "record-compacted-away" in kafka.topic(name, 0, 0).codes

    until(is_gone)
    assert not kafka.topic(name, 0, 0).problems


def test_records_of_and_behind_an_open_transaction(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name)
    producer = kafka.transactional(name)
    producer.begin_transaction()
    producer.produce(name, b"mine", partition=0)
    producer.flush(GIVE_UP_SECONDS)
    kafka.produce(name)
    (its_own,), (behind,) = kafka.topic(name, 0, 1).problems, kafka.topic(name, 0, 2).problems
    assert its_own.code == "record-in-open-transaction"
    assert behind.code == "record-behind-open-transaction"
    assert its_own.figures["transaction"] == behind.figures["transaction"] == name
    assert "partition-held-back-by-transaction" in kafka.topic(name).codes
    assert not kafka.topic(name, 0, 0).problems

    producer.abort_transaction(GIVE_UP_SECONDS)
    until(lambda: "record-aborted" in kafka.topic(name, 0, 1).codes)
    marker = kafka.topic(name, 0, 3)
    assert "record-is-marker" in marker.codes
    assert not marker.problems
    assert not kafka.topic(name, 0, 2).problems


def test_a_number_that_no_record_has(kafka: Explained, name: str) -> None:
    """An offset that compaction removed, in a topic that is not compacted since."""
    kafka.create(name, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_ms="100")
    kafka.produce(name, 2, key=b"a")

    def is_gone() -> bool:
        kafka.produce(name, key=b"b")
        return "record-compacted-away" in kafka.topic(name, 0, 0).codes

    until(is_gone)
    kafka.alter(name, {"cleanup.policy": "delete"})
    until(lambda: "record-number-unused" in kafka.topic(name, 0, 0).codes)


def test_a_transaction_that_no_coordinator_knows(kafka: Explained, name: str) -> None:
    kafka.create(name, 2)
    with RawConnection(kafka.bootstrap) as connection:
        asks = Asks(connection)
        assert asks.produce(name, asks.producer_of(name), 9, topic=name) == 0
    (problem,) = kafka.topic(name, 1).problems
    assert problem.code == "partition-transaction-hangs"
    assert f"--topic {name} --partition 1 --start-offset 0" in problem.advice


# --- groups ---


def test_a_group_that_is_not_there(kafka: Explained, name: str) -> None:
    assert [one.code for one in kafka.group(name).problems] == ["group-missing"]


def test_a_group_without_members(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name, 5)
    kafka.commit(name, {(name, 0): 2})
    (problem,) = kafka.group(name).problems
    assert (problem.code, problem.figures["lag"]) == ("group-without-members", 3)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_has_read_everything(kafka: Explained, name: str, protocol: str) -> None:
    kafka.create(name, 2)
    kafka.produce(name, 3)
    kafka.commit(name, {(name, 0): 3, (name, 1): 0})
    with kafka.members(name, [name], group_protocol=protocol):
        found = kafka.group(name)
        assert not found.problems
        assert found.codes >= {"group-state", "group-up-to-date"}


def test_a_group_whose_offsets_are_gone(kafka: Explained, name: str) -> None:
    kafka.create(name, 2)
    kafka.produce(name, 5)
    kafka.delete_before(name, 4)
    kafka.commit(name, {(name, 0): 2, (name, 1): 9})
    codes = kafka.group(name).codes
    assert codes >= {"group-offset-gone", "group-offset-beyond-end"}


def test_a_group_that_has_committed_nothing(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name, 5)
    with kafka.members(name, [name]):
        found = kafka.group(name)
    (notice,) = [one for one in found.findings if one.code == "group-never-committed"]
    assert notice.figures["records"] == 5


def test_a_group_that_stands_still(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name, 5)
    kafka.commit(name, {(name, 0): 2})
    with kafka.members(name, [name], client_id="paused"):
        (problem,) = kafka.group(name).problems
    assert problem.code == "group-stands-still"
    assert problem.figures["waiting"] == 3
    assert "paused" in problem.sentence


def test_members_without_partitions(kafka: Explained, name: str) -> None:
    kafka.create(name)
    with kafka.members(name, [name], 2):
        found = kafka.group(name)
        assert "group-idle-members" in found.codes
        assert not found.problems


def test_a_group_behind_an_open_transaction(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name, 2)
    producer = kafka.transactional(name)
    producer.begin_transaction()
    producer.produce(name, b"mine", partition=0)
    producer.flush(GIVE_UP_SECONDS)
    kafka.commit(name, {(name, 0): 2})
    with kafka.members(name, [name]):
        found = kafka.group(name)
        assert "group-behind-open-transaction" in found.codes
        producer.commit_transaction(GIVE_UP_SECONDS)


def test_only_markers_are_left(kafka: Explained, name: str) -> None:
    kafka.create(name)
    producer = kafka.transactional(name)
    producer.begin_transaction()
    producer.produce(name, b"mine", partition=0)
    producer.commit_transaction(GIVE_UP_SECONDS)
    kafka.commit(name, {(name, 0): 1})
    with kafka.members(name, [name]):
        found = kafka.group(name)
        assert not found.problems
        assert found.codes >= {"group-only-markers-left", "group-up-to-date"}


def test_a_subscription_to_nothing(kafka: Explained, name: str) -> None:
    kafka.create(name)
    # A classic member of librdkafka leaves out what it does not find.
    with kafka.members(name, [name, f"{name}x"], group_protocol="consumer"):
        (problem,) = kafka.group(name).problems
    assert problem.code == "group-subscribed-to-no-topic"
    assert f"Similar: {name}" in problem.sentence
