"""One session at the server: each partition's request, and what the server last sent of it.

An incremental answer contains a partition only if there is news: records, a high watermark or log
start offset other than the last ones sent, a preferred read replica, a divergence, or an error.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.fetch import FetchPartition, PartitionData
from common.kafka.protocol.wire import blob_size_bytes

NO_SESSION = 0
FULL_EPOCH = 0
"""The epoch of a request that names all partitions and asks for a session."""
FINAL_EPOCH = -1
"""The epoch of a request that names all partitions and asks for no session."""
MAX_EPOCH = (1 << 31) - 1


def next_epoch(epoch: int) -> int:
    """Return the epoch of the next request; 1 follows the largest, because 0 is FULL_EPOCH."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == MAX_EPOCH else epoch + 1


PartitionKey = tuple[bytes | str, int]
"""Partition and topic id (version 13 and later) or topic name; one session has only one kind."""

NOT_TOLD = -1
NO_ERROR = ErrorCode.NONE.value


@dataclass(slots=True)
class SessionPartition:
    """The request for one partition, and what the server last sent of it."""

    asked: FetchPartition
    high_watermark: int = NOT_TOLD
    log_start_offset: int = NOT_TOLD
    read_from: object | None = None
    """The replica that the last successful read of `asked` used: it saves a lookup."""

    def is_told(self, high_watermark: int, log_start_offset: int) -> bool:
        """True if the last answer had these values."""
        return self.high_watermark == high_watermark and self.log_start_offset == log_start_offset

    def note_told(self, answer: PartitionData) -> bool:
        """Note an answer; return True if it must be sent."""
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
            # The end of the error must be sent too.
            self.high_watermark = NOT_TOLD
            return True
        return has_news


@dataclass(slots=True)
class FetchSession:
    """Invariant: `epoch` is the epoch that the next request must have."""

    session_id: int
    owner: Hashable
    """The principal that may use the session; to any other one it does not exist."""
    is_privileged: bool
    """True for a follower's session, which is never evicted for a consumer's."""
    uses_topic_ids: bool
    created_ms: int
    last_used_ms: int
    epoch: int = 1
    partitions: dict[PartitionKey, SessionPartition] = field(default_factory=dict)
    """Partitions that just returned records move to the end, so that a byte limit starves none."""
    rest: object | None = None
    """The shell's record of news in this session; see `broker/server/replication/resting.py`."""
    last_size: int = 0
    """The number of partitions at the last use, which ranks the session for eviction."""

    def update(
        self,
        asked: Iterable[tuple[PartitionKey, FetchPartition]],
        forgotten: Iterable[PartitionKey],
    ) -> None:
        """Apply the changes of a request."""
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
        """Return the partitions to read, in order."""
        for key, partition in self.partitions.items():
            yield key, partition.asked

    def select(
        self, answers: Iterable[tuple[PartitionKey, PartitionData]]
    ) -> list[tuple[PartitionKey, PartitionData]]:
        """Return the answers that must be sent, and note that they are sent."""
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
