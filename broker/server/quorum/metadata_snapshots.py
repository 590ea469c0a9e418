"""When a snapshot of the metadata is taken, and which records it makes superfluous (KIP-630).

One is due after `metadata.log.max.record.bytes.between.snapshots` of records, or when there are any
and `metadata.log.max.snapshot.interval.ms` have passed. Every node takes its own. The records
before the *former* snapshot go then: a replica that is a little behind still finds them, and need
not load a snapshot.
"""

import logging

from broker.config.quorum_config import QuorumConfig
from broker.metadata.snapshot import snapshot_records
from broker.protocol.records.metadata import encode_metadata_record
from broker.protocol.records.quorum import VotersRecord
from broker.raft.config import NEVER_MS
from broker.server.quorum.metadata_machine import MetadataMachine
from broker.server.quorum.partition_raft_log import PartitionRaftLog
from broker.server.quorum.snapshot_format import build_snapshot

log = logging.getLogger("millrace.quorum.snapshots")


class MetadataSnapshots:
    """Takes the snapshots of one node; `voters` is what each repeats, if they were formatted."""

    def __init__(
        self,
        raft_log: PartitionRaftLog,
        machine: MetadataMachine,
        config: QuorumConfig,
        *,
        now_ms: int,
        voters: VotersRecord | None,
    ) -> None:
        self._log = raft_log
        self._machine = machine
        self._config = config
        self._taken_ms = now_ms
        self._voters = voters

    def next_deadline_ms(self) -> int:
        """Give when a snapshot is due though nothing more is committed."""
        if not self._machine.bytes_since_snapshot or not self._config.snapshot_interval_ms:
            return NEVER_MS
        return self._taken_ms + self._config.snapshot_interval_ms

    def is_due(self, now_ms: int) -> bool:
        """Whether to take one now."""
        return (
            self._machine.bytes_since_snapshot >= self._config.snapshot_after_bytes
            or now_ms >= self.next_deadline_ms()
        )

    def take(self, now_ms: int, timestamp_ms: int) -> None:
        """Write a snapshot of what is applied, then drop what the former one contains."""
        machine = self._machine
        snapshot_id = machine.position
        former_ids = self._log.snapshot_ids()
        self._taken_ms = now_ms
        machine.bytes_since_snapshot = 0
        if snapshot_id in former_ids:
            return
        values = [encode_metadata_record(record) for record in snapshot_records(machine.image)]
        data = build_snapshot(
            values,
            snapshot_id.leader_epoch,
            machine.last_timestamp_ms,
            timestamp_ms,
            self._voters,
        )
        self._log.store_snapshot(snapshot_id, data)
        if former_ids:
            self._log.delete_before_snapshot(former_ids[-1])
        log.info(
            "snapshot taken end_offset=%d leader_epoch=%d size_bytes=%d record_count=%d",
            *snapshot_id,
            len(data),
            len(values),
        )
