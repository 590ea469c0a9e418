"""What goes in and out of a Raft node: envelopes, and what is to be done, in order."""

from dataclasses import dataclass, field
from typing import NamedTuple

from broker.protocol.message import Message
from broker.raft.quorum_state import QuorumState


class Envelope(NamedTuple):
    """A request or a response between two nodes.

    The sender of a request chooses `correlation_id`; to the receiver it is a token to answer with.
    """

    source: int
    destination: int
    correlation_id: int
    message: Message


class LeaderChange(NamedTuple):
    """A new epoch or a new leader; `leader_id` is None while there is none.

    A leader acts as one only after it has applied everything below `start_offset`, its epoch's
    first offset, which it reaches once a record of its own epoch is committed.
    """

    leader_id: int | None
    leader_epoch: int
    start_offset: int = 0


@dataclass(slots=True)
class Output:
    """What to do after an input, in the order of the fields; see the package."""

    quorum_state: QuorumState | None = None
    """To be saved, durably, before anything else happens."""
    must_flush: bool = False
    """Flush the log, then call `RaftNode.flushed`."""
    send: list[Envelope] = field(default_factory=list)
    high_watermark: int | None = None
    """Everything below is committed now and may be applied."""
    leader_changes: list[LeaderChange] = field(default_factory=list)

    def merge(self, later: "Output") -> None:
        """Take over what a later input asks for, so that both are carried out with one flush."""
        if later.quorum_state is not None:
            self.quorum_state = later.quorum_state
        self.must_flush = self.must_flush or later.must_flush
        self.send += later.send
        if later.high_watermark is not None:
            self.high_watermark = later.high_watermark
        self.leader_changes += later.leader_changes

    @property
    def must_persist(self) -> bool:
        """Whether the disk has work."""
        return self.must_flush or self.quorum_state is not None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (
            self.must_persist or self.send or self.leader_changes or self.high_watermark is not None
        )
