"""Takes snapshots of the metadata, and removes the records that they replace (KIP-630).

A snapshot is due after `metadata.log.max.record.bytes.between.snapshots` bytes of records, or when
there are new records and `metadata.log.max.snapshot.interval.ms` have passed. Every node takes its
own. A snapshot is written one slice at a time, so that a large one does not block the event loop.
After it the records before the *previous* snapshot are removed: a replica that is slightly behind
still finds the later ones, and need not load a snapshot.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from broker.config.quorum_config import QuorumConfig
from broker.metadata.snapshot import each_snapshot_record
from broker.model import OffsetAndEpoch
from broker.raft.config import NEVER_MS
from broker.raft.voter_set import DYNAMIC_VOTERS, VoterSet, voters_record
from broker.server.quorum.metadata_machine import MetadataMachine
from broker.server.quorum.raft.partition_raft_log import PartitionRaftLog
from broker.server.quorum.raft.snapshot_format import RECORDS_PER_BATCH, SnapshotWriter
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.metadata import encode_metadata_record

log = logging.getLogger("millstream.quorum.snapshots")


@dataclass(slots=True)
class _Unfinished:
    """A snapshot that is being written; `position` is the place of its next part."""

    snapshot_id: OffsetAndEpoch
    writer: SnapshotWriter
    records: Iterator[Message]
    position: int = 0


class MetadataSnapshots:
    """Takes the snapshots of one node; `voters_at` gives the voters at an offset of the log.

    With `kraft.version` 1 each snapshot has the voters.
    """

    def __init__(
        self,
        raft_log: PartitionRaftLog,
        machine: MetadataMachine,
        config: QuorumConfig,
        *,
        now_ms: int,
        voters_at: Callable[[int], tuple[int, VoterSet]],
    ) -> None:
        self._log = raft_log
        self._machine = machine
        self._config = config
        self._taken_ms = now_ms
        self._voters_at = voters_at
        self._unfinished: _Unfinished | None = None
        self.latest_size_bytes = 0
        """Of the last snapshot that this process has taken; 0 if it has taken none."""

    @property
    def taken_ms(self) -> int:
        """When the last snapshot was begun; the start of this node if it has taken none."""
        return self._taken_ms

    def next_deadline_ms(self) -> int:
        """Return when there is work to do without a new commit; 0 is at once."""
        if self._unfinished is not None:
            return 0
        if not self._machine.bytes_since_snapshot or not self._config.snapshot_interval_ms:
            return NEVER_MS
        return self._taken_ms + self._config.snapshot_interval_ms

    @property
    def is_writing(self) -> bool:
        """True if a snapshot was begun and is not finished."""
        return self._unfinished is not None

    def advance(self, now_ms: int, timestamp_ms: int) -> None:
        """Begin a snapshot that is due, or write the next slice of the one that was begun."""
        if self._unfinished is None and self._is_due(now_ms):
            self.begin(now_ms, timestamp_ms)
        if self._unfinished is not None:
            self._write_slice(self._unfinished)

    def _is_due(self, now_ms: int) -> bool:
        return (
            self._machine.bytes_since_snapshot >= self._config.snapshot_after_bytes
            or now_ms >= self.next_deadline_ms()
        )

    def begin(self, now_ms: int, timestamp_ms: int) -> None:
        """Begin a snapshot of the current image; `advance` writes it."""
        machine = self._machine
        snapshot_id = machine.position
        self._taken_ms = now_ms
        machine.bytes_since_snapshot = 0
        writer = SnapshotWriter(snapshot_id.leader_epoch, timestamp_ms)
        unfinished = _Unfinished(snapshot_id, writer, each_snapshot_record(machine.image))
        kraft_version, voters = self._voters_at(snapshot_id.offset)
        record = voters_record(voters) if kraft_version >= DYNAMIC_VOTERS else None
        self._write(unfinished, writer.start(machine.last_timestamp_ms, record))
        self._unfinished = unfinished

    def _write_slice(self, unfinished: _Unfinished) -> None:
        records = islice(unfinished.records, RECORDS_PER_BATCH)
        values = [encode_metadata_record(record) for record in records]
        if values:
            self._write(unfinished, unfinished.writer.batch(values))
        if len(values) == RECORDS_PER_BATCH:
            return
        self._write(unfinished, unfinished.writer.end())
        self._unfinished = None
        self._finish(unfinished)

    def _write(self, unfinished: _Unfinished, part: bytes) -> None:
        self._log.write_snapshot(unfinished.snapshot_id, unfinished.position, part)
        unfinished.position += len(part)

    def _finish(self, unfinished: _Unfinished) -> None:
        """Give it its name, then drop the records that the previous snapshot contains."""
        former_ids = self._log.snapshot_ids()
        self.latest_size_bytes = unfinished.position
        if not self._log.finish_snapshot(unfinished.snapshot_id):
            return
        if former_ids:
            self._log.delete_before_snapshot(former_ids[-1])
        log.info(
            "snapshot taken end_offset=%d leader_epoch=%d size_bytes=%d",
            *unfinished.snapshot_id,
            unfinished.position,
        )
