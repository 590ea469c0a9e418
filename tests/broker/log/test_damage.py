"""Every file of a log directory, damaged in every way, after a clean stop and after a kill.

Either all acknowledged records are there, or the log says in one line which file, what is wrong,
and what it did or what to do. Never a traceback, never wrong data, never less without a word; and
what is appended afterwards is there after the next stop.

Left out is what no checksum covers in Kafka's formats and no start can know: base offset and leader
epoch of a batch, numbers in a text file that are wrong and make sense.
"""

import logging
import os
from copy import deepcopy
from dataclasses import dataclass
from random import Random

import pytest

from broker.log.append import AppendOrigin
from broker.log.cleaner.run import CleaningLimits, CleaningRun, finish_round, replace_segments
from broker.log.cleaner.schedule import measure
from broker.log.cleaner.swap import begin_swap
from broker.log.config import LogConfig
from broker.log.index.transaction_index import AbortedTransaction
from broker.log.log_directories import LogDirectories, advance_move
from broker.log.log_directory import DirectorySettings
from broker.log.meta_properties import InconsistentLogDirectory
from broker.log.partition_log import PartitionLog
from broker.model import TopicPartition
from broker.records.batch import split_batches
from broker.records.build import build_batch
from broker.records.control import EndMarker, build_end_marker
from broker.records.errors import CorruptBatch
from common.kafka.errors import ErrorCode, KafkaError
from tests.lib.disk_damage import DAMAGES, flip_in_log
from tests.lib.logs import NOW_MS, joined
from tests.lib.simulated_storage import Contents, Directory, SimulatedStorage

SEEDS = int(os.environ.get("MILLSTREAM_DAMAGE_SEEDS", "100"))
SEEDS_A_TEST = 25
TOPIC_ID = b"0123456789abcdef"
PATHS = ("/a", "/b")
IN_A_TRANSACTION = b"in a transaction"
KEYS = [TopicPartition("orders", number) for number in range(3)]

Rows = dict[int, bytes]


@dataclass(frozen=True)
class Held:
    """What a partition holds for its readers."""

    rows: Rows
    start: int
    epochs: list[tuple[int, int]]
    sequences: dict[int, tuple[int, int]]
    aborted: list[tuple[int, int]]
    times: dict[int, int | None]


def open_directories(storage: SimulatedStorage, config: LogConfig) -> LogDirectories:
    ids = Random(3)
    settings = DirectorySettings("cluster", 1, lambda topic: config, lambda: ids.randbytes(16))
    directories = LogDirectories(storage, PATHS, settings)
    directories.open(NOW_MS)
    for log in directories.all():
        log.advance_high_watermark(log.log_end_offset)
    return directories


def read_rows(log: PartitionLog) -> tuple[Rows, bool]:
    """Read as a consumer does, which checks CRCs and that offsets ascend; tell of a refusal."""
    rows: Rows = {}
    offset = log.log_start_offset
    while True:
        try:
            found = log.read(offset, max_bytes=700, max_offset=log.log_end_offset)
        except KafkaError as error:
            if error.code != ErrorCode.CORRUPT_MESSAGE:
                raise
            return rows, True
        try:
            batches = list(split_batches(joined(found.parts)))
        except CorruptBatch:
            return rows, True
        if not batches:
            assert not found.size_bytes, "what no consumer gets past"
            return rows, False
        for batch in batches:
            if not batch.has_valid_crc:
                return rows, True
            assert batch.next_offset > offset
            offset = batch.next_offset
            if not batch.header.is_control:
                rows |= {x.offset: x.value or b"" for x in batch.records()}


def look(log: PartitionLog) -> Held:
    rows, _ = read_rows(log)
    aborted: list[AbortedTransaction] = []
    start = log.log_start_offset
    for segment in log.segments:
        aborted += segment.transaction_index.entries
    times: dict[int, int | None] = {}
    for time_ms in range(NOW_MS, NOW_MS + 90, 7):
        answer = log.offset_for_timestamp(time_ms)
        times[time_ms] = None if answer is None else answer.offset
    return Held(
        {offset: value for offset, value in rows.items() if offset >= log.log_start_offset},
        log.log_start_offset,
        [(entry.leader_epoch, entry.offset) for entry in log.epochs.entries],
        {
            producer_id: (entry.epoch, entry.last_sequence)
            for producer_id, entry in log.producers.producers.items()
        },
        # Aborted transactions below the log start are never read.
        [(x.producer_id, x.first_offset) for x in aborted if x.first_offset >= start],
        times,
    )


