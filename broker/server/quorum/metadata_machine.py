"""The replicated state machine of the quorum: it applies committed batches to the cluster's image.

Invariant: `image` is the result of all records below `position.offset`, and of no others. A batch
of very many records is therefore read and prepared in steps that do not change the image; the last
step is quick, and applies the whole batch.
"""

from collections.abc import Callable, Iterator

from broker.metadata.delta import Elections, MetadataDelta
from broker.metadata.difference import compute_difference
from broker.metadata.image import MetadataImage
from broker.model import OffsetAndEpoch
from broker.raft.output import LeaderChange
from broker.records.batch import RecordBatch
from broker.server.quorum.raft.snapshot_format import snapshot_values
from common.kafka.protocol.records.metadata import decode_metadata_record

RECORDS_PER_STEP = 256
"""The records of one step; each takes about ten microseconds."""


class MetadataMachine:
    """The `QuorumListener` of a node; `on_change` gets the changes when `tell` is called."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.position = OffsetAndEpoch(0, 0)
        """The end and the epoch of the last applied batch: the name of a snapshot of `image`."""
        self.last_timestamp_ms = -1
        self.bytes_since_snapshot = 0
        self.elections = Elections()
        """Elections of partitions since this node started; those in a snapshot are unknown."""
        self.loaded_snapshot_count = 0
        self.leader_changes: list[LeaderChange] = []
        """The changes of the leader, for the owner to take."""
        self.on_change: Callable[[MetadataDelta], None] = lambda delta: None

    def load_snapshot(self, snapshot_id: OffsetAndEpoch, data: bytes) -> None:
        """Replace the image with that of a snapshot; `on_change` gets the differences."""
        self.tell()
        old, image = self.image, MetadataImage()
        for value in snapshot_values(data):
            image.replay(decode_metadata_record(value))
        image.take_delta()
        self.image, self.position = image, snapshot_id
        self.bytes_since_snapshot = 0
        self.loaded_snapshot_count += 1
        delta = compute_difference(old, image)
        if not delta.is_empty:
            self.on_change(delta)

    def apply(self, batch: RecordBatch) -> Iterator[None]:
        """Replay a committed batch: the last step changes the image, and earlier steps do not."""
        header = batch.header
        if not header.is_control:
            replays: list[Callable[[], None]] = []
            for number, record in enumerate(batch.records(), 1):
                if record.value is not None:
                    replays.append(self.image.prepare(decode_metadata_record(record.value)))
                if not number % RECORDS_PER_STEP:
                    yield
            for replay in replays:
                replay()
        self.position = OffsetAndEpoch(batch.next_offset, header.partition_leader_epoch)
        self.last_timestamp_ms = header.max_timestamp
        self.bytes_since_snapshot += header.size_bytes

    def change_leader(self, change: LeaderChange) -> None:
        """Keep a change of the leader, in order."""
        self.leader_changes.append(change)

    def tell(self) -> None:
        """Notify `on_change` of the changes since the last call."""
        delta = self.image.take_delta()
        if not delta.is_empty:
            self.elections.add(delta.elections)
            self.on_change(delta)
