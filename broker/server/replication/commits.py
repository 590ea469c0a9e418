"""Who waits until an append is committed: a produce with acks=all, or a coordinator's replies."""

from typing import Protocol

from broker.errors import ErrorCode


class AwaitsCommit(Protocol):
    """One append that waits for the high watermark; it is told exactly one of these, once."""

    def on_committed(self, error_code: ErrorCode) -> None:
        """Learn that every in-sync replica has it; perhaps too few of them are left."""

    def on_sent_away(self) -> None:
        """Learn that this broker leads no longer: whether it is committed, others decide."""
