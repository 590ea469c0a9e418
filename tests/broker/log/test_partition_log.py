"""One partition's log: rolling, reading, times, epochs, transactions, retention, reopening."""

import logging
from random import Random

import pytest

from broker.log.append import AppendOrigin
from broker.log.config import LogConfig
from broker.log.log_start import OpenHints
from broker.log.partition_log import PartitionLog
from broker.log.recovery import DamagedLog
from broker.log.storage import FileRegion, RealStorage
from broker.records.batch import split_batches
from broker.records.build import build_batch
from broker.records.control import EndMarker, build_end_marker
from broker.records.errors import CorruptBatch
from common.kafka.errors import ErrorCode, KafkaError
from tests.lib.bad_batches import with_payload
from tests.lib.logs import (
    DIRECTORY,
    NOW_MS,
    joined,
    log_bytes,
    open_log,
    read_batches,
    read_records,
    reopen,
)
from tests.lib.simulated_storage import SimulatedFile, SimulatedStorage

HOUR_MS = 3_600_000


def new_log(**settings: object) -> PartitionLog:
    return open_log(SimulatedStorage(), LogConfig(**settings))  # type: ignore[arg-type]


def append(
    log: PartitionLog, *values: bytes, timestamp_ms: int = NOW_MS, epoch: int = 0, **fields: object
) -> int:
    records = [(None, value, (), timestamp_ms) for value in values or (b"value",)]
    batch = build_batch(records, **fields)  # type: ignore[arg-type]
    info = log.append_as_leader(batch, leader_epoch=epoch, timestamp_ms=NOW_MS)
    log.advance_high_watermark(log.log_end_offset)
    return info.base_offset


