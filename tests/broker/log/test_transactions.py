"""Transactions in one partition's log: what may be appended, and what readers are told."""

import pytest

from broker.log.append import AppendOrigin
from broker.log.config import LogConfig
from broker.log.log_start import OpenHints
from broker.log.partition_log import PartitionLog
from broker.log.producers.verification import NO_GUARD, TransactionAppend
from broker.records.build import build_batch
from broker.records.control import EndMarker, build_end_marker
from common.kafka.errors import ErrorCode, KafkaError
from tests.lib.logs import NOW_MS, open_log
from tests.lib.simulated_storage import SimulatedStorage


def verifying_log() -> PartitionLog:
    log = open_log(SimulatedStorage(), LogConfig())
    log.producers.requires_verification = True
    return log


def write(  # type: ignore[no-untyped-def]
    log: PartitionLog, sequence: int, guard: int = NO_GUARD, *, epoch: int = 0, **fields
) -> int:
    fields = {"producer_id": 1, "is_transactional": True, **fields}
    batch = build_batch(
        [(None, b"value", (), NOW_MS)], producer_epoch=epoch, base_sequence=sequence, **fields
    )
    info = log.append_as_leader(
        batch, leader_epoch=0, timestamp_ms=NOW_MS, transaction=TransactionAppend(guard)
    )
    log.advance_high_watermark(log.log_end_offset)
    return info.base_offset


def end(log: PartitionLog, *, epoch: int = 0, coordinator_epoch: int = 0, version: int = 0) -> int:
    marker = build_end_marker(1, epoch, EndMarker(False, coordinator_epoch), NOW_MS)
    info = log.append_as_leader(
        marker,
        leader_epoch=0,
        timestamp_ms=NOW_MS,
        origin=AppendOrigin.COORDINATOR,
        transaction=TransactionAppend(transaction_version=version),
    )
    log.advance_high_watermark(log.log_end_offset)
    return info.base_offset


def begin(log: PartitionLog, sequence: int = 0, *, epoch: int = 0, raises: bool = False) -> int:
    return log.producers.begin_verification(
        1, epoch, sequence, timestamp_ms=NOW_MS, raises_epochs=raises
    )


def refusal_of(act, *args, **kwargs) -> ErrorCode:  # type: ignore[no-untyped-def]
    with pytest.raises(KafkaError) as refused:
        act(*args, **kwargs)
    return refused.value.code


def test_the_first_batch_of_a_transaction_needs_a_guard_and_the_others_do_not() -> None:
    log = verifying_log()
    assert refusal_of(write, log, 0) == ErrorCode.INVALID_TXN_STATE
    guard = begin(log)
    write(log, 0, guard)
    assert begin(log, 1) == NO_GUARD, "it is open"
    write(log, 1)
    end(log)
    assert refusal_of(write, log, 2) == ErrorCode.INVALID_TXN_STATE


def test_a_marker_takes_a_guard_out_of_force() -> None:
    """A batch that waited for the coordinator's word while its transaction was aborted."""
    log = verifying_log()
    guard = begin(log)
    end(log)
    assert refusal_of(write, log, 0, guard) == ErrorCode.INVALID_TXN_STATE
    other = begin(log)
    assert other != guard, "the word about the former transaction says nothing of this one"
    assert refusal_of(write, log, 0, guard) == ErrorCode.INVALID_TXN_STATE
    write(log, 0, other)


def test_a_repeat_of_what_is_in_the_log_needs_no_guard() -> None:
    log = verifying_log()
    first = write(log, 0, begin(log))
    end(log)
    assert write(log, 0) == first


def test_a_batch_that_overtook_the_first_one_waits_for_it() -> None:
    log = verifying_log()
    guard = begin(log, 5)
    assert begin(log, 3) == guard
    assert refusal_of(write, log, 5, guard) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log, 3, guard)


def test_a_producer_with_an_epoch_for_each_transaction_begins_at_zero() -> None:
    log = verifying_log()
    guard = begin(log, 5, raises=True)
    assert refusal_of(write, log, 5, guard) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log, 0, begin(log, 0, raises=True))


def test_a_higher_epoch_begins_its_own_order_of_sequences() -> None:
    log = verifying_log()
    begin(log, 0)
    guard = begin(log, 4, epoch=1)
    write(log, 4, guard, epoch=1)


def test_an_open_transaction_of_another_epoch_is_another_transaction() -> None:
    log = verifying_log()
    write(log, 0, begin(log))
    assert refusal_of(write, log, 0, epoch=1) == ErrorCode.INVALID_TXN_STATE


def test_the_coordinator_of_a_group_needs_a_guard_too() -> None:
    log = verifying_log()
    offsets = build_batch(
        [(b"k", b"v", (), NOW_MS)], producer_id=1, producer_epoch=0, is_transactional=True
    )

    def commit(guard: int) -> None:
        log.append_as_leader(
            offsets,
            leader_epoch=0,
            timestamp_ms=NOW_MS,
            origin=AppendOrigin.COORDINATOR,
            transaction=TransactionAppend(guard),
        )

    assert refusal_of(commit, NO_GUARD) == ErrorCode.INVALID_TXN_STATE
    commit(begin(log, -1))
    commit(NO_GUARD)


