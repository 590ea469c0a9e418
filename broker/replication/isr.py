"""The in-sync set of a partition at its leader, and the one change that may be pending (KIP-497).

Only the controller changes the set. The leader asks for a change (AlterPartition) and names the
partition epoch that it knows, so that the controller refuses one of two changes made from the same
state. While the leader does not know the answer, either set may be the valid one. The high
watermark then uses the *maximal* set, the union of both, which is always safe.

The effect of an answer on a pending change:

    NONE                                COMMITTED, with the set and partition epoch of the answer
    INELIGIBLE_REPLICA                  COMMITTED with the earlier set: nothing was changed
    OPERATION_NOT_ATTEMPTED             COMMITTED with the earlier set: nothing was changed
    FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, INVALID_REQUEST, UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION, NEW_LEADER_ELECTED
                                        still pending until the metadata shows the outcome: the
                                        change may have been made
    any other error                     still pending, and sent again

Metadata of a newer partition epoch replaces the set and the pending change. Metadata of the same
partition epoch does not: it repeats the last answer, and a change that began after that answer must
continue to count.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from common.kafka.errors import ErrorCode


class IsrChange(NamedTuple):
    """The AlterPartition change of one partition, valid only in the state it was made from."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    """The (broker id, broker epoch) of each member; the epoch is -1 if the leader has none."""
    before: frozenset[int]
    """The in-sync set that the change was made from."""


class ChangeOutcome(Enum):
    """The effect of an answer on a pending change."""

    DONE = "done"  # the set is committed, and the high watermark may move
    REFUSED = "refused"  # the set is unchanged
    AWAIT_METADATA = "await metadata"
    RETRY = "retry"


_OUTCOMES = {
    ErrorCode.NONE: ChangeOutcome.DONE,
    ErrorCode.INELIGIBLE_REPLICA: ChangeOutcome.REFUSED,
    ErrorCode.OPERATION_NOT_ATTEMPTED: ChangeOutcome.REFUSED,
    ErrorCode.FENCED_LEADER_EPOCH: ChangeOutcome.AWAIT_METADATA,
    ErrorCode.INVALID_UPDATE_VERSION: ChangeOutcome.AWAIT_METADATA,
    ErrorCode.INVALID_REQUEST: ChangeOutcome.AWAIT_METADATA,
    ErrorCode.UNKNOWN_TOPIC_ID: ChangeOutcome.AWAIT_METADATA,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ChangeOutcome.AWAIT_METADATA,
    ErrorCode.NEW_LEADER_ELECTED: ChangeOutcome.AWAIT_METADATA,
}


def outcome_of(error_code: int) -> ChangeOutcome:
    """Return the outcome for an answer's error code, by the table of this module."""
    return _OUTCOMES.get(ErrorCode(error_code), ChangeOutcome.RETRY)


class InSyncReplicas:
    """Invariant: `committed` is a subset of `maximal`, and equal to it if no change is pending."""

    __slots__ = ("committed", "maximal", "pending")

    def __init__(self, committed: Iterable[int]) -> None:
        self.committed = frozenset(committed)
        self.maximal = self.committed
        self.pending: IsrChange | None = None

    def commit(self, isr: Iterable[int]) -> None:
        """Take over the set that the controller has decided."""
        self.committed = self.maximal = frozenset(isr)
        self.pending = None

    def begin(self, change: IsrChange) -> None:
        """Begin a change; until the controller decides, the union of both sets counts."""
        assert self.pending is None, (self.pending, change)
        self.pending = change
        self.maximal = self.committed | {broker_id for broker_id, _ in change.isr}

    def abandon(self) -> None:
        """Return to the committed set, because the change was certainly not made."""
        self.maximal = self.committed
        self.pending = None
