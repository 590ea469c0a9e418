"""The roles of a node, one class each, and the transitions between them.

A voter (KIP-595; Prospective is KIP-996):

    from         to           when
    Unattached   Unattached   a higher epoch without a leader is seen; a vote is given
                 Follower     the leader of this or a higher epoch is found
                 Prospective  the election timeout expires
    Follower     Unattached   a higher epoch without a leader is seen
                 Follower     the leader of a higher epoch is found
                 Prospective  the fetch timeout expires; the leader has resigned or is gone
                 Observer     a voter set without this node is committed
    Prospective  Unattached   a higher epoch is seen; a vote is given; the pre-vote is lost and no
                              leader was known
                 Follower     a leader is found; the pre-vote is lost and a leader was known
                 Candidate    the pre-vote is won
    Candidate    Unattached   a higher epoch without a leader is seen
                 Follower     the leader of this or a higher epoch is found
                 Prospective  the vote is lost, or the election timeout expires
                 Leader       the vote is won
    Leader       Unattached   a higher epoch without a leader is seen
                 Follower     the leader of a higher epoch is found
                 Resigned     a clean stop; no majority has fetched for 1.5 fetch timeouts; a voter
                              set without this node is committed
                 Observer     a higher epoch is seen after the removal of this node
    Resigned     Unattached   a higher epoch without a leader is seen
                 Follower     the leader of a higher epoch is found
                 Prospective  the election timeout expires
                 Observer     any of these, after the removal of this node is committed
    Observer     Observer     a leader is found; the fetch timeout expires; a higher epoch is seen;
                              a vote is given
                 Unattached   a voter set with this node is in the log, and no leader is known
                 Follower     a voter set with this node is in the log, and a leader is known

Only the transition to Candidate raises the epoch on the node's own initiative, by one. An
`Observer` is no voter, and has not been one since a committed record: it looks for a leader,
follows it, and looks again when the fetch timeout expires or it sees a higher epoch. An observer
with the controller role gives votes, because the voters may have made it one of them in a record
that it has not fetched yet (KIP-853); it starts no election. A voter whose removal is not known to
be committed keeps its role, without counting itself (`RaftState.takes_part`).

The saved `quorum-state` decides the first role. A node that was the leader starts as Resigned: its
log may have lost records that others have read, so it must not write again under the same epoch. A
node that knew the leader starts as Follower, any other as Unattached, with its vote. `TRANSITIONS`
is the table as data; `RaftState` asserts every change of role against it.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from broker.model import OffsetAndEpoch
from broker.raft.config import majority_of
from broker.raft.output import Envelope
from broker.raft.progress import ReplicaProgress
from broker.raft.voter_set import ReplicaKey, VoterNode, VoterSet


@dataclass(slots=True)
class Tally:
    """The votes of one election. Invariant: a voter is in at most one of the two sets."""

    voters: tuple[int, ...]
    granted: set[int]
    rejected: set[int] = field(default_factory=set)

    def note(self, voter: int, *, is_granted: bool) -> None:
        """Count an answer; a second answer of the same voter changes nothing."""
        if voter in self.unanswered:
            (self.granted if is_granted else self.rejected).add(voter)

    @property
    def unanswered(self) -> list[int]:
        """The voters that have not answered, in ascending order."""
        return [v for v in self.voters if v not in self.granted and v not in self.rejected]

    @property
    def is_won(self) -> bool:
        """True if a majority has granted its vote."""
        return len(self.granted) >= majority_of(len(self.voters))

    @property
    def is_lost(self) -> bool:
        """True if the remaining answers cannot make a majority."""
        return len(self.voters) - len(self.rejected) < majority_of(len(self.voters))


@dataclass(slots=True)
class Download:
    """The download of a snapshot from the leader; `position` is the next byte to ask for."""

    snapshot_id: OffsetAndEpoch
    position: int = 0


class ParkedFetch(NamedTuple):
    """A Fetch that found nothing new. It is answered when there is, or at the deadline."""

    envelope: Envelope
    fetch_offset: int
    high_watermark: int
    """The high watermark that the replica knows (KIP-1166); a higher one is sent at once."""
    max_bytes: int
    deadline_ms: int


@dataclass(slots=True)
class VoterChange:
    """An addition or a removal that a leader has begun. There is one at a time (`voter_changes`).

    The answer is sent when the change is committed, or fails, or at the deadline. A change that was
    not answered in time may still be committed.
    """

    envelope: Envelope
    """The request to answer."""
    deadline_ms: int
    added: VoterNode | None = None
    """The new voter of an addition."""
    waits_for_commit: bool = True
    end_offset: int | None = None
    """The end of the record in the log; None while the new voter is asked for its versions."""

    @property
    def is_answered(self) -> bool:
        """True if the request asked for an answer as soon as the record is in the log."""
        return self.end_offset is not None and not self.waits_for_commit


@dataclass(slots=True)
class Unattached:
    """The node knows no leader of the epoch. It may vote once."""

    deadline_ms: int


@dataclass(slots=True)
class Follower:
    """The node fetches the leader's log."""

    leader_id: int
    deadline_ms: int
    has_fetched: bool = False
    """True if the leader has answered. The node then rejects a pre-vote (KIP-996)."""
    download: Download | None = None
    tell_at_ms: int = 0
    """When to tell the leader what it should know of this voter; see `joining`."""
    has_told: bool = False
    """True if the leader knows this node's endpoints and directory."""


@dataclass(slots=True)
class Prospective:
    """The node asks for pre-votes, which change no node's epoch."""

    deadline_ms: int
    tally: Tally


@dataclass(slots=True)
class Candidate:
    """The node has voted for itself in a new epoch and asks for votes."""

    deadline_ms: int
    tally: Tally


@dataclass(slots=True)
class Leader:
    """The only node that appends in this epoch."""

    epoch_start_offset: int
    progress: dict[int, ReplicaProgress]
    """The voters by node id, this node with what it has flushed, unless it was removed."""
    observers: dict[ReplicaKey, ReplicaProgress] = field(default_factory=dict)
    change: VoterChange | None = None
    described: VoterSet | None = None
    """With kraft.version 0: the voters with what they told of themselves (UpdateRaftVoter)."""
    parked: list[ParkedFetch] = field(default_factory=list)


@dataclass(slots=True)
class Resigned:
    """The node led this epoch and has resigned; it neither leads nor votes in the epoch."""

    deadline_ms: int
    candidates: list[int]
    """The other voters, the one with the longest log first."""
    unacknowledged: set[int]


@dataclass(slots=True)
class Observer:
    """The node fetches the leader's log and has no vote."""

    leader_id: int | None
    deadline_ms: int
    """With a leader, the fetch timeout; without one, when to ask the next voter for the leader."""
    asked: int = 0
    """The index in `state.sources` of the node that is asked for the leader."""
    download: Download | None = None
    tell_at_ms: int = 0
    """When to ask the leader to become a voter; see `joining`."""


Role: TypeAlias = Unattached | Follower | Prospective | Candidate | Leader | Resigned | Observer

TRANSITIONS: dict[type, tuple[type, ...]] = {
    Unattached: (Unattached, Follower, Prospective),
    Follower: (Unattached, Follower, Prospective, Observer),
    Prospective: (Unattached, Follower, Candidate),
    Candidate: (Unattached, Follower, Prospective, Leader),
    Leader: (Unattached, Follower, Resigned, Observer),
    Resigned: (Unattached, Follower, Prospective, Observer),
    Observer: (Observer, Unattached, Follower),
}
"""The roles that may follow each role."""
