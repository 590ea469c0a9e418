"""The messages between Raft nodes, and the `Output` that an input returns to the shell."""

from dataclasses import dataclass, field
from typing import NamedTuple

from broker.raft.quorum_state import QuorumState
from common.kafka.protocol.message import Message


class Envelope(NamedTuple):
    """A request or a response between two nodes.

    The sender of a request chooses `correlation_id`, and the receiver returns it with the response.
    """

    source: int
    destination: int
    correlation_id: int
    message: Message


class LeaderChange(NamedTuple):
    """A new epoch or a new leader; `leader_id` is None while the epoch has no known leader.

    `start_offset` is the first offset of the leader's epoch. A new leader handles requests only
    after it has applied all records below it, which needs a committed record of its own epoch.
    """

    leader_id: int | None
    leader_epoch: int
    start_offset: int = 0


@dataclass(slots=True)
class Output:
    """The work of the shell after an input, in the order of the fields; see the package."""

    quorum_state: QuorumState | None = None
    """The state to save durably, before all else."""
    must_flush: bool = False
    """Flush the log, then call `RaftNode.flushed`."""
    send: list[Envelope] = field(default_factory=list)
    high_watermark: int | None = None
    """All records below this offset are committed and may be applied."""
    leader_changes: list[LeaderChange] = field(default_factory=list)

    def merge(self, later: "Output") -> None:
        """Add a later input's output, so that one flush serves both."""
        if later.quorum_state is not None:
            self.quorum_state = later.quorum_state
        self.must_flush = self.must_flush or later.must_flush
        self.send += later.send
        if later.high_watermark is not None:
            self.high_watermark = later.high_watermark
        self.leader_changes += later.leader_changes

    @property
    def must_persist(self) -> bool:
        """True if something must be written to disk."""
        return self.must_flush or self.quorum_state is not None

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to do."""
        return not (
            self.must_persist or self.send or self.leader_changes or self.high_watermark is not None
        )
