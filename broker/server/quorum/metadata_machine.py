"""What the quorum replicates: committed batches in, the cluster's image out.

Invariant: `image` is what all records below `position.offset` add up to, and nothing else. A batch
of very many records is so read and prepared in steps, which change nothing; what is left of it then
is quick, and done in one.
"""

from collections.abc import Callable, Iterator

from broker.metadata.delta import Elections, MetadataDelta
from broker.metadata.difference import compute_difference
from broker.metadata.image import MetadataImage
from broker.model import OffsetAndEpoch
from broker.protocol.records.metadata import decode_metadata_record
from broker.raft.output import LeaderChange
from broker.records.batch import RecordBatch
from broker.server.quorum.raft.snapshot_format import snapshot_values

RECORDS_PER_STEP = 256
"""Of some ten microseconds each: others come in between."""


class MetadataMachine:
    """The `QuorumListener` of a node; `on_change` gets what changed, when `tell` is called."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.position = OffsetAndEpoch(0, 0)
        """Where the last applied batch ends, and its epoch: the name of a snapshot of `image`."""
        self.last_timestamp_ms = -1
        self.bytes_since_snapshot = 0
        self.elections = Elections()
        """Of partitions, since this node has started; those in a snapshot are not known."""
        self.leader_changes: list[LeaderChange] = []
        """What was heard of leaders, for the owner to take."""
        self.on_change: Callable[[MetadataDelta], None] = lambda delta: None

    def load_snapshot(self, snapshot_id: OffsetAndEpoch, data: bytes) -> None:
        """Go on with the image of a snapshot; who follows is told what is different in it."""
        self.tell()
        old, image = self.image, MetadataImage()
        for value in snapshot_values(data):
            image.replay(decode_metadata_record(value))
        image.take_delta()
        self.image, self.position = image, snapshot_id
        self.bytes_since_snapshot = 0
        delta = compute_difference(old, image)
        if not delta.is_empty:
            self.on_change(delta)

    def apply(self, batch: RecordBatch) -> Iterator[None]:
        """Replay a committed batch: nothing of it before the last step, and all of it then."""
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
        """Keep what was heard, in its order."""
        self.leader_changes.append(change)

    def tell(self) -> None:
        """Tell who follows what the batches since the last time have changed."""
        delta = self.image.take_delta()
        if not delta.is_empty:
            self.elections.add(delta.elections)
            self.on_change(delta)
