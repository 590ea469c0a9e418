"""A partition against a plain list, through everything that may happen to it.

The machine drives one partition through `LogDirectories` on a simulated disk. `history` knows every
record that was ever appended at an offset and not truncated; `flushed` is the end of what a flush
promised. After any kill or power failure the log opens, and holds
- nothing but records from the history, in order, each at its offset;
- every record below `flushed`, but for what compaction, retention and DeleteRecords may take;
- after a mere kill, every record.
"""

import os
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from broker.log.cleaner.run import CleaningLimits, clean
from broker.log.cleaner.schedule import measure
from broker.log.config import LogConfig
from broker.log.log_directories import LogDirectories
from broker.log.log_directory import DirectorySettings
from broker.model import TopicPartition
from broker.records.build import build_batch
from broker.records.record import Record
from tests.lib.logs import NOW_MS, read_batches, read_records
from tests.lib.simulated_storage import SimulatedStorage

PARTITION = TopicPartition("topic", 3)
TOPIC_ID = b"0123456789abcdef"
PRODUCER_ID = 77


class PartitionMachine(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 2**32), compact=st.booleans(), index_every=st.integers(0, 200))
    def start(self, seed: int, compact: bool, index_every: int) -> None:
        self.storage = SimulatedStorage(seed)
        self.config = LogConfig(
            cleanup_policy=("compact", "delete") if compact else ("delete",),
            internal_segment_bytes=400,
            index_interval_bytes=index_every,
            retention_ms=-1,
        )
        self.history: dict[int, tuple[bytes | None, bytes | None]] = {}
        self.flushed = 0
        self.deleted_before = 0
        self.cleaned_before = 0
        self.sequence = 0
        self.now_ms = NOW_MS
        self.open()

    def open(self) -> None:
        ids = Random(5)
        owner = DirectorySettings(
            "cluster", 1, lambda topic: self.config, lambda: ids.randbytes(16)
        )
        self.directories = LogDirectories(self.storage, ["/data"], owner)
        self.directories.open(self.now_ms)
        self.log = self.directories.create(PARTITION, TOPIC_ID, self.config)
        self.log.advance_high_watermark(self.log.log_end_offset)

    # What a broker does.

    @rule(
        keys=st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), min_size=1, max_size=4),
        value=st.binary(max_size=60),
        is_tombstone=st.booleans(),
        codec=st.sampled_from([0, 0, 1, 2, 3, 4]),
        epoch=st.integers(0, 1),
    )
    def append(
        self, keys: list[bytes], value: bytes, is_tombstone: bool, codec: int, epoch: int
    ) -> None:
        content = None if is_tombstone else value
        self.now_ms += 1
        batch = build_batch(
            [(key, content, (), self.now_ms) for key in keys],
            compression=codec,
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            base_sequence=self.sequence,
        )
        base_offset = self.log.log_end_offset
        for offset, key in enumerate(keys, base_offset):
            self.history[offset] = (key, content)
        epoch = max(epoch, self.log.leader_epoch)
        info = self.log.append_as_leader(batch, leader_epoch=epoch, timestamp_ms=self.now_ms)
        assert (info.base_offset, info.is_duplicate) == (base_offset, False)
        self.sequence += len(keys)
        self.log.advance_high_watermark(self.log.log_end_offset)
        repeat = self.log.append_as_leader(batch, leader_epoch=epoch, timestamp_ms=self.now_ms)
        assert (repeat.base_offset, repeat.is_duplicate) == (base_offset, True)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.log.log_end_offset

    @rule()
    def roll(self) -> None:
        if self.log.segments.active.size_bytes:
            self.log.roll(self.now_ms)

    @rule()
    def checkpoint(self) -> None:
        self.directories.checkpoint()

    @rule(back=st.integers(0, 6))
    def truncate(self, back: int) -> None:
        target = max(self.log.log_end_offset - back, 0)
        first = max(self.cleaned_before, self.log.log_start_offset)
        bases = [x.base_offset for x in read_batches(self.log) if x.base_offset <= target]
        if max(bases, default=-1) < first:
            # Truncation never goes below what is committed, and so cleaned or deleted.
            return
        self.flushed = min(self.flushed, bases[-1])
        end = self.log.truncate_to(target)
        # A batch goes whole.
        assert end <= target
        self.flushed = min(self.flushed, end)
        self.history = {x: record for x, record in self.history.items() if x < end}
        self.forget_sequence()

    def forget_sequence(self) -> None:
        entry = self.log.producers.producers.get(PRODUCER_ID)
        self.sequence = entry.last_sequence + 1 if entry is not None else 0

    @rule(fraction=st.floats(0, 1))
    def delete_records(self, fraction: float) -> None:
        span = self.log.high_watermark - self.log.log_start_offset
        target = self.log.log_start_offset + int(fraction * span)
        self.deleted_before = max(self.deleted_before, target)
        self.log.delete_records_before(target)

    @rule(keep_bytes=st.integers(0, 1500))
    def retain(self, keep_bytes: int) -> None:
        limited = LogConfig(
            cleanup_policy=self.config.cleanup_policy,
            internal_segment_bytes=400,
            index_interval_bytes=self.config.index_interval_bytes,
            retention_bytes=keep_bytes,
            retention_ms=-1,
        )
        # Only what has been flushed may go by retention and count as gone.
        self.deleted_before = max(self.deleted_before, self.log.log_end_offset)
        self.log.update_config(limited)
        self.log.delete_old_segments(self.now_ms)
        self.log.update_config(self.config)
        self.deleted_before = max(self.log.log_start_offset, 0)

    @precondition(lambda self: self.config.is_compacted)
    @rule(memory=st.sampled_from([500, 100_000]))
    def compact(self, memory: int) -> None:
        dirty = measure(self.log, self.now_ms)
        self.cleaned_before = max(self.cleaned_before, dirty.end_offset)
        clean(dirty, self.now_ms, CleaningLimits(memory_bytes=memory))

    @rule(later_ms=st.integers(0, 100_000))
    def remove_due(self, later_ms: int) -> None:
        self.now_ms += later_ms
        self.directories.remove_due(self.now_ms)

    # What happens to a broker.

    @rule()
    def stop_cleanly(self) -> None:
        self.directories.close()
        self.storage.crash(keep_unsynced=False)
        end = self.log.log_end_offset
        self.open()
        assert self.log.log_end_offset == end
        self.flushed = end
        self.check(everything=True)

    @rule()
    def kill(self) -> None:
        end = self.log.log_end_offset
        self.storage.crash(keep_unsynced=True)
        self.open()
        assert self.log.log_end_offset == end
        self.check(everything=True)

    @rule()
    def lose_power(self) -> None:
        self.storage.crash(keep_unsynced=False)
        self.after_failure()

    @rule(calls=st.integers(0, 40), power=st.booleans(), data=st.data())
    def fail(self, calls: int, power: bool, data: st.DataObject) -> None:
        """Do one more thing on a dying disk, then restart on a good one."""
        acts = [self.flush, self.roll, self.checkpoint, self.directories.close]
        if self.config.is_compacted:
            acts.append(lambda: self.compact(100_000))
        acts.append(lambda: self.append([b"a", b"b"], b"x" * 50, False, 0, 0))
        acts.append(self.cut_some)
        acts.append(lambda: self.retain(300))
        act = data.draw(st.sampled_from(acts))
        self.storage.fail_after(calls, data.draw(st.sampled_from([5, 28])))
        has_failed = False
        try:
            act()
        except OSError:
            has_failed = True
        self.storage.crash(keep_unsynced=not power)
        self.after_failure()
        if has_failed and act == self.cut_some:
            # The page cache knows of the cut and the disk perhaps not: a power failure may bring
            # back what was cut off, until the next sync says otherwise.
            self.flush()

    def cut_some(self) -> None:
        self.truncate(3)

    @rule(calls=st.integers(0, 60), power=st.booleans())
    def fail_while_starting(self, calls: int, power: bool) -> None:
        """Crash, and crash again in the middle of the start that follows."""
        self.storage.crash(keep_unsynced=not power)
        self.storage.fail_after(calls)
        try:
            self.open()
        except OSError:
            pass
        self.storage.crash(keep_unsynced=not power)
        self.after_failure()

    def after_failure(self) -> None:
        self.open()
        assert self.log.log_end_offset >= self.flushed, (self.log.log_end_offset, self.flushed)
        self.check(everything=False)
        end = self.log.log_end_offset
        self.history = {x: record for x, record in self.history.items() if x < end}
        self.deleted_before = max(self.deleted_before, self.log.log_start_offset)
        self.forget_sequence()

    # What must hold.

    @invariant()
    def holds(self) -> None:
        self.check(everything=True)
        log = self.log
        assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark
        assert log.high_watermark <= log.log_end_offset
        assert log.recovery_point <= log.log_end_offset

    def check(self, *, everything: bool) -> None:
        records = read_records(self.log, max_bytes=300)
        found = {record.offset: (record.key, record.value) for record in records}
        assert sorted(found) == [record.offset for record in records], "out of order"
        for offset, record in found.items():
            assert self.history.get(offset) == record, (offset, "is invented")
        until = self.log.log_end_offset if everything else self.flushed
        since = max(self.log.log_start_offset, 0 if everything else self.deleted_before)
        expected = {x: self.history[x] for x in self.history if since <= x < until}
        if not self.config.is_compacted:
            assert expected.items() <= found.items(), "records are lost"
            return
        self.check_compacted(expected, records)

    def check_compacted(
        self, expected: dict[int, tuple[bytes | None, bytes | None]], records: list[Record]
    ) -> None:
        """Of every key the last value is there; above the cleaned part, every record."""
        found = {record.offset: (record.key, record.value) for record in records}
        above = {x: r for x, r in expected.items() if x >= self.cleaned_before}
        assert above.items() <= found.items(), "records are lost above the cleaned part"
        last = {key: offset for offset, (key, _) in sorted(self.history.items())}
        for key, offset in last.items():
            if offset in expected and expected[offset][1] is not None:
                assert found.get(offset) == expected[offset], (key, "has lost its last value")


TestPartitionMachine = PartitionMachine.TestCase
# Few: `test_many_more_histories` goes on with the same machine.
TestPartitionMachine.settings = settings(
    max_examples=20, stateful_step_count=30, deadline=None, derandomize=True
)


def test_a_topic_id_written_before_a_restart_is_synced_with_the_first_flush() -> None:
    machine = PartitionMachine()
    machine.start(seed=5, compact=False, index_every=0)
    machine.stop_cleanly()  # Empty, so nothing was flushed: the power takes its topic id away.
    machine.stop_cleanly()
    machine.append([b"a"], b"", False, 0, 0)
    machine.stop_cleanly()
    assert machine.log.topic_id == TOPIC_ID


@pytest.mark.slow
def test_many_more_histories() -> None:
    examples = settings(
        max_examples=int(os.environ.get("MILLSTREAM_SIM_SEEDS", "160")),
        stateful_step_count=50,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(PartitionMachine, settings=examples)