def test_a_late_marker_does_not_end_the_transaction_that_has_begun_since() -> None:
    log = open_log(SimulatedStorage(), LogConfig())
    write(log, 0)
    end(log, epoch=1, version=2)
    write(log, 0, epoch=1)
    assert refusal_of(end, log, epoch=1, version=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.last_stable_offset == 2
    end(log, epoch=2, version=2)
    assert log.last_stable_offset == log.log_end_offset == 4


def test_a_marker_may_be_repeated_while_nothing_is_open() -> None:
    log = open_log(SimulatedStorage(), LogConfig())
    write(log, 0)
    end(log, epoch=1, version=2)
    end(log, epoch=1, version=2)
    assert log.last_stable_offset == log.log_end_offset == 3


def test_before_version_two_a_marker_has_the_epoch_of_its_records() -> None:
    log = open_log(SimulatedStorage(), LogConfig())
    write(log, 0)
    end(log, epoch=0, version=1)
    assert log.last_stable_offset == 2


def test_a_former_coordinator_is_fenced() -> None:
    log = open_log(SimulatedStorage(), LogConfig())
    end(log, coordinator_epoch=4)
    refused = refusal_of(end, log, coordinator_epoch=3)
    assert refused == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_guards_are_forgotten_with_their_producers() -> None:
    log = verifying_log()
    guard = begin(log)
    log.producers.expire(NOW_MS + 24 * 3_600_000)
    assert refusal_of(write, log, 0, guard) == ErrorCode.INVALID_TXN_STATE


def test_after_a_restart_a_marker_above_the_high_watermark_still_holds_readers_back() -> None:
    """The snapshot of a rolled segment says that the transaction is over, not since when."""
    log = open_log(SimulatedStorage(), LogConfig())
    write(log, 0)
    end(log)
    write(log, 1)
    marker = build_end_marker(1, 0, EndMarker(True, 0), NOW_MS)
    origin = AppendOrigin.COORDINATOR
    log.append_as_leader(marker, leader_epoch=0, timestamp_ms=NOW_MS, origin=origin)
    log.close()
    hints = OpenHints(is_clean=True, recovery_point=4, high_watermark=3, timestamp_ms=NOW_MS)
    again = open_log(log.place.storage, log.config, hints)
    assert (again.high_watermark, again.last_stable_offset) == (3, 2)
    again.advance_high_watermark(4)
    assert again.last_stable_offset == 4


def test_a_cut_does_not_hold_readers_back_for_what_has_ended() -> None:
    log = open_log(SimulatedStorage(), LogConfig())
    write(log, 0)
    end(log)
    write(log, 1, is_transactional=False)
    log.truncate_to(2)
    assert log.last_stable_offset == log.high_watermark == 2


@pytest.mark.parametrize("high_watermark", [0, 4, 5])
def test_no_producer_is_forgotten_for_what_was_deleted(high_watermark: int) -> None:
    """Of a high watermark that is below the snapshot, or lost, the records below it are gone."""
    log = open_log(SimulatedStorage(), LogConfig())
    write(log, 0, producer_id=2, is_transactional=False)
    write(log, 0)
    end(log)
    write(log, 0, producer_id=3, is_transactional=False)
    log.delete_records_before(4)
    write(log, 1)
    known = log.producers.producers
    log.close()
    hints = OpenHints(True, log.recovery_point, log.log_start_offset, high_watermark, NOW_MS)
    again = open_log(log.place.storage, log.config, hints)
    assert again.log_start_offset == 4
    assert last_sequences(again) == {number: entry.last_sequence for number, entry in known.items()}
    assert again.producers.ongoing == log.producers.ongoing == {4: 1}
    assert write(again, 0, producer_id=3, is_transactional=False) == 3, "a repeat of what is there"


def test_a_cut_and_a_kill_forget_no_producer_for_what_was_deleted() -> None:
    log = open_log(SimulatedStorage(), LogConfig())
    write(log, 0, producer_id=2, is_transactional=False)
    write(log, 0)
    log.delete_records_before(2)
    log.save_names()
    append_above_the_high_watermark(log)
    log.truncate_to(2)
    assert last_sequences(log) == {1: 0, 2: 0}
    assert log.last_stable_offset == 2
    hints = OpenHints(False, log.recovery_point, log.log_start_offset, 2, NOW_MS)
    again = open_log(log.place.storage, log.config, hints)
    assert again.log_start_offset == 2
    assert last_sequences(again) == {1: 0, 2: 0}
    assert again.producers.ongoing == {1: 1}


def test_what_is_open_outlives_a_kill_the_deletion_of_its_segment_and_a_cut() -> None:
    log = open_log(SimulatedStorage(), LogConfig())
    write(log, 0)
    log.roll(NOW_MS)
    log.flush()
    hints = OpenHints(False, 0, 0, log.high_watermark, NOW_MS)
    again = open_log(log.place.storage, log.config, hints)
    again.delete_records_before(1)
    assert again.delete_old_segments(NOW_MS) == 1
    append_above_the_high_watermark(again)
    again.truncate_to(1)
    assert again.producers.ongoing == {0: 1}
    assert again.last_stable_offset == 1


def test_of_what_has_ended_only_the_segment_of_the_high_watermark_is_read() -> None:
    log = open_log(SimulatedStorage(), LogConfig())
    for sequence in range(3):
        write(log, sequence)
        end(log)
        log.roll(NOW_MS)
    write(log, 3)
    end(log)
    log.close()
    read_bytes: list[int] = []
    hints = OpenHints(True, log.recovery_point, 0, 7, NOW_MS, read_bytes.append)
    again = open_log(log.place.storage, log.config, hints)
    assert again.last_stable_offset == 6
    assert sum(read_bytes) == log.segments.active.size_bytes


def append_above_the_high_watermark(log: PartitionLog) -> None:
    log.append_as_leader(
        build_batch([(None, b"value", (), NOW_MS)]), leader_epoch=0, timestamp_ms=NOW_MS
    )


def last_sequences(log: PartitionLog) -> dict[int, int]:
    return {number: entry.last_sequence for number, entry in log.producers.producers.items()}
