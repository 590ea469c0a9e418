"""Opening, reading and comparing partition logs in tests."""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from broker.log.append import AppendInfo, AppendOrigin, accept_in_steps
from broker.log.config import LogConfig
from broker.log.local_log import LogPlace
from broker.log.log_start import OpenHints
from broker.log.partition_log import PartitionLog
from broker.log.recovery import open_partition_log
from broker.log.storage import DelayedDeletion, FileRegion, RealStorage, Storage
from broker.model import OffsetAndEpoch, TopicPartition
from broker.raft.voter_history import read_entries
from broker.raft.voter_set import VoterSet
from broker.records.batch import RecordBatch, split_batches
from broker.records.errors import TooMuchAtOnce
from broker.records.record import Record
from broker.server.quorum.raft.partition_raft_log import PartitionRaftLog
from broker.server.quorum.raft.snapshot_files import SnapshotFiles

R = TypeVar("R")
NOW_MS = 1_700_000_000_000
TOPIC_PARTITION = TopicPartition("topic", 0)
DIRECTORY = "/logs/topic-0"


def open_log(
    storage: Storage,
    config: LogConfig | None = None,
    hints: OpenHints | None = None,
    directory: str = DIRECTORY,
) -> PartitionLog:
    """Open, or make, a log in a storage."""
    storage.make_directory(directory)
    place = LogPlace(storage, DelayedDeletion(storage))
    hints = hints or OpenHints(timestamp_ms=NOW_MS)
    return open_partition_log(TOPIC_PARTITION, directory, config or LogConfig(), place, hints)


def append_of_any_size(log: PartitionLog, batch: bytes) -> AppendInfo:
    """Append a client's batch; what is too much at once goes through its steps."""
    try:
        return log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS)
    except TooMuchAtOnce:
        accepted = last_of(accept_in_steps(log, batch, NOW_MS, at_once))
    return log.append_as_leader(
        accepted.records,
        leader_epoch=0,
        timestamp_ms=NOW_MS,
        origin=AppendOrigin.CHECKED_CLIENT,
    )


def at_once(work: Callable[[], Any]) -> Generator[None, None, Any]:
    """Do what another thread should."""
    return work()
    yield


def last_of(steps: Generator[Any, None, R]) -> R:
    """Take all steps."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: R = done.value
            return result


def reopen(storage: Storage, log: PartitionLog, *, is_clean: bool = False) -> PartitionLog:
    """Open a log again after a crash, with the checkpoints as they were at its end."""
    hints = OpenHints(
        is_clean=is_clean,
        recovery_point=log.recovery_point,
        log_start_offset=log.log_start_offset,
        high_watermark=log.high_watermark,
        timestamp_ms=NOW_MS,
    )
    again = open_log(storage, log.config, hints, log.directory)
    again.advance_high_watermark(again.log_end_offset)
    return again


def joined(parts: list[bytes | FileRegion]) -> bytes:
    """Read the parts of a LogRead."""
    return b"".join(part if isinstance(part, bytes) else part.read() for part in parts)


def read_batches(log: PartitionLog, max_bytes: int = 1024 * 1024) -> list[RecordBatch]:
    """Read a log from start to end as a consumer does."""
    batches: list[RecordBatch] = []
    offset = log.log_start_offset
    while True:
        found = log.read(offset, max_bytes=max_bytes, max_offset=log.log_end_offset)
        data = joined(found.parts)
        assert len(data) == found.size_bytes
        if not data:
            return batches
        new = list(split_batches(data))
        assert sum(batch.header.size_bytes for batch in new) == len(data), "a batch is cut"
        batches += new
        offset = batches[-1].next_offset


def log_bytes(log: PartitionLog) -> bytes:
    """Give all bytes a reader sees."""
    return b"".join(batch.buffer for batch in read_batches(log))


def read_records(log: PartitionLog, max_bytes: int = 1024 * 1024) -> list[Record]:
    """Give the data records a reader sees, in order."""
    return [
        record
        for batch in read_batches(log, max_bytes)
        if not batch.header.is_control
        for record in batch.records()
        if record.offset >= log.log_start_offset
    ]


def store_snapshot(log: PartitionRaftLog, snapshot_id: OffsetAndEpoch, data: bytes) -> None:
    """Keep a snapshot of this node's own state."""
    log.write_snapshot(snapshot_id, 0, data)
    assert log.finish_snapshot(snapshot_id)


def formatted_voters(directory: str) -> list[tuple[int, str, int]]:
    """Give the voters that a metadata log was formatted with: node id, host and port of each."""
    storage = RealStorage()
    if storage.status(directory) is None:
        return []
    snapshots = SnapshotFiles(storage, directory)
    sets = [
        entry.value
        for snapshot_id in snapshots.ids[-1:]
        for entry in read_entries(snapshots.read(snapshot_id, 0, 1 << 20))
        if isinstance(entry.value, VoterSet)
    ]
    return [
        (node.key.node_id, node.endpoints[0].host, node.endpoints[0].port)
        for voters in sets
        for node in voters.nodes
    ]
