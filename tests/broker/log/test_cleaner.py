"""Compaction: what stays, what goes, and that nothing else changes."""

from collections.abc import Sequence

import pytest

from broker.log.append import AppendOrigin
from broker.log.cleaner.offset_map import ENTRY_BYTES
from broker.log.cleaner.run import (
    CleaningAborted,
    CleaningLimits,
    CleaningRun,
    clean,
    replace_segments,
)
from broker.log.cleaner.schedule import choose_dirtiest, measure
from broker.log.config import LogConfig
from broker.log.partition_log import PartitionLog
from broker.model import TopicPartition
from broker.records.batch import split_batches
from broker.records.build import build_batch
from broker.records.control import EndMarker, build_end_marker
from broker.records.record import Record
from tests.lib.logs import NOW_MS, log_bytes, open_log, read_records, reopen
from tests.lib.simulated_storage import SimulatedStorage

COMPACT = LogConfig(cleanup_policy=("compact",), internal_segment_bytes=400)
DAY_MS = 86_400_000


def compacted_log(config: LogConfig = COMPACT) -> PartitionLog:
    return open_log(SimulatedStorage(), config)


def append(log: PartitionLog, key: bytes, value: bytes | None, **fields: int | bool) -> int:
    batch = build_batch([(key, value, (), NOW_MS)], **fields)
    info = log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS)
    log.advance_high_watermark(log.log_end_offset)
    return info.base_offset


def end_transaction(log: PartitionLog, producer_id: int, *, is_commit: bool) -> int:
    marker = build_end_marker(producer_id, 0, EndMarker(is_commit, 0), NOW_MS)
    info = log.append_as_leader(
        marker, leader_epoch=0, timestamp_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    log.advance_high_watermark(log.log_end_offset)
    return info.base_offset


def compact(
    log: PartitionLog, timestamp_ms: int = NOW_MS, limits: CleaningLimits | None = None
) -> CleaningRun:
    """Roll, so that everything may be cleaned, and do one round."""
    if log.segments.active.size_bytes:
        log.roll(timestamp_ms)
    return clean(measure(log, timestamp_ms), timestamp_ms, limits or CleaningLimits())


def pairs(records: Sequence[Record]) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records]


def test_the_worked_example_of_kafkas_documentation() -> None:
    offsets = [13, 17, *range(19, 29)]
    keys = ["K1", "K5", "K2", "K7", "K8", "K4", "K1", "K1", "K1", "K9", "K8", "K2"]
    values = ["V5", "V2", "V7", "V1", "V4", "V6", "V1", "V2", "V9", "V6", "V22", "V25"]
    log = compacted_log()
    for offset, key, value in zip(offsets, keys, values, strict=True):
        record = (key.encode(), value.encode(), (), NOW_MS)
        log.append_as_follower(build_batch([record], base_offset=offset, leader_epoch=0))
    log.advance_high_watermark(log.log_end_offset)
    compact(log)
    assert [(r.offset, r.key, r.value) for r in read_records(log)] == [
        (17, b"K5", b"V2"),
        (20, b"K7", b"V1"),
        (22, b"K4", b"V6"),
        (25, b"K1", b"V9"),
        (26, b"K9", b"V6"),
        (27, b"K8", b"V22"),
        (28, b"K2", b"V25"),
    ]
    assert log.log_end_offset == 29


def test_a_batch_is_thinned_and_keeps_its_offsets_and_epoch() -> None:
    log = compacted_log()
    records = [(b"k%d" % (n % 3), b"v%d" % n, [("h", b"x")], NOW_MS + n) for n in range(9)]
    log.append_as_leader(build_batch(records, compression=4), leader_epoch=5, timestamp_ms=NOW_MS)
    log.advance_high_watermark(9)
    compact(log)
    (batch,) = split_batches(log_bytes(log))
    assert (batch.base_offset, batch.last_offset, batch.header.record_count) == (0, 8, 3)
    assert batch.has_valid_crc
    assert batch.header.partition_leader_epoch == 5
    assert batch.header.codec == 4
    assert [r.offset for r in batch.records()] == [6, 7, 8]
    assert [r.timestamp_ms for r in batch.records()] == [NOW_MS + n for n in (6, 7, 8)]


