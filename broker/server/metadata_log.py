"""The cluster's metadata log on this node: append, sync, then replay. One node is its own quorum.

Nothing in `state` changes before its records are on disk, so a crash between any two lines loses
only what nobody was told of.
"""

from collections.abc import Sequence

from broker.log.append import AppendOrigin
from broker.log.config import LogConfig
from broker.log.partition_log import PartitionLog
from broker.metadata.cluster import ClusterState
from broker.metadata.topic_names import CLUSTER_METADATA
from broker.model import TopicPartition
from broker.protocol.message import Message
from broker.protocol.records.metadata import decode_metadata_record, encode_metadata_record
from broker.records.build import build_batch
from broker.server.reading import committed_batches

LEADER_EPOCH = 1
METADATA_PARTITION = TopicPartition(CLUSTER_METADATA, 0)


def metadata_log_config() -> LogConfig:
    """Return the settings of the metadata log: kept for ever until there are snapshots."""
    return LogConfig(retention_ms=-1, retention_bytes=-1, cleanup_policy=())


class MetadataLog:
    """Owns `__cluster_metadata-0` and the state that its records add up to."""

    def __init__(self, log: PartitionLog, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self._log = log
        self.state = ClusterState()

    @property
    def end_offset(self) -> int:
        """The offset of the next record: a number that grows with every change."""
        return self._log.log_end_offset

    def load(self) -> None:
        """Replay the whole log."""
        self._log.advance_high_watermark(self._log.log_end_offset)
        for batch in committed_batches(self._log):
            if batch.header.is_control:
                continue
            for record in batch.records():
                if record.value is not None:
                    self.state.replay(decode_metadata_record(record.value))

    def commit(self, records: Sequence[Message], timestamp_ms: int) -> None:
        """Make `records` true: on disk first, then in `state`. Raises OSError, and then neither."""
        if not records:
            return
        batch = build_batch(
            [(None, encode_metadata_record(record), (), timestamp_ms) for record in records],
            leader_epoch=LEADER_EPOCH,
        )
        self._log.append_as_leader(
            batch,
            leader_epoch=LEADER_EPOCH,
            timestamp_ms=timestamp_ms,
            origin=AppendOrigin.RAFT_LEADER,
        )
        self._log.flush()
        self._log.advance_high_watermark(self._log.log_end_offset)
        for record in records:
            self.state.replay(record)
