"""What a transaction is made of and what answers mean, without a broker."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.structs import TopicPartition
from kafka.partitioner.default import murmur2 as kafka_murmur2

from common.kafka.transactions.rules import (
    MAX_BATCH_BYTES,
    ErrorCode,
    Outcome,
    Producer,
    Progress,
    Sequences,
    Step,
    Write,
    by_partition,
    encode,
    outcome_of,
    stages,
    transactional_id_of,
)
from common.processing.outbox import Outgoing

WRITER = Producer("fraud-0", 7, 3)
FIRST, SECOND = TopicPartition("out", 0), TopicPartition("out", 1)
W0, W1 = Write("out", 0), Write("out", 1)


def record(value: bytes = b"v", partition: int | None = None, key: bytes | None = b"k") -> Outgoing:
    return Outgoing("out", key, value, [("h", b"x")], partition)


@pytest.mark.parametrize("code", [10, 48, 59, 120, -1])
def test_any_other_error_aborts(code: int) -> None:
    assert outcome_of(code) is Outcome.ABORTED


def test_member_of_an_old_generation_is_told_from_a_producer_that_was_replaced() -> None:
    assert outcome_of(ErrorCode.ILLEGAL_GENERATION) is Outcome.GENERATION_OVER
    assert outcome_of(ErrorCode.PRODUCER_FENCED) is Outcome.FENCED


def test_batch_that_was_written_already_is_written() -> None:
    assert outcome_of(ErrorCode.DUPLICATE_SEQUENCE_NUMBER) is Outcome.DONE


def test_protocol_2_writes_at_once_and_ends() -> None:
    assert stages([W0, W1], has_offsets=True, protocol=2) == [
        {W0, W1, Step.WRITE_OFFSETS},
        {Step.END},
    ]


def test_protocol_1_says_before_what_it_will_write() -> None:
    assert stages([W0], has_offsets=True, protocol=1) == [
        {Step.ADD_PARTITIONS},
        {Step.ADD_OFFSETS},
        {W0, Step.WRITE_OFFSETS},
        {Step.END},
    ]


def test_offsets_alone_are_a_transaction() -> None:
    assert stages([], has_offsets=True, protocol=1) == [
        {Step.ADD_OFFSETS},
        {Step.WRITE_OFFSETS},
        {Step.END},
    ]


def test_second_batch_of_a_partition_waits_for_the_first() -> None:
    later = Write("out", 0, 1)
    assert stages([later, W0, W1], has_offsets=False, protocol=2) == [
        {W0, W1},
        {later},
        {Step.END},
    ]


def test_records_go_where_their_key_or_their_partition_says() -> None:
    records = [record(b"1"), record(b"2", partition=5), record(b"3"), record(b"4", key=None)]
    shared_out = by_partition(records, {"out": 6})
    assert {p.partition: [one.value for one in found] for p, found in shared_out.items()} == {
        (kafka_murmur2(b"k") & 0x7FFFFFFF) % 6: [b"1", b"3"],
        5: [b"2"],
        0: [b"4"],
    }


def test_sequences_go_on_within_an_epoch_and_begin_again_in_the_next() -> None:
    sequences = Sequences()
    assert [sequences.take(WRITER, FIRST, 3), sequences.take(WRITER, SECOND, 1)] == [0, 0]
    assert sequences.take(WRITER, FIRST, 2) == 3
    assert sequences.take(WRITER._replace(producer_epoch=4), FIRST, 2) == 0
    assert sequences.take(WRITER._replace(producer_id=8, producer_epoch=4), FIRST, 2) == 0


def test_sequences_wrap() -> None:
    sequences = Sequences()
    sequences.take(WRITER, FIRST, (1 << 31) - 1)
    assert sequences.take(WRITER, FIRST, 2) == (1 << 31) - 1
    assert sequences.take(WRITER, FIRST, 1) == 1


def test_batch_carries_the_producer_and_every_record() -> None:
    batches = encode(WRITER, Sequences(), {FIRST: [record(b"1"), record(b"2")]}, 1_700_000_000_000)
    batch = DefaultRecordBatch(batches[W0])
    assert batch.validate_crc()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 3, 0)
    assert batch.is_transactional
    found = [(one.offset, one.timestamp, one.value, tuple(one.headers)) for one in batch]
    assert found == [
        (0, 1_700_000_000_000, b"1", (("h", b"x"),)),
        (1, 1_700_000_000_000, b"2", (("h", b"x"),)),
    ]


def test_many_bytes_are_several_batches_with_sequences_that_go_on() -> None:
    records = [record(b"%d" % n * (MAX_BATCH_BYTES // 3)) for n in range(4)]
    batches = encode(WRITER, Sequences(), {FIRST: records}, 0)
    assert list(batches) == [Write("out", 0, 0), Write("out", 0, 1)]
    assert all(len(data) <= MAX_BATCH_BYTES + 200 for data in batches.values())
    parsed = [DefaultRecordBatch(data) for data in batches.values()]
    assert [batch.base_sequence for batch in parsed] == [0, 2]
    assert [one.value for batch in parsed for one in batch] == [one.value for one in records]


def test_record_larger_than_a_batch_is_a_batch() -> None:
    batches = encode(WRITER, Sequences(), {FIRST: [record(b"x" * 2 * MAX_BATCH_BYTES)]}, 0)
    assert list(batches) == [W0]


def test_stage_follows_when_all_parts_are_answered_well() -> None:
    progress = Progress([{W0, W1}, {Step.END}])
    assert progress.begin_round() == {W0, W1}
    progress.see(W0, ErrorCode.NONE)
    progress.see(W1, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert progress.must_pause
    assert not progress.has_moved
    assert progress.begin_round() == {W1}
    progress.see(W1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert progress.has_moved
    progress.begin_round()
    progress.see(W1, ErrorCode.NONE)
    assert progress.begin_round() == {Step.END}
    assert not progress.must_pause
    assert not progress.is_ended
    progress.see(Step.END, ErrorCode.NONE)
    assert progress.is_ended


def test_each_partition_has_an_id_of_its_own() -> None:
    assert {transactional_id_of("fraud", n) for n in range(3)} == {"fraud-0", "fraud-1", "fraud-2"}
