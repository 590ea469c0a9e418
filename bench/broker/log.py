"""The speed of the log alone: append, read, open, recover, compact; one core, no sockets.

`python -m bench log [FOLDER]`; files go to FOLDER, or to `build/bench-log`. Each figure is the best
of a few rounds in CPU time of this process (user and system), so that other processes on the
machine do not count; where the log waits for the disk, the wall-clock time is given too. The rounds
of an append write new files into pages that the round before has freed: on a virtual machine the
first touch of a page costs ten times the write itself (2.4 ms for a megabyte, not 0.2), which is
not a cost of the log. An append is also given as a multiple of a bare write of the same bytes, on
the same machine.
"""

import gc
import os
import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from crc32c import crc32c

from broker.log.cleaner.run import CleaningLimits, clean
from broker.log.cleaner.schedule import measure
from broker.log.config import LogConfig
from broker.log.log_directories import LogDirectories
from broker.log.log_directory import DirectorySettings
from broker.log.partition_log import PartitionLog
from broker.log.storage import RealStorage
from broker.model import TopicPartition
from broker.records.build import build_batch
from broker.records.compression import Codec
from broker.records.header import (
    ATTRIBUTES_POSITION,
    HEADER,
    PATCH,
    BatchHeader,
    BytesLike,
)
from broker.records.validation import (
    BatchValidator,
    TimestampLimits,
    read_single_batch,
)

NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(15) + b"\x01"
MIB = 1024 * 1024
ROUNDS = 5
LARGE = LogConfig(max_message_bytes=4 * MIB)
RECOVERED_BYTES = int(os.environ.get("BENCH_RECOVERED_MIB", "2048")) * MIB


def open_directories(folder: Path, config: LogConfig) -> LogDirectories:
    settings = DirectorySettings("bench", 1, lambda topic: config, lambda: os.urandom(16))
    directories = LogDirectories(RealStorage(), [str(folder)], settings)
    directories.open(NOW_MS)
    return directories


def report(name: str, value: float, unit: str, goal: str = "") -> None:
    print(f"{name:<58} {value:>12,.1f} {unit:<12} {goal}", flush=True)


def warm_up(folder: Path, size_bytes: int) -> None:
    path = folder / "warm"
    chunk = bytes(8 * MIB)
    with path.open("wb") as file:
        for _ in range(size_bytes // len(chunk)):
            file.write(chunk)
    path.unlink()


def best_cpu_seconds(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def records(count: int, size_bytes: int) -> bytes:
    value = random.Random(count).randbytes(size_bytes)
    return build_batch([(None, value, (), NOW_MS)] * count)


def bench_append(folder: Path) -> None:
    for name, count, size_bytes, rounds, goal in (
        ("append, 1 record of 100 B", 1, 100, 20_000, ""),
        ("append, 16 KB batches of 1 KB records", 16, 1000, 2_000, ">= 40,000"),
        ("append, 16 KB batches of 100 B records", 150, 100, 2_000, ">= 40,000"),
        ("append, 1 MB batches of 1 KB records", 1000, 1000, 60, ">= 1.2 GB/s"),
    ):
        batch = memoryview(bytearray(records(count, size_bytes)))
        report_append(folder, name, [batch] * rounds, goal)


def report_append(folder: Path, name: str, batches: Sequence[BytesLike], goal: str) -> None:
    """Report the rate, and the time as a multiple of the minimum that every append needs."""
    append = floor = float("inf")
    for _ in range(ROUNDS):
        append = min(append, append_seconds(folder, batches))
        floor = min(floor, floor_seconds(folder, batches))
    report(name, len(batches) / append, "batches/s", goal)
    report("", sum(map(len, batches)) / append / 1e6, "MB/s")
    report("  bare write, CRC and header alone", len(batches) / floor, "batches/s")
    report("  append takes so many times as long", append / floor, "")


def append_seconds(folder: Path, batches: Sequence[BytesLike]) -> float:
    """Append to a new log and remove it, so that the next round gets its pages."""
    directories = open_directories(folder / "append", LARGE)
    log = directories.create(TopicPartition("append", 0), TOPIC_ID, LARGE)
    started = time.process_time()
    for batch in batches:
        log.append_as_leader(batch, leader_epoch=1, timestamp_ms=NOW_MS)
        log.advance_high_watermark(log.log_end_offset)
    seconds = time.process_time() - started
    directories.close(clean=False)
    shutil.rmtree(folder / "append")
    del directories, log
    gc.collect()  # This closes the file and frees its pages.
    return seconds


def floor_seconds(folder: Path, batches: Sequence[BytesLike]) -> float:
    """Write the same bytes to a plain file, with header, CRC and offset, and nothing else."""
    path = folder / "floor"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    position = offset = 0
    started = time.process_time()
    for batch in batches:
        fields = HEADER.unpack_from(batch)
        assert crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]) == fields[4]
        front = PATCH.pack(offset, fields[1], 1)
        position += os.pwritev(descriptor, (front, memoryview(batch)[PATCH.size :]), position)
        offset += fields[6] + 1
    seconds = time.process_time() - started
    os.close(descriptor)
    path.unlink()
    return seconds


