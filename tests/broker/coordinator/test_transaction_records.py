"""Records of `__transaction_state`: Kafka's bytes, and damage told from what is of a later kind."""

import pytest

from broker.coordinator.transaction.records import decode_record, transaction_record
from broker.coordinator.transaction.state import TransactionState
from broker.coordinator.transaction.transaction import Transaction
from broker.model import TopicPartition
from common.kafka.protocol.wire import DecodeError

ONGOING = Transaction(
    producer_id=4000,
    previous_producer_id=4000,
    producer_epoch=3,
    timeout_ms=60_000,
    state=TransactionState.ONGOING,
    partitions=frozenset({TopicPartition("t", 1), TopicPartition("t", 0)}),
    start_timestamp_ms=1,
    last_update_timestamp_ms=2,
    client_transaction_version=2,
)


def test_a_record_of_version_1_has_the_tagged_fields():
    key, value = transaction_record("id", ONGOING, 2)
    assert key.hex() == "000000026964"
    assert value is not None
    assert value.hex() == (
        "0001" "0000000000000fa0" "0003" "0000ea60" "01"  # version, id, epoch, timeout, Ongoing
        "02" "0274" "03" "00000000" "00000001" "00"  # one topic with two partitions
        "0000000000000002" "0000000000000001"  # last update, start
        "02" "0008" "0000000000000fa0" "0202" "0002"  # previous id, client's version
    )  # fmt: skip


def test_a_record_of_version_0_leaves_them_out():
    _, value = transaction_record("id", ONGOING, 0)
    assert value is not None
    assert value.hex() == (
        "0000" "0000000000000fa0" "0003" "0000ea60" "01"
        "00000001" "000174" "00000002" "00000000" "00000001"
        "0000000000000002" "0000000000000001"
    )  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
def test_a_record_is_read_as_it_was_written(version):
    assert decode_record(*transaction_record("id", ONGOING, version)) == ("id", ONGOING)
    assert decode_record(*transaction_record("id", None, version)) == ("id", None)


def test_a_key_of_a_later_kind_is_skipped():
    assert decode_record(b"\x00\x01whatever", b"") is None


@pytest.mark.parametrize(
    ("offset", "byte"),
    [(0, 9), (2, 0xFF), (10, 0xFF), (16, 6), (16, 9), (17, 0x7F)],
    ids=["version", "producer id", "epoch", "dead", "status", "partitions"],
)
def test_what_cannot_have_been_written_is_damage(offset, byte):
    key, value = transaction_record("id", ONGOING, 2)
    assert value is not None
    damaged = value[:offset] + bytes([byte]) + value[offset + 1 :]
    with pytest.raises(DecodeError):
        decode_record(key, damaged)


@pytest.mark.parametrize("length", [0, 1, 2, 20])
def test_a_record_that_is_cut_off_is_damage(length):
    key, value = transaction_record("id", ONGOING, 2)
    assert value is not None
    with pytest.raises(DecodeError):
        decode_record(key, value[:length])
    with pytest.raises(DecodeError):
        decode_record(key[:3], value)
