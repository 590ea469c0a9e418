"""Who waits until what was done is done everywhere.

A produce with acks=all, a coordinator's replies, a DeleteRecords.
"""

from typing import Protocol

from broker.errors import ErrorCode


class AwaitsCommit(Protocol):
    """One append or deletion that waits for a watermark; told exactly one of these, once."""

    def on_committed(self, error_code: ErrorCode) -> None:
        """Learn that every in-sync replica has it; perhaps too few of them are left."""

    def on_sent_away(self) -> None:
        """Learn that this broker leads no longer: whether it is committed, others decide."""
