"""Topics, partitions and offsets are brought into a state, and explained."""

import os

import confluent_kafka
import pytest

from tests.lib.coordinator_requests import Asks
from tests.lib.explained import GIVE_UP_SECONDS, Explained
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop


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
    kafka.produce(name)
    found = kafka.topic(name)
    assert not found.problems
    assert "partition-min-isr-above-replicas" in found.codes


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


def test_a_record_that_unpacks_to_too_much(kafka: Explained, name: str) -> None:
    kafka.create(name)
    bomb = bytes(80 << 20) + os.urandom(8_000)
    settings = {"compression.type": "gzip", "message.max.bytes": 100_000_000}
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, **settings})
    producer.produce(name, bomb, partition=0)
    assert producer.flush(GIVE_UP_SECONDS) == 0
    kafka.produce(name)
    (problem,) = kafka.topic(name, 0, 0).problems
    assert problem.code == "record-unreadable"
    assert "unpack to more than 67,108,864" in problem.sentence
    assert "record-readable" in kafka.topic(name, 0, 1).codes


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