class Life:
    """Some partitions that were written to, perhaps cleaned, perhaps on the move, and a stop."""

    def __init__(self, seed: int) -> None:
        random = self.random = Random(seed)
        self.storage = SimulatedStorage(seed)
        self.config = LogConfig(
            internal_segment_bytes=random.choice((800, 1500, 100_000)),
            index_interval_bytes=random.choice((0, 150, 4096)),
            cleanup_policy=random.choice((("delete",), ("compact",))),
        )
        self.is_clean = random.random() < 0.6
        self.directories = open_directories(self.storage, self.config)
        self.clock_ms = NOW_MS
        self.is_swapping = False
        self.sequence = dict.fromkeys(KEYS, 0)
        for key in KEYS:
            log = self.directories.create(key, TOPIC_ID, self.config)
            for _ in range(random.randint(1, 40)):
                self.live(key, log)
        self.ever = {key: read_rows(log)[0] for key, log in self.logs().items()}
        for log in self.directories.all():
            if random.random() < 0.3:
                log.delete_records_before(random.randint(0, log.high_watermark))
                log.delete_old_segments(NOW_MS)
        acknowledged = {key: look(log).rows for key, log in self.logs().items()}
        self.directories.checkpoint()
        if self.config.is_compacted:
            for log in self.directories.all():
                self.compact(log)
        if random.random() < 0.3:
            self.begin_to_move(random.choice(KEYS))
        if self.is_clean:
            self.directories.close()
        elif not self.is_swapping:
            self.directories.checkpoint()
        self.storage.crash(keep_unsynced=True)
        unharmed = open_directories(deepcopy(self.storage), self.config)
        self.held = {log.topic_partition: look(log) for log in unharmed.all()}
        self.is_all_there(acknowledged)

    def is_all_there(self, acknowledged: dict[TopicPartition, Rows]) -> None:
        for key, held in self.held.items():
            # A swap that had begun is carried out: what was aborted goes, and nothing else.
            gone = acknowledged[key].items() - held.rows.items()
            assert held.rows.items() <= acknowledged[key].items()
            assert all(value.startswith(IN_A_TRANSACTION) for _, value in gone)

    def logs(self) -> dict[TopicPartition, PartitionLog]:
        return {log.topic_partition: log for log in self.directories.all()}

    def compact(self, log: PartitionLog) -> None:
        """Clean the log: whole, or as far as a crash lets it."""
        if log.segments.active.size_bytes:
            log.roll(NOW_MS)
        log.flush()
        run = CleaningRun(measure(log, NOW_MS), NOW_MS, CleaningLimits())
        run.build_offset_map()
        end = "done" if self.is_clean else self.random.choice(("done", "cleaned", "swapping"))
        while (replacement := run.clean_next_group()) is not None:
            if end == "done":
                replace_segments(log, replacement, NOW_MS)
            elif end == "swapping":
                begin_swap(self.storage, log.directory, replacement.cleaned.base_offset)
                if self.random.random() < 0.5:
                    log.discard_segment(replacement.sources[0].segment, NOW_MS)
                self.is_swapping = True
                return
        if end == "done":
            finish_round(log, run)

    def begin_to_move(self, key: TopicPartition) -> None:
        """Let a copy of the partition grow in the other directory."""
        place = self.directories.directory_of(key)
        assert place is not None
        self.directories.move(key, next(path for path in PATHS if path != place.path))
        target = next(x for x in self.directories.directories if x is not place)
        for _ in range(self.random.randint(0, 5)):
            advance_move(place.logs[key], target.future_logs[key], 700)

    def live(self, key: TopicPartition, log: PartitionLog) -> None:
        random = self.random
        self.clock_ms += random.randint(0, 3)
        roll = random.random()
        if roll < 0.05:
            log.become_leader(log.leader_epoch + 1)
        elif roll < 0.1:
            log.flush()
        elif roll < 0.2:
            self.transact(log)
        elif roll < 0.4:
            self.append(log, 7, sequence=self.sequence[key])
        else:
            self.append(log)
        if 0.2 <= roll < 0.4:
            self.sequence[key] += 1

    def append(self, log: PartitionLog, producer_id: int = -1, *, sequence: int = -1) -> None:
        random = self.random
        count = 1 if producer_id >= 0 else random.randint(1, 4)
        value = b"%d of %s" % (log.log_end_offset, str(log.topic_partition).encode())
        value *= random.randint(1, 9)
        # No key comes twice, so that the cleaner leaves what was not aborted.
        keys = [b"%d" % (log.log_end_offset + number) for number in range(count)]
        records = [(key, value, (), self.clock_ms) for key in keys]
        batch = build_batch(
            records,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
        )
        self.write(log, batch, AppendOrigin.CLIENT)

    def transact(self, log: PartitionLog) -> None:
        producer_id = 100 + log.log_end_offset
        value = b"%s %d" % (IN_A_TRANSACTION, log.log_end_offset)
        batch = build_batch(
            [(value, value, (), self.clock_ms)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        self.write(log, batch, AppendOrigin.CLIENT)
        marker = EndMarker(self.random.random() < 0.5, 0)
        end = build_end_marker(producer_id, 0, marker, self.clock_ms)
        self.write(log, end, AppendOrigin.COORDINATOR)

    def write(self, log: PartitionLog, batch: bytes, origin: AppendOrigin) -> None:
        epoch = max(0, log.leader_epoch)
        log.append_as_leader(batch, leader_epoch=epoch, timestamp_ms=NOW_MS, origin=origin)
        log.advance_high_watermark(log.log_end_offset)

    # The damage.

    def files(self) -> dict[str, Directory]:
        found: dict[str, Directory] = {}

        def visit(path: str, directory: Directory) -> None:
            for name, entry in sorted(directory.names.items()):
                if isinstance(entry, Directory):
                    visit(f"{path}/{name}", entry)
                elif name != ".lock":
                    found[f"{path}/{name}"] = directory

        visit("", self.storage.root)
        return found

    def damage(self) -> tuple[str, str]:
        """Damage one file; gives which, and how."""
        files = self.files()
        kinds = sorted({path.rpartition(".")[2].rpartition("/")[2] for path in files})
        kind = self.random.choice(kinds)
        path = self.random.choice([path for path in files if path.endswith(kind)])
        how = self.random.choice(sorted(DAMAGES))
        directory, name = files[path], path.rpartition("/")[2]
        contents = directory.names[name]
        assert isinstance(contents, Contents)
        before = bytes(contents.data)
        if path.endswith(".log") and how == "flipped":
            after: bytes | None = flip_in_log(self.random, before)
        else:
            after = DAMAGES[how](self.random, before)
        if _is_beyond_knowing(path, how):
            return path, "nothing"
        if after is None:
            del directory.names[name]
        else:
            contents.data[:] = after
        return path, how


def _is_beyond_knowing(path: str, how: str) -> bool:
    """Tell whether the damage leaves something that makes sense and that no checksum covers."""
    is_text = path.endswith(("checkpoint", ".properties", ".metadata"))
    return is_text and how == "flipped"


def check(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    life = Life(seed)
    path, how = life.damage()
    caplog.clear()
    refusal = ""
    try:
        directories = open_directories(life.storage, life.config)
    except (InconsistentLogDirectory, OSError) as error:
        refusal = str(error)
        directories = None
    said: dict[TopicPartition, bool] = {}
    for key, held in life.held.items():
        log = directories.get(key) if directories is not None else None
        if log is None:
            assert names(refusal, caplog, path, how), (path, how, refusal, caplog.messages)
            continue
        rows, is_refused = read_rows(log)
        for offset, value in rows.items():
            assert life.ever[key].get(offset) == value, (path, how, offset)
        missing = held.rows.keys() - rows.keys()
        is_said = said[key] = names(refusal, caplog, path, how)
        assert is_said or not missing or is_refused, (path, how, key, sorted(missing)[:5])
        if not missing and not is_refused:
            found, where = look(log), (path, how, key, is_said)
            compare(found, held, where, is_said=is_said)
            # Whatever was said: what a marker has aborted no reader takes for committed.
            aborted = {of for of in held.aborted if of[1] in held.rows}
            assert set(found.aborted) >= aborted, where
    if directories is not None:
        go_on(life, directories, (path, how))


def compare(found: Held, held: Held, where: object, *, is_said: bool) -> None:
    assert found.times == held.times or is_said, where
    assert found.sequences == held.sequences or is_said, where
    # Of a log without records nobody asks when they were written.
    assert found.epochs == held.epochs or is_said or not held.rows, where
    assert found.start <= held.start, where


def names(refusal: str, caplog: pytest.LogCaptureFixture, path: str, how: str) -> bool:
    """Whether a line names the file; of one that is gone the partition is known at least."""
    wanted = path.rpartition("/")[0] if how == "deleted" and path.endswith(".log") else path
    return any(wanted in line for line in (refusal, *caplog.messages))


def go_on(life: Life, directories: LogDirectories, where: object) -> None:
    """Append, stop, start: the log has what it had and what came."""
    expected: dict[TopicPartition, Rows] = {}
    for log in directories.all():
        directories.create(log.topic_partition, TOPIC_ID, life.config)
        rows, is_refused = read_rows(log)
        new = log.log_end_offset
        life.append(log)
        assert not (rows.keys() & range(new, log.log_end_offset)), where
        if not is_refused:
            expected[log.topic_partition], _ = read_rows(log)
            assert new in expected[log.topic_partition], where
    directories.close()
    life.storage.crash(keep_unsynced=True)
    again = open_directories(life.storage, life.config)
    for key, rows in expected.items():
        log = again.get(key)
        assert log is not None, where
        assert read_rows(log)[0] == rows, where


@pytest.mark.parametrize(
    "first_seed",
    [
        0,
        *(
            pytest.param(seed, marks=pytest.mark.slow)
            for seed in range(SEEDS_A_TEST, SEEDS, SEEDS_A_TEST)
        ),
    ],
)
def test_a_damaged_file_costs_nothing_without_a_word(
    first_seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for seed in range(first_seed, min(first_seed + SEEDS_A_TEST, SEEDS)):
        try:
            check(seed, caplog)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
