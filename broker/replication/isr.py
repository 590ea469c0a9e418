"""The in-sync set of a partition at its leader, and the one change that may be under way (KIP-497).

Only the controller changes the set; the leader asks (AlterPartition), naming the partition epoch it
knows, so that of two changes made from the same state one is refused. While it does not know the
answer, either may be true, and the *maximal* set, what both allow together, counts for the high
watermark: the larger one is always safe.

What an answer makes of a change that is pending; a dash leaves it so:

    NONE                                COMMITTED, with the set and partition epoch of the answer
    INELIGIBLE_REPLICA                  COMMITTED as before: certainly nothing was changed
    OPERATION_NOT_ATTEMPTED             COMMITTED as before: it was never sent
    FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, INVALID_REQUEST, UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION, NEW_LEADER_ELECTED
                                        -, until metadata says what is: it may have been made
    anything else                       -, and it is sent again

Metadata of a newer partition epoch replaces whatever is here. Metadata of the same one does not: it
says what the last answer said, and a change that began since must go on to count.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from broker.errors import ErrorCode


class IsrChange(NamedTuple):
    """What an AlterPartition asks for one partition, made in one state and valid only in that."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    """(broker id, broker epoch) of each; the epoch is -1 where the leader has not heard of one."""
    before: frozenset[int]
    """The set it was made from."""


class ChangeOutcome(Enum):
    """What becomes of a change with an answer."""

    DONE = "done"  # the set is committed: perhaps the high watermark may move
    REFUSED = "refused"  # the set is as before
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
    """Return what an answer's error means: the table of this module."""
    return _OUTCOMES.get(ErrorCode(error_code), ChangeOutcome.RETRY)


class InSyncReplicas:
    """Invariant: `committed` is a part of `maximal`, and equal to it unless a change is pending."""

    __slots__ = ("committed", "maximal", "pending")

    def __init__(self, committed: Iterable[int]) -> None:
        self.committed = frozenset(committed)
        self.maximal = self.committed
        self.pending: IsrChange | None = None

    def commit(self, isr: Iterable[int]) -> None:
        """Take over what the controller has decided."""
        self.committed = self.maximal = frozenset(isr)
        self.pending = None

    def begin(self, change: IsrChange) -> None:
        """Ask for a change; until it is decided both sets count."""
        assert self.pending is None, (self.pending, change)
        self.pending = change
        self.maximal = self.committed | {broker_id for broker_id, _ in change.isr}

    def abandon(self) -> None:
        """Go back to the committed set, because the change was certainly not made."""
        self.maximal = self.committed
        self.pending = None