def test_the_active_segment_and_open_transactions_are_never_touched() -> None:
    log = compacted_log()
    append(log, b"k", b"1")
    append(log, b"k", b"2")
    assert measure(log, NOW_MS).end_offset == 0
    assert not measure(log, NOW_MS).is_worth_cleaning
    append(log, b"k", b"3", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    append(log, b"k", b"4")
    log.roll(NOW_MS)
    assert measure(log, NOW_MS).end_offset == 0
    end_transaction(log, 1, is_commit=True)
    compact(log)
    assert next(r.value for r in read_records(log)) == b"4"


def test_tombstones_stay_for_delete_retention_and_then_go() -> None:
    log = compacted_log()
    append(log, b"gone", b"1")
    append(log, b"gone", None)
    append(log, b"kept", b"1")
    compact(log)
    assert pairs(read_records(log)) == [(1, b"gone", None), (2, b"kept", b"1")]
    first = next(iter(split_batches(log_bytes(log))))
    assert first.header.delete_horizon_ms == NOW_MS + DAY_MS
    assert [r.timestamp_ms for r in first.records()] == [NOW_MS]
    append(log, b"other", b"1")
    compact(log, NOW_MS + DAY_MS - 1)
    assert (1, b"gone", None) in pairs(read_records(log))
    append(log, b"other", b"2")
    compact(log, NOW_MS + DAY_MS)
    assert pairs(read_records(log)) == [(2, b"kept", b"1"), (4, b"other", b"2")]


def test_aborted_data_goes_and_committed_data_counts() -> None:
    log = compacted_log()
    append(log, b"k", b"before")
    open_transaction = {"producer_epoch": 0, "is_transactional": True}
    append(log, b"k", b"aborted", producer_id=1, base_sequence=0, **open_transaction)
    append(log, b"c", b"committed", producer_id=2, base_sequence=0, **open_transaction)
    end_transaction(log, 1, is_commit=False)
    end_transaction(log, 2, is_commit=True)
    compact(log)
    assert pairs(read_records(log)) == [(0, b"k", b"before"), (2, b"c", b"committed")]
    # The aborted batch is gone but for its header: producer 1 still lives.
    headers = [batch.header for batch in split_batches(log_bytes(log))]
    assert [(h.base_offset, h.record_count, h.is_control) for h in headers] == [
        (0, 1, False),
        (1, 0, False),
        (2, 1, False),
        (3, 1, True),
        (4, 1, True),
    ]


def test_a_marker_goes_after_its_horizon_once_its_data_is_gone() -> None:
    log = compacted_log()
    append(log, b"k", b"1", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    marker_offset = end_transaction(log, 1, is_commit=True)
    append(log, b"k", b"2")
    log.producers.producers.clear()
    for later_ms in (0, 1, DAY_MS + 1, DAY_MS + 2):
        append(log, b"filler", b"x")
        compact(log, NOW_MS + later_ms)
    offsets = [batch.base_offset for batch in split_batches(log_bytes(log))]
    assert marker_offset not in offsets


def test_an_abort_marker_that_stays_keeps_its_index_entry() -> None:
    log = compacted_log()
    append(log, b"k", b"1", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    end_transaction(log, 1, is_commit=False)
    append(log, b"z", b"2")
    compact(log)
    read = log.read(0, max_bytes=9999, max_offset=3, with_aborted_transactions=True)
    assert [(x.producer_id, x.first_offset) for x in read.aborted_transactions] == [(1, 0)]


def test_a_full_map_cleans_in_several_rounds() -> None:
    log = compacted_log()
    for value in range(4):
        for key in range(20):
            append(log, b"key-%d" % key, b"%d" % value)
    limits = CleaningLimits(memory_bytes=ENTRY_BYTES * 8)
    rounds = 0
    log.roll(NOW_MS)
    while (dirty := measure(log, NOW_MS)).end_offset > dirty.first_dirty_offset:
        before = log.first_dirty_offset
        run = clean(dirty, NOW_MS, limits)
        assert len(run.offset_map) <= 8
        assert log.first_dirty_offset > before
        rounds += 1
    assert rounds > 1
    last = {record.key: record.value for record in read_records(log)}
    assert last == {b"key-%d" % key: b"3" for key in range(20)}


def test_min_compaction_lag_keeps_young_records() -> None:
    log = compacted_log(
        LogConfig(
            cleanup_policy=("compact",), internal_segment_bytes=400, min_compaction_lag_ms=1000
        )
    )
    append(log, b"k", b"1")
    append(log, b"k", b"2")
    log.roll(NOW_MS)
    assert measure(log, NOW_MS + 999).end_offset == 0
    assert measure(log, NOW_MS + 1001).end_offset == 2


def test_max_compaction_lag_makes_a_clean_enough_log_overdue() -> None:
    config = LogConfig(
        cleanup_policy=("compact",),
        internal_segment_bytes=400,
        max_compaction_lag_ms=1000,
        min_cleanable_dirty_ratio=1.0,
    )
    log = compacted_log(config)
    append(log, b"k", b"1")
    log.roll(NOW_MS)
    assert choose_dirtiest([log], set(), NOW_MS + 500) is None
    chosen = choose_dirtiest([log], set(), NOW_MS + 1500)
    assert chosen is not None
    assert chosen.is_overdue
    assert choose_dirtiest([log], {TopicPartition("topic", 0)}, NOW_MS + 1500) is None


def test_readers_and_the_appender_go_on_while_a_round_runs() -> None:
    log = compacted_log()
    for n in range(30):
        append(log, b"k%d" % (n % 4), b"%d" % n)
    log.roll(NOW_MS)
    old_region = log.segments.first.slice(0, log.segments.first.size_bytes)
    old_bytes = old_region.read()
    run = CleaningRun(measure(log, NOW_MS), NOW_MS, CleaningLimits())
    run.build_offset_map()
    append(log, b"k0", b"new")
    replacement = run.clean_next_group()
    assert replacement is not None
    append(log, b"k1", b"newer")
    assert len(read_records(log)) == 32
    assert replace_segments(log, replacement, NOW_MS)
    log.place.deletion.remove_due(NOW_MS + DAY_MS)
    assert old_region.read() == old_bytes
    assert {r.key: r.value for r in read_records(log)}[b"k1"] == b"newer"


def test_a_round_on_segments_that_are_gone_changes_nothing() -> None:
    log = compacted_log()
    for n in range(30):
        append(log, b"k%d" % (n % 4), b"%d" % n)
    log.roll(NOW_MS)
    run = CleaningRun(measure(log, NOW_MS), NOW_MS, CleaningLimits())
    run.build_offset_map()
    replacement = run.clean_next_group()
    assert replacement is not None
    log.truncate_to(3)
    assert not replace_segments(log, replacement, NOW_MS)
    assert [r.offset for r in read_records(log)] == [0, 1, 2]


@pytest.mark.parametrize("synced_only", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_crash_at_every_step_of_the_swap_loses_nothing(synced_only: bool) -> None:
    step = 0
    while True:
        storage = SimulatedStorage()
        log = open_log(storage, COMPACT)
        for n in range(24):
            append(log, b"k%d" % (n % 5), b"%d" % n)
        log.roll(NOW_MS)
        log.flush()
        expected = {r.key: r.value for r in read_records(log)}
        dirty = measure(log, NOW_MS)
        storage.fail_after(step)
        try:
            clean(dirty, NOW_MS, CleaningLimits())
            finished = True
        except OSError:
            finished = False
        storage.crash(keep_unsynced=not synced_only)
        again = reopen(storage, log)
        assert {r.key: r.value for r in read_records(again)} == expected, step
        assert again.log_end_offset == 24
        assert not [name for name in storage.names(log.directory) if name.endswith(".cleaned")]
        if finished:
            return
        step += 1


@pytest.mark.parametrize("place", [8, 65, 70, 75])
def test_a_log_that_cannot_be_read_is_left_alone(
    place: int, caplog: pytest.LogCaptureFixture
) -> None:
    log = compacted_log()
    for n in range(9):
        append(log, b"k", b"%d" % n)
    log.roll(NOW_MS)
    log.segments.first.file.write(place, b"??")
    before = log.segments.first.file.read(0, 999)
    with pytest.raises(CleaningAborted):
        clean(measure(log, NOW_MS), NOW_MS, CleaningLimits())
    assert "partition=topic-0" in caplog.text
    assert choose_dirtiest([log], set(), NOW_MS) is None
    assert log.segments.first.file.read(0, 999) == before


def test_a_round_may_be_stopped() -> None:
    log = compacted_log()
    for n in range(9):
        append(log, b"k", b"%d" % n)
    log.roll(NOW_MS)
    with pytest.raises(CleaningAborted):
        clean(measure(log, NOW_MS), NOW_MS, CleaningLimits(should_stop=lambda: True))
    assert choose_dirtiest([log], set(), NOW_MS) is not None


def test_the_throttle_hears_of_every_byte() -> None:
    log = compacted_log()
    for n in range(9):
        append(log, b"k%d" % n, b"v")
    log.roll(NOW_MS)
    size = log.size_bytes
    heard: list[int] = []
    run = clean(measure(log, NOW_MS), NOW_MS, CleaningLimits(throttle=heard.append))
    assert (run.bytes_read, run.bytes_written) == (2 * size, size)
    assert sum(heard) == 3 * size
