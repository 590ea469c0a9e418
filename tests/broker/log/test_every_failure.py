"""One day in the life of a partition, with the disk failing at every single call of it.

After each failure the process is killed, or the power goes, and the log opens again with everything
that was flushed and nothing that was not appended.
"""

import errno

import pytest

from broker.log.cleaner.run import CleaningLimits, clean
from broker.log.cleaner.schedule import measure
from broker.log.config import LogConfig
from broker.log.partition_log import PartitionLog
from broker.records.build import build_batch
from tests.lib.logs import NOW_MS, log_bytes, open_log, read_records, reopen
from tests.lib.simulated_storage import SimulatedStorage

CONFIG = LogConfig(cleanup_policy=("compact", "delete"), internal_segment_bytes=400)


class Day:
    """What was appended, and up to where a flush has promised it."""

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.history: dict[int, tuple[bytes, bytes]] = {}
        self.flushed = 0
        self.taken_away: set[int] = set()

    def append(self, key: bytes, value: bytes) -> None:
        log = self.log
        self.history[log.log_end_offset] = (key, value)
        batch = build_batch([(key, value, (), NOW_MS)])
        log.append_as_leader(batch, leader_epoch=1, timestamp_ms=NOW_MS)
        log.advance_high_watermark(log.log_end_offset)

    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.log.log_end_offset

    def live(self) -> None:
        for n in range(9):
            self.append(b"k%d" % (n % 4), b"%d" % n * 30)
        self.flush()
        self.append(b"k7", b"late")
        self.log.truncate_to(9)
        self.append(b"k8", b"later")
        self.log.roll(NOW_MS)
        self.flush()
        self.taken_away |= set(range(5))
        clean(measure(self.log, NOW_MS), NOW_MS, CleaningLimits())
        self.taken_away |= {5}
        self.log.delete_records_before(6)
        self.log.delete_old_segments(NOW_MS)
        self.log.place.deletion.remove_due(NOW_MS + 60_000)
        self.append(b"k9", b"last")
        self.log.close()
        self.flushed = self.log.log_end_offset


def check(day: Day, again: PartitionLog) -> None:
    found = {record.offset: (record.key, record.value) for record in read_records(again)}
    # The truncated record may be there still, if the truncation was what failed.
    allowed = dict(day.history)
    for offset, record in found.items():
        assert record in (allowed.get(offset), (b"k7", b"late")), offset
    for offset in range(day.flushed):
        assert offset in found or offset in day.taken_away, offset


@pytest.mark.parametrize("error", [errno.EIO, pytest.param(errno.ENOSPC, marks=pytest.mark.slow)])
@pytest.mark.parametrize("with_power", [False, True])
def test_the_disk_fails_at_every_call(error: int, with_power: bool) -> None:
    calls = 0
    while True:
        storage = SimulatedStorage(seed=calls)
        day = Day(open_log(storage, CONFIG))
        day.log.has_new_directory = True
        storage.fail_after(calls, error)
        try:
            day.live()
            finished = True
        except OSError:
            finished = False
        storage.crash(keep_unsynced=not with_power)
        storage.make_directory(day.log.directory)
        check(day, reopen(storage, day.log))
        if finished:
            assert calls > 100
            return
        calls += 1


def test_a_tail_torn_at_every_byte_is_cut_to_whole_batches() -> None:
    storage = SimulatedStorage()
    day = Day(open_log(storage, LogConfig()))
    ends = []
    for n in range(4):
        day.append(b"key", b"value %d" % n)
        ends.append(day.log.size_bytes)
    whole = log_bytes(day.log)
    for torn_at in range(len(whole) + 1):
        storage = SimulatedStorage()
        storage.make_directory(day.log.directory)
        storage.open(f"{day.log.directory}/{0:020d}.log", create=True).write(0, whole[:torn_at])
        again = open_log(storage)
        expected = max((end for end in ends if end <= torn_at), default=0)
        assert again.size_bytes == expected
        assert log_bytes(again) == whole[:expected]


def test_a_flipped_bit_ends_the_log_before_its_batch() -> None:
    """But for the leader epoch and for offsets that make sense, which no CRC covers."""
    storage = SimulatedStorage()
    day = Day(open_log(storage, LogConfig()))
    for n in range(3):
        day.append(b"key", b"value %d" % n)
    whole = log_bytes(day.log)
    size = len(whole) // 3
    for place in range(size, 2 * size):
        if 12 <= place - size < 16:
            continue
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        storage = SimulatedStorage()
        storage.make_directory(day.log.directory)
        storage.open(f"{day.log.directory}/{0:020d}.log", create=True).write(0, bytes(damaged))
        # An offset that is too large but makes sense looks like a gap that compaction left.
        assert open_log(storage).log_end_offset == 1 or place - size < 8, place - size
