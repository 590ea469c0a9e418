"""Requests that wait until all replicas have an append or a deletion.

These are a Produce with acks=all, the replies of a coordinator, and a DeleteRecords.
"""

from typing import Protocol

from common.kafka.errors import ErrorCode


class AwaitsCommit(Protocol):
    """One append or deletion that waits for a watermark; exactly one method is called, once."""

    def on_committed(self, error_code: ErrorCode) -> None:
        """Handle the commit: every in-sync replica has it; there may be too few of them."""

    def on_sent_away(self) -> None:
        """Handle the loss of leadership: other brokers decide whether it is committed."""