def bench_validation() -> None:
    """Measure a leader's validation of a batch, CRC included, for each of its records."""
    validator = BatchValidator()
    limits = TimestampLimits(
        uses_log_append_time=False, before_max_ms=2**63 - 1, after_max_ms=3_600_000
    )
    for name, count, size_bytes, spread, codec in (
        ("1 MB of 100 B records", 9_000, 100, 0, Codec.NONE),
        ("1 MB of 100 B records, 50 to 150 B", 9_000, 100, 50, Codec.NONE),
        ("1 MB of 1 KB records", 1_000, 1_000, 0, Codec.NONE),
        ("1 MB of 1 KB records, 500 to 1,500 B", 1_000, 1_000, 500, Codec.NONE),
        ("16 KB of 100 B records", 150, 100, 0, Codec.NONE),
        ("128 KB of 1 KB records, lz4", 128, 1_000, 0, Codec.LZ4),
        ("128 KB of 1 KB records, lz4, 500 to 1,500 B", 128, 1_000, 500, Codec.LZ4),
        ("128 KB of 1 KB records, zstd", 128, 1_000, 0, Codec.ZSTD),
    ):
        source = random.Random(count)
        text = b" ".join(source.randbytes(3).hex().encode() for _ in range(300))
        values = [
            text[: size_bytes + source.randint(-spread, spread)] + b"%08d" % number
            for number in range(count)
        ]
        batch = memoryview(
            build_batch([(None, value, (), NOW_MS) for value in values], compression=codec)
        )
        header = read_single_batch(batch)
        rounds = max(1, 500 // count)

        def validate(header: BatchHeader = header, batch: BytesLike = batch) -> None:
            validator.validate_client_batch(header, batch, limits, NOW_MS)

        best = float("inf")
        for _ in range(100):
            started = time.process_time()
            for _ in range(rounds):
                validate()
            best = min(best, time.process_time() - started)
        report(f"check, {name}", best / rounds / count * 1e9, "ns/record")


def bench_idempotent(folder: Path) -> None:
    value = bytes(1000)
    batches = [
        build_batch(
            [(None, value, (), NOW_MS)] * 16,
            producer_id=1,
            producer_epoch=0,
            base_sequence=16 * number,
        )
        for number in range(4_000)
    ]
    report_append(folder, "append, 16 KB batches, idempotent producer", batches, "")


def bench_read(folder: Path) -> None:
    directories = open_directories(folder / "read", LARGE)
    log = directories.create(TopicPartition("read", 0), TOPIC_ID, LARGE)
    batch = records(16, 1000)
    for _ in range(20_000):
        log.append_as_leader(batch, leader_epoch=1, timestamp_ms=NOW_MS)
    log.advance_high_watermark(log.log_end_offset)
    end, count = log.log_end_offset, 20_000

    def at_end() -> None:
        for _ in range(count):
            log.read(end, max_bytes=MIB, max_offset=end)

    def last_batch() -> None:
        for _ in range(count):
            log.read(end - 16, max_bytes=MIB, max_offset=end)

    offsets = [random.Random(n).randrange(end // 16) * 16 for n in range(count)]

    def anywhere() -> None:
        for offset in offsets:
            log.read(offset, max_bytes=MIB, max_offset=end)

    report("read at the end, nothing there", best_cpu_seconds(at_end) / count * 1e6, "us")
    report("read the last batch of 16 KB", best_cpu_seconds(last_batch) / count * 1e6, "us")
    report(
        "find 1 MB anywhere (a region to sendfile)", best_cpu_seconds(anywhere) / count * 1e6, "us"
    )
    shutil.rmtree(folder / "read")


def bench_create(folder: Path) -> None:
    best = float("inf")
    for _ in range(ROUNDS):
        directories = open_directories(folder / "create", LARGE)
        started = time.perf_counter()
        for number in range(50):
            directories.create(TopicPartition("created", number), TOPIC_ID, LARGE)
        best = min(best, time.perf_counter() - started)
        directories.close()
        shutil.rmtree(folder / "create")
    report("create 50 partitions", best * 1000, "ms", "< 30")


def _fill_segments(log: PartitionLog, batch: bytes) -> None:
    """Append the batch ten times; each makes a segment."""
    for _ in range(10):
        log.append_as_leader(batch, leader_epoch=1, timestamp_ms=NOW_MS)
    assert len(log.segments) == 10


def bench_open(folder: Path) -> None:
    """Open a thousand partitions of ten segments, after a clean stop and after a kill."""
    config = LogConfig(internal_segment_bytes=4000)
    directories = open_directories(folder / "open", config)
    batch = records(3, 1000)
    for number in range(1000):
        _fill_segments(
            directories.create(TopicPartition("opened", number), TOPIC_ID, config), batch
        )
    directories.close()
    del directories
    started = time.perf_counter()
    directories = open_directories(folder / "open", config)
    report("open 1,000 partitions x 10 segments, clean", time.perf_counter() - started, "s", "< 2")
    directories.close(clean=False)
    del directories  # This closes a thousand files.
    started = time.perf_counter()
    directories = open_directories(folder / "open", config)
    report("the same after a kill (all flushed)", time.perf_counter() - started, "s")
    directories.close(clean=False)
    shutil.rmtree(folder / "open")


def bench_recover(folder: Path) -> None:
    """Recover a log that was killed before its first flush."""
    warm_up(folder, RECOVERED_BYTES)
    directories = open_directories(folder / "recover", LARGE)
    log = directories.create(TopicPartition("recovered", 0), TOPIC_ID, LARGE)
    batch = records(16, 1000)
    for _ in range(RECOVERED_BYTES // len(batch)):
        log.append_as_leader(batch, leader_epoch=1, timestamp_ms=NOW_MS)
    size, end = log.size_bytes, log.log_end_offset
    directories.close(clean=False)
    del log
    cpu, wall = time.process_time(), time.perf_counter()
    directories = open_directories(folder / "recover", LARGE)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    recovered = directories.get(TopicPartition("recovered", 0))
    assert recovered is not None
    assert recovered.log_end_offset == end
    report(f"recover {size // MIB} MiB of 16 KB batches", size / cpu / 1e6, "MB/s", ">= 500")
    report("", size / wall / 1e6, "MB/s wall")
    directories.close(clean=False)
    shutil.rmtree(folder / "recover")


def bench_compact(folder: Path) -> None:
    """Compact 1 KB records in 16 KB batches, with five values for every key."""
    config = LogConfig(cleanup_policy=("compact",), internal_segment_bytes=16 * MIB)
    warm_up(folder, 256 * MIB)
    directories = open_directories(folder / "compact", config)
    log = directories.create(TopicPartition("compacted", 0), TOPIC_ID, config)
    source = random.Random(1)
    keys = [b"key-%012d" % number for number in range(20_000)]
    value = source.randbytes(1000)
    for _ in range(100_000 // 16):
        batch = build_batch([(source.choice(keys), value, (), NOW_MS) for _ in range(16)])
        log.append_as_leader(batch, leader_epoch=1, timestamp_ms=NOW_MS)
    log.roll(NOW_MS)
    log.advance_high_watermark(log.log_end_offset)
    log.flush()
    size = log.size_bytes
    cpu, wall = time.process_time(), time.perf_counter()
    clean(measure(log, NOW_MS), NOW_MS, CleaningLimits())
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    report(f"compact {size // MIB} MiB of 1 KB records", size / cpu / 1e6, "MB/s", ">= 60")
    report("", size / wall / 1e6, "MB/s wall")
    report("  of which stays", log.size_bytes / size * 100, "%")
    directories.close(clean=False)
    shutil.rmtree(folder / "compact")


def main(arguments: list[str]) -> int:
    """Run every measurement and print a table."""
    chosen = arguments or ["build/bench-log"]
    folder = Path(chosen[0])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        bench_validation()
        for bench in (
            bench_append,
            bench_idempotent,
            bench_read,
            bench_create,
            bench_open,
            bench_recover,
            bench_compact,
        ):
            bench(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0