def end_transaction(log: PartitionLog, producer_id: int, *, is_commit: bool, epoch: int = 0) -> int:
    marker = build_end_marker(producer_id, epoch, EndMarker(is_commit, 0), NOW_MS)
    info = log.append_as_leader(
        marker, leader_epoch=0, timestamp_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    log.advance_high_watermark(log.log_end_offset)
    return info.base_offset


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


# Rolling.


def test_segments_roll_by_size() -> None:
    log = new_log(internal_segment_bytes=250)
    for _ in range(6):
        append(log, bytes(40))
    assert bases(log) == [0, 2, 4]
    assert [x.size_bytes <= 250 for x in log.segments] == [True] * 3


def test_segments_roll_by_age_of_their_records() -> None:
    log = new_log(segment_ms=1000)
    for late_ms in (0, 1000, 1001, 1500):
        append(log, timestamp_ms=NOW_MS - 5000 + late_ms)
    assert bases(log) == [0, 2]


def test_segments_roll_by_the_clock_when_records_have_no_time() -> None:
    log = new_log(segment_ms=1000)
    for clock_ms in (NOW_MS, NOW_MS + 1000, NOW_MS + 1001):
        batch = build_batch([(None, b"v", (), -1)])
        log.append_as_leader(batch, leader_epoch=0, timestamp_ms=clock_ms)
    assert bases(log) == [0, 2]


def test_jitter_takes_time_off_and_never_more_than_asked() -> None:
    log = new_log(segment_ms=10_000, segment_jitter_ms=5_000, internal_segment_bytes=100)
    for _ in range(30):
        append(log)
    spread = {segment.jitter_ms for segment in log.segments}
    assert len(spread) > 10
    assert all(0 <= jitter_ms < 5_000 for jitter_ms in spread)


def test_segments_roll_when_an_index_is_full() -> None:
    log = new_log(index_interval_bytes=0, segment_index_bytes=40)
    for n in range(12):
        append(log, timestamp_ms=NOW_MS + n)
    assert len(bases(log)) > 1
    assert all(x.time_index.size_bytes <= 40 for x in log.segments)


def test_segments_roll_before_relative_offsets_overflow() -> None:
    log = new_log()
    record = (b"k", b"v", (), NOW_MS)
    log.append_as_follower(build_batch([record], base_offset=5))
    log.append_as_follower(build_batch([record], base_offset=2**31 - 1))
    log.append_as_follower(build_batch([record], base_offset=2**31 + 1))
    assert bases(log) == [0, 2**31]
    assert [r.offset for r in read_records(log)] == [5, 2**31 - 1, 2**31 + 1]


# Reading.


def test_reads_end_on_a_batch_and_the_first_is_whole() -> None:
    log = new_log(index_interval_bytes=100)
    for n in range(40):
        append(log, b"%02d" % n * 20)
    size = next(split_batches(log_bytes(log))).header.size_bytes
    for offset in range(40):
        for max_bytes in (1, size - 1, size, size + 1, 3 * size, 7 * size - 1, 100 * size):
            found = log.read(offset, max_bytes=max_bytes, max_offset=40)
            batches = list(split_batches(joined(found.parts)))
            assert batches[0].base_offset == offset
            expected = min(max(1, max_bytes // size), 40 - offset)
            assert len(batches) == expected, (offset, max_bytes)
            assert found.size_bytes == expected * size


def test_without_the_minimum_a_batch_that_does_not_fit_is_left_out() -> None:
    log = new_log()
    append(log)
    assert log.read(0, max_bytes=10, max_offset=1, minimum_one_batch=False).parts == []


def test_reads_never_pass_the_maximum_offset() -> None:
    log = new_log(internal_segment_bytes=250)
    for _ in range(9):
        append(log, bytes(40))
    for max_offset in range(10):
        found = log.read(0, max_bytes=9999, max_offset=max_offset)
        ends = [batch.next_offset for batch in split_batches(joined(found.parts))]
        assert ends == list(range(1, min(max_offset, 2) + 1))


def test_reads_out_of_range_are_refused_and_at_the_end_are_empty() -> None:
    log = new_log()
    append(log)
    assert log.read(1, max_bytes=99, max_offset=1).parts == []
    for offset in (-1, 2):
        with pytest.raises(KafkaError) as refusal:
            log.read(offset, max_bytes=99, max_offset=1)
        assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_large_reads_are_regions_and_outlive_their_segment(tmp_path) -> None:  # type: ignore[no-untyped-def]
    storage = RealStorage()
    log = open_log(storage, LogConfig(retention_bytes=0), directory=f"{tmp_path}/topic-0")
    for _ in range(4):
        append(log, bytes(40_000))
    (part,) = log.read(0, max_bytes=1_000_000, max_offset=4).parts
    assert isinstance(part, FileRegion)
    before = part.read()
    log.delete_old_segments(NOW_MS)
    log.place.deletion.remove_due(NOW_MS + 60_000)
    assert part.fileno() > 0
    assert part.read() == before


def test_damage_met_by_a_reader_is_its_own_refusal() -> None:
    log = new_log()
    for _ in range(3):
        append(log)
    log.segments.active.cursors.clear()
    log.segments.active.file.write(16, b"\x07")
    with pytest.raises(KafkaError) as refusal:
        log.read(1, max_bytes=99, max_offset=3)
    assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE


def test_offsets_in_gaps_lead_to_the_next_batch() -> None:
    log = new_log()
    for offset in (3, 10, 20):
        log.append_as_follower(build_batch([(b"k", b"v", (), NOW_MS)], base_offset=offset))
    for asked, found in ((0, 3), (3, 3), (4, 10), (10, 10), (11, 20)):
        read = log.read(asked, max_bytes=1, max_offset=21)
        assert next(split_batches(joined(read.parts))).base_offset == found


# Times.


def test_offsets_for_times() -> None:
    log = new_log(internal_segment_bytes=400, index_interval_bytes=0)
    stamps = [100, 105, 103, 110, 110, 108, 120, 90, 130]
    for n, stamp in enumerate(stamps):
        append(log, bytes(20), timestamp_ms=stamp, compression=n % 5)
    for asked in range(85, 131):
        expected = next(n for n, stamp in enumerate(stamps) if stamp >= asked)
        found = log.offset_for_timestamp(asked)
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (expected, stamps[expected]), asked
    assert log.offset_for_timestamp(131) is None
    latest = log.max_timestamp()
    assert latest is not None
    assert (latest.offset, latest.timestamp_ms, latest.leader_epoch) == (8, 130, 0)
    log.delete_records_before(4)
    found = log.offset_for_timestamp(110)
    assert found is not None
    assert found.offset == 4


def test_a_batch_that_nobody_can_read_is_passed_by_in_a_look_up() -> None:
    log = new_log()
    append(log, timestamp_ms=100)
    lie = with_payload(b"\x0e" * 8000, 900)
    origin = AppendOrigin.COORDINATOR  # From a client it would be refused.
    log.append_as_leader(lie, leader_epoch=0, timestamp_ms=NOW_MS, origin=origin)
    append(log, timestamp_ms=NOW_MS + 5)
    found = log.offset_for_timestamp(101)
    assert found is not None
    assert found.offset == log.log_end_offset - 1


def test_times_in_an_empty_log() -> None:
    log = new_log()
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp() is None


# Leader epochs.


def test_end_offsets_of_epochs() -> None:
    log = new_log()
    assert log.end_offset_for_epoch(0) == (-1, -1)
    for epoch in (1, 1, 3, 5):
        append(log, epoch=epoch)
    assert log.leader_epoch == 5
    assert [log.end_offset_for_epoch(epoch) for epoch in range(-1, 7)] == [
        (-1, -1),
        (0, 0),
        (1, 2),
        (1, 2),
        (3, 3),
        (3, 3),
        (5, 4),
        (-1, -1),
    ]
    log.truncate_to(3)
    assert log.leader_epoch == 3
    again = reopen(log.place.storage, log)
    assert again.epochs.entries == log.epochs.entries


def test_an_epoch_without_records_goes_when_the_log_is_cut_at_its_end() -> None:
    # It led epoch 4 and wrote nothing. Another leader does not know that epoch and says where to
    # cut; as long as the log goes on to say that it ends in epoch 4, it says so again.
    log = new_log()
    append(log, epoch=3)
    log.become_leader(4)

    assert log.truncate_to(log.log_end_offset) == 1

    assert log.leader_epoch == 3
    assert log.end_offset_for_epoch(3) == (3, 1)


def test_followers_take_epochs_from_batches_and_refuse_bad_ones() -> None:
    leader, follower = new_log(), new_log()
    for epoch in (1, 2, 2, 4):
        append(leader, epoch=epoch)
    data = log_bytes(leader)
    info = follower.append_as_follower(data + data[:20])
    assert (info.base_offset, info.last_offset) == (0, 3)
    assert log_bytes(follower) == data
    assert follower.epochs.entries == leader.epochs.entries
    with pytest.raises(CorruptBatch):
        follower.append_as_follower(data)
    with pytest.raises(CorruptBatch):
        follower.append_as_follower(build_batch([(b"k", b"v", (), 1)], base_offset=9)[:-1] + b"?")
    assert follower.log_end_offset == 4


# Transactions.


def test_the_last_stable_offset_waits_for_the_oldest_transaction() -> None:
    log = new_log()
    transaction = {"producer_epoch": 0, "is_transactional": True}
    append(log)
    append(log, producer_id=1, base_sequence=0, **transaction)
    append(log, producer_id=2, base_sequence=0, **transaction)
    assert (log.high_watermark, log.last_stable_offset) == (3, 1)
    end_transaction(log, 1, is_commit=False)
    assert log.last_stable_offset == 2
    append(log, producer_id=1, base_sequence=1, **transaction)
    end_transaction(log, 2, is_commit=True)
    assert (log.high_watermark, log.last_stable_offset) == (6, 4)
    end_transaction(log, 1, is_commit=False)
    assert log.last_stable_offset == log.log_end_offset == 7
    read = log.read(0, max_bytes=9999, max_offset=7, with_aborted_transactions=True)
    assert [x[:3] for x in read.aborted_transactions] == [(1, 1, 3), (1, 4, 6)]
    late = log.read(5, max_bytes=9999, max_offset=7, with_aborted_transactions=True)
    assert [x[:3] for x in late.aborted_transactions] == [(1, 4, 6)]


def test_a_marker_above_the_high_watermark_holds_the_last_stable_offset() -> None:
    log = new_log()
    append(log, producer_id=1, base_sequence=0, producer_epoch=0, is_transactional=True)
    marker = build_end_marker(1, 0, EndMarker(True, 0), NOW_MS)
    origin = AppendOrigin.COORDINATOR
    log.append_as_leader(marker, leader_epoch=0, timestamp_ms=NOW_MS, origin=origin)
    assert (log.high_watermark, log.last_stable_offset) == (1, 0)
    log.advance_high_watermark(2)
    assert log.last_stable_offset == 2


def test_markers_fence_and_are_fenced() -> None:
    log = new_log()
    append(log, producer_id=1, base_sequence=0, producer_epoch=3, is_transactional=True)
    with pytest.raises(KafkaError) as refusal:
        end_transaction(log, 1, is_commit=True, epoch=2)
    assert refusal.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    end_transaction(log, 1, is_commit=True, epoch=4)
    with pytest.raises(KafkaError) as refusal:
        append(log, producer_id=1, base_sequence=1, producer_epoch=3)
    assert refusal.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    append(log, producer_id=1, base_sequence=0, producer_epoch=4)


def test_a_plain_write_in_an_open_transaction_is_refused() -> None:
    log = new_log()
    append(log, producer_id=1, base_sequence=0, producer_epoch=0, is_transactional=True)
    with pytest.raises(KafkaError) as refusal:
        append(log, producer_id=1, base_sequence=1, producer_epoch=0)
    assert refusal.value.code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("with_roll", [True, False])
def test_transactions_and_producers_come_back(is_clean: bool, with_roll: bool) -> None:
    log = new_log()
    transaction = {"producer_epoch": 0, "is_transactional": True}
    append(log, producer_id=1, base_sequence=0, **transaction)
    append(log, producer_id=2, base_sequence=0, **transaction)
    end_transaction(log, 1, is_commit=False)
    if with_roll:
        log.roll(NOW_MS)
    append(log, producer_id=3, base_sequence=0, producer_epoch=0)
    if is_clean:
        log.close()
    again = reopen(log.place.storage, log, is_clean=is_clean)
    assert (again.last_stable_offset, again.log_end_offset) == (1, 4)
    read = again.read(0, max_bytes=999, max_offset=4, with_aborted_transactions=True)
    assert [x[:3] for x in read.aborted_transactions] == [(1, 0, 2)]
    repeat = build_batch(
        [(None, b"value", (), NOW_MS)], producer_id=3, base_sequence=0, producer_epoch=0
    )
    assert again.append_as_leader(repeat, leader_epoch=0, timestamp_ms=NOW_MS).is_duplicate
    end_transaction(again, 2, is_commit=True)
    assert again.last_stable_offset == 5


def test_silent_producers_expire() -> None:
    log = new_log()
    append(log, producer_id=1, base_sequence=0, producer_epoch=0)
    append(log, producer_id=2, base_sequence=0, producer_epoch=0, is_transactional=True)
    day_ms = 24 * HOUR_MS
    assert log.producers.expire(NOW_MS + day_ms - 1) == 0
    assert log.producers.expire(NOW_MS + day_ms) == 1
    assert list(log.producers.producers) == [2], "an open transaction keeps its producer"


# Retention and deletion.


def filled(**settings: object) -> PartitionLog:
    log = new_log(internal_segment_bytes=250, **settings)
    for n in range(10):
        append(log, bytes(40), timestamp_ms=NOW_MS - 10_000 + n * 1000)
    assert bases(log) == [0, 2, 4, 6, 8]
    return log


def test_retention_by_time() -> None:
    log = filled(retention_ms=6000)
    assert log.delete_old_segments(NOW_MS) == 2
    assert (bases(log), log.log_start_offset) == ([4, 6, 8], 4)


def test_retention_by_size_keeps_at_least_the_limit() -> None:
    log = filled(retention_ms=-1)
    segment_bytes = log.segments.first.size_bytes
    log.update_config(
        LogConfig(
            retention_bytes=3 * segment_bytes - 1, retention_ms=-1, internal_segment_bytes=250
        )
    )
    assert log.delete_old_segments(NOW_MS) == 2
    assert bases(log) == [4, 6, 8]


def test_retention_may_take_everything_but_nothing_uncommitted() -> None:
    log = filled(retention_ms=1)
    log.high_watermark = 5
    assert log.delete_old_segments(NOW_MS + HOUR_MS) == 2
    assert log.log_start_offset == 4
    log.advance_high_watermark(10)
    assert log.delete_old_segments(NOW_MS + HOUR_MS) == 3
    assert (bases(log), log.log_start_offset, log.log_end_offset) == ([10], 10, 10)
    assert append(log) == 10
    again = reopen(log.place.storage, log)
    assert (again.log_start_offset, again.log_end_offset) == (10, 11)


def test_a_compacted_topic_is_not_deleted_by_time() -> None:
    log = filled(retention_ms=1, cleanup_policy=())
    assert log.delete_old_segments(NOW_MS + HOUR_MS) == 0


def test_deleted_files_wait_and_then_go() -> None:
    log = filled(retention_ms=6000, file_delete_delay_ms=500)
    log.delete_old_segments(NOW_MS)
    storage = log.place.storage
    assert f"{0:020d}.log.deleted" in storage.names(DIRECTORY)
    assert log.place.deletion.next_due_ms() == NOW_MS + 500
    log.place.deletion.remove_due(NOW_MS + 499)
    assert f"{0:020d}.log.deleted" in storage.names(DIRECTORY)
    log.place.deletion.remove_due(NOW_MS + 500)
    assert not [name for name in storage.names(DIRECTORY) if "deleted" in name]


def test_delete_records_moves_the_start_and_drops_what_is_below() -> None:
    log = filled(retention_ms=-1)
    assert log.delete_records_before(5) == 5
    assert [r.offset for r in read_records(log)] == [5, 6, 7, 8, 9]
    with pytest.raises(KafkaError) as refusal:
        log.read(4, max_bytes=1, max_offset=10)
    assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.delete_old_segments(NOW_MS) == 2
    assert bases(log) == [4, 6, 8]
    with pytest.raises(KafkaError) as refusal:
        log.delete_records_before(11)
    assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.delete_records_before(-1) == 10
    assert log.delete_records_before(3) == 10, "never backwards"
    again = reopen(log.place.storage, log)
    assert (again.log_start_offset, again.log_end_offset) == (10, 10)


# Flushing.


def test_flush_messages_flushes_by_itself() -> None:
    log = new_log(flush_messages=3)
    append(log, b"a", b"b")
    assert log.recovery_point == 0
    append(log, b"c")
    assert (log.recovery_point, log.unflushed_records) == (3, 0)


def test_a_flush_in_a_thread_reaches_what_it_saw() -> None:
    log = new_log()
    append(log)
    work = log.prepare_flush()
    append(log)
    work.run()
    log.finish_flush(work)
    assert (log.recovery_point, log.unflushed_records) == (1, 1)


# Reopening.


def test_a_torn_tail_is_cut_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    log = new_log()
    for _ in range(3):
        append(log, bytes(100))
    whole = log_bytes(log)
    size = len(whole) // 3
    file = log.segments.active.file
    for torn_at in (2 * size + 1, 2 * size + 60, 3 * size - 1):
        file.truncate(torn_at)
        with caplog.at_level(logging.WARNING):
            again = open_log(log.place.storage)
        assert again.log_end_offset == 2
        assert f"offset=2 bytes={torn_at - 2 * size}" in caplog.text
        assert log_bytes(again) == whole[: 2 * size]
        again.segments.active.file.write(2 * size, whole[2 * size :])


def test_zeros_at_the_end_are_cut() -> None:
    log = new_log()
    append(log)
    log.segments.active.file.write(log.size_bytes, bytes(5000))
    assert open_log(log.place.storage).log_end_offset == 1


def test_damage_below_the_recovery_point_is_named() -> None:
    log = new_log()
    for _ in range(3):
        append(log, bytes(100))
    log.flush()
    size = log.size_bytes // 3
    log.segments.active.file.write(size + 70, b"!")
    with pytest.raises(DamagedLog, match=rf"{0:020d}.log is damaged at byte {size}, offset 1"):
        reopen(log.place.storage, log)


def test_synced_records_that_are_missing_are_named(caplog: pytest.LogCaptureFixture) -> None:
    log = new_log()
    for _ in range(3):
        append(log, bytes(100))
    log.flush()
    log.segments.active.file.truncate(log.size_bytes // 3)
    again = reopen(log.place.storage, log)
    assert (again.log_end_offset, again.recovery_point) == (1, 1)
    assert "log_end_offset=1 recovery_point=3" in caplog.text


def test_after_a_clean_stop_nothing_is_read_but_the_tail() -> None:
    log = filled(retention_ms=-1)
    log.close()
    storage = log.place.storage
    assert isinstance(storage, SimulatedStorage)
    before = storage.calls
    again = reopen(storage, log, is_clean=True)
    assert storage.calls - before < 30
    assert again.log_end_offset == 10
    assert log_bytes(again) == log_bytes(log)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", [None, b"", b"123", bytes(24), b"\xff" * 24])
def test_indexes_that_are_missing_or_wrong_are_rebuilt(suffix: str, damage: bytes | None) -> None:
    log = new_log(internal_segment_bytes=2000, index_interval_bytes=100)
    for n in range(60):
        append(log, bytes(40), timestamp_ms=NOW_MS + n)
    log.close()
    storage, whole = log.place.storage, log_bytes(log)
    for segment in log.segments:
        path = segment.path(suffix)
        storage.remove(path)
        if damage is not None:
            storage.open(path, create=True).write(0, damage)
    again = reopen(storage, log, is_clean=True)
    assert log_bytes(again) == whole
    for n in range(60):
        found = again.offset_for_timestamp(NOW_MS + n)
        assert found is not None
        assert found.offset == n
        assert read_batches(again)[n].base_offset == n


def test_the_start_beyond_the_end_begins_an_empty_log_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = new_log()
    append(log)
    size_bytes = log.size_bytes
    hints = OpenHints(log_start_offset=7, high_watermark=9, timestamp_ms=NOW_MS)
    again = open_log(log.place.storage, hints=hints)
    assert (again.log_start_offset, again.log_end_offset) == (7, 7)
    assert append(again) == 7
    assert f"log_start_offset=7 log_end_offset=1 bytes={size_bytes}" in caplog.text


def test_a_start_that_nobody_deleted_up_to_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    """The start is never beyond the high watermark, so such a checkpoint is damaged."""
    log = new_log()
    append(log)
    hints = OpenHints(log_start_offset=7, high_watermark=1, timestamp_ms=NOW_MS)
    again = open_log(log.place.storage, hints=hints)
    assert (again.log_start_offset, again.log_end_offset) == (0, 1)
    assert "log-start-offset-checkpoint is ignored directory=/logs/topic-0 offset=7" in caplog.text


def test_progress_is_told_in_bytes() -> None:
    log = filled(retention_ms=-1)
    seen: list[int] = []
    open_log(log.place.storage, hints=OpenHints(on_progress=seen.append))
    assert sum(seen) == log.size_bytes


def test_only_what_has_producers_is_read_twice() -> None:
    log = filled(retention_ms=-1)
    append(log, producer_id=7, producer_epoch=0, base_sequence=0)
    seen: list[int] = []
    again = open_log(log.place.storage, hints=OpenHints(on_progress=seen.append))
    assert 0 < log.segments.active.size_bytes < log.size_bytes
    assert sum(seen) == log.size_bytes + log.segments.active.size_bytes
    assert set(again.producers.producers) == {7}


def test_truncation_to_every_offset() -> None:
    for target in range(11):
        log = filled(retention_ms=-1)
        assert log.truncate_to(target) == target
        assert [r.offset for r in read_records(log)] == list(range(target))
        assert append(log) == target
        again = reopen(log.place.storage, log)
        assert [r.offset for r in read_records(again)] == list(range(target + 1))


def state_of(log: PartitionLog) -> tuple[object, ...]:
    """What a log knows of its active segment and its producers."""
    active = log.segments.active
    return (
        active.size_bytes,
        active.next_offset,
        active.max_timestamp_ms,
        active.max_timestamp_offset,
        active.first_timestamp_ms,
        list(active.offset_index.positions),
        list(active.offset_index.relative_offsets),
        list(active.time_index.timestamps),
        list(active.time_index.relative_offsets),
        log.producers.producers,
    )


@pytest.mark.parametrize("seed", range(8))
def test_a_truncated_log_knows_what_it_would_read_from_its_file(seed: int) -> None:
    random = Random(seed)
    storage = SimulatedStorage()
    log = open_log(storage, LogConfig(index_interval_bytes=300))
    for number in range(120):
        producer: dict[str, int] = {}
        if not random.randrange(4):
            producer = {"producer_id": 1, "producer_epoch": number, "base_sequence": 0}
        records = [(None, bytes(random.randrange(90)), (), NOW_MS + random.randrange(500))]
        log.append_as_leader(build_batch(records, **producer), leader_epoch=0, timestamp_ms=NOW_MS)
    log.advance_high_watermark(random.randrange(60))
    while log.log_end_offset > 5:
        log.truncate_to(log.log_end_offset - random.randrange(1, 12))
        kept = state_of(log)
        storage.crash(keep_unsynced=True)
        log = reopen(storage, log)
        assert kept == state_of(log)


def test_truncating_a_little_reads_a_little(monkeypatch: pytest.MonkeyPatch) -> None:
    log = new_log()
    for _ in range(3000):
        log.append_as_leader(
            build_batch([(None, b"v", (), NOW_MS)]), leader_epoch=0, timestamp_ms=NOW_MS
        )
    log.advance_high_watermark(2990)
    read_bytes = []
    read = SimulatedFile.read

    def counted(file: SimulatedFile, position: int, length: int) -> bytes:
        read_bytes.append(length)
        return read(file, position, length)

    monkeypatch.setattr(SimulatedFile, "read", counted)
    assert log.truncate_to(2995) == 2995
    assert sum(read_bytes) < log.size_bytes / 4
    assert log.log_end_offset == 2995


def test_truncate_fully_starts_anew() -> None:
    log = filled(retention_ms=-1)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (100, 100, 100)
    assert append(log) == 100
    assert [r.offset for r in read_records(reopen(log.place.storage, log))] == [100]


def batch_from(base_offset: int, count: int) -> bytes:
    """Give a leader's batch."""
    records = [(b"%d" % number, b"", (), NOW_MS) for number in range(count)]
    return build_batch(records, base_offset=base_offset, leader_epoch=3)


def test_a_follower_that_begins_within_a_batch_takes_it_whole() -> None:
    log = new_log()
    log.truncate_fully_and_start_at(12)
    log.append_as_follower(batch_from(10, 5) + batch_from(15, 2))
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (12, 12, 17)
    assert bases(log) == [10]
    assert log.end_offset_for_epoch(3) == (3, 17)
    log.advance_high_watermark(17)
    assert [record.offset for record in read_records(log)][-5:] == [12, 13, 14, 15, 16]
    log.flush()
    assert reopen(log.place.storage, log).log_end_offset == 17


def test_a_follower_takes_no_damaged_batch_to_begin_within() -> None:
    log = new_log()
    log.truncate_fully_and_start_at(12)
    damaged = bytearray(batch_from(10, 5))
    damaged[-1] ^= 1
    for refused in (bytes(damaged), batch_from(10, 2)):
        with pytest.raises(CorruptBatch):
            log.append_as_follower(refused)
        assert (log.log_start_offset, log.log_end_offset) == (12, 12)
