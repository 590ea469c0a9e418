"""One session at the server: what a fetcher wants of each partition, and what it has been told.

An incremental answer has a partition only if there is something to say of it: records, another high
watermark or log start than it was told last, a replica to read from, a divergence, or an error.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from broker.errors import ErrorCode
from broker.protocol.messages.fetch import FetchPartition, PartitionData
from broker.protocol.wire import blob_size_bytes

PartitionKey = tuple[bytes | str, int]
"""Topic id (version 13 and later) or topic name, and partition: never both kinds in one session."""

NOT_TOLD = -1
NO_ERROR = ErrorCode.NONE.value


@dataclass(slots=True)
class SessionPartition:
    """What is asked of one partition, and what was told of it last."""

    asked: FetchPartition
    high_watermark: int = NOT_TOLD
    log_start_offset: int = NOT_TOLD
    read_from: object | None = None
    """What `asked` was read from last, when all was well: it need not be looked up again."""

    def is_told(self, high_watermark: int, log_start_offset: int) -> bool:
        """Whether the last answer said so."""
        return self.high_watermark == high_watermark and self.log_start_offset == log_start_offset

    def note_told(self, answer: PartitionData) -> bool:
        """Note an answer; tell whether it has to be sent."""
        has_news = (
            bool(answer.records and blob_size_bytes(answer.records))
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
            or answer.preferred_read_replica >= 0
            or answer.diverging_epoch.epoch >= 0
        )
        self.high_watermark = answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        if answer.error_code != NO_ERROR:
            # When the error is over, that is news too.
            self.high_watermark = NOT_TOLD
            return True
        return has_news


@dataclass(slots=True)
class FetchSession:
    """Invariant: `epoch` is that of the request that comes next."""

    session_id: int
    owner: Hashable
    """Who may go on with it; anybody else has no such session."""
    is_privileged: bool
    """Of a follower: nobody else's session is worth its place."""
    uses_topic_ids: bool
    created_ms: int
    last_used_ms: int
    epoch: int = 1
    partitions: dict[PartitionKey, SessionPartition] = field(default_factory=dict)
    """Those that had records last come last, so that everybody's turn comes under a byte limit."""
    rest: object | None = None
    """What its server keeps of what is new in it; see `broker/server/replication/resting.py`."""
    last_size: int = 0
    """How many partitions it had when it was used last: what it is worth."""

    def update(
        self,
        asked: Iterable[tuple[PartitionKey, FetchPartition]],
        forgotten: Iterable[PartitionKey],
    ) -> None:
        """Take over what a request changes."""
        for key, wanted in asked:
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = SessionPartition(wanted)
            else:
                known.asked = wanted
                known.read_from = None
        for key in forgotten:
            self.partitions.pop(key, None)

    def asked(self) -> Iterator[tuple[PartitionKey, FetchPartition]]:
        """Return what is to be read, in the order of their turns."""
        for key, partition in self.partitions.items():
            yield key, partition.asked

    def select(
        self, answers: Iterable[tuple[PartitionKey, PartitionData]]
    ) -> list[tuple[PartitionKey, PartitionData]]:
        """Return what of the answers has to be sent, and note that it is told."""
        selected = []
        for key, answer in answers:
            partition = self.partitions.get(key)
            if partition is None or not partition.note_told(answer):
                continue
            selected.append((key, answer))
            if answer.records and blob_size_bytes(answer.records):
                del self.partitions[key]
                self.partitions[key] = partition
        return selected
