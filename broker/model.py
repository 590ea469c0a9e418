"""The few values every layer of the broker shares.

Ranges are half-open, stated here once: `log_end_offset`, `high_watermark`, `last_stable_offset`
and every `*_end_offset` name the NEXT position (exclusive); `last_*` names an inclusive one.
`timestamp_ms` is wall time in milliseconds since 1970 UTC; `now_ms` and `deadline_ms` are
monotonic.
"""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of one topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetAndEpoch(NamedTuple):
    """A position in a log together with the leader epoch under which it was written."""

    offset: int
    leader_epoch: int
