"""The roles of a node, one class each, and which may follow which.

A voter (KIP-595; Prospective is KIP-996):

    from         to           when
    Unattached   Unattached   a higher epoch without a leader is seen; a vote is given
                 Follower     the leader of this or a higher epoch is found
                 Prospective  the election timeout expires
    Follower     Unattached   a higher epoch without a leader is seen
                 Follower     the leader of a higher epoch is found
                 Prospective  the fetch timeout expires; the leader has resigned or is gone
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
                 Resigned     a clean stop; no majority has fetched for 1.5 fetch timeouts
    Resigned     Unattached   a higher epoch without a leader is seen
                 Follower     the leader of a higher epoch is found
                 Prospective  the election timeout expires

Only the step to Candidate raises the epoch, by one. An observer is an `Observer` for ever: it looks
for a leader, follows it, and looks again when the fetch timeout expires or a higher epoch is seen.

A node starts with what its `quorum-state` says: as Resigned if it was the leader (its log may have
lost a tail that others have seen, so it must not write under the same epoch again), as Follower if
it knew the leader, else Unattached, with its vote. `TRANSITIONS` is the table as data; every change
of role is checked against it.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from broker.model import OffsetAndEpoch
from broker.raft.config import majority_of
from broker.raft.output import Envelope
from broker.raft.progress import ReplicaProgress


@dataclass(slots=True)
class Tally:
    """The votes of one election. Invariant: a voter is in at most one of the two sets."""

    voters: tuple[int, ...]
    granted: set[int]
    rejected: set[int] = field(default_factory=set)

    def note(self, voter: int, *, is_granted: bool) -> None:
        """Count an answer; a second one of the same voter changes nothing."""
        if voter in self.unanswered:
            (self.granted if is_granted else self.rejected).add(voter)

    @property
    def unanswered(self) -> list[int]:
        """The voters that have not answered yet, in ascending order."""
        return [v for v in self.voters if v not in self.granted and v not in self.rejected]

    @property
    def is_won(self) -> bool:
        """Whether a majority has granted."""
        return len(self.granted) >= majority_of(len(self.voters))

    @property
    def is_lost(self) -> bool:
        """Whether a majority cannot be reached any more."""
        return len(self.voters) - len(self.rejected) < majority_of(len(self.voters))


@dataclass(slots=True)
class Download:
    """A snapshot on its way from the leader: the next byte to ask for."""

    snapshot_id: OffsetAndEpoch
    position: int = 0


class ParkedFetch(NamedTuple):
    """A Fetch that found nothing new; answered when there is, or at the deadline."""

    envelope: Envelope
    fetch_offset: int
    high_watermark: int
    """What the replica knows of it (KIP-1166); it is told at once when there is more to know."""
    max_bytes: int
    deadline_ms: int


@dataclass(slots=True)
class Unattached:
    """Knows no leader of the epoch. May give its vote, once."""

    deadline_ms: int


@dataclass(slots=True)
class Follower:
    """Pulls the leader's log."""

    leader_id: int
    deadline_ms: int
    has_fetched: bool = False
    """Whether the leader has answered: if so, it is alive, and no pre-vote is given (KIP-996)."""
    download: Download | None = None


@dataclass(slots=True)
class Prospective:
    """Asks whether it would be elected, without changing anybody's epoch."""

    deadline_ms: int
    tally: Tally


@dataclass(slots=True)
class Candidate:
    """Has voted for itself in a new epoch and asks for votes."""

    deadline_ms: int
    tally: Tally


@dataclass(slots=True)
class Leader:
    """The only node that appends in this epoch."""

    epoch_start_offset: int
    progress: dict[int, ReplicaProgress]
    """The voters, with this node itself: its own end offset is what it has flushed."""
    observers: dict[int, ReplicaProgress] = field(default_factory=dict)
    parked: list[ParkedFetch] = field(default_factory=list)


@dataclass(slots=True)
class Resigned:
    """Was the leader of this epoch and says so; neither leads nor votes in it."""

    deadline_ms: int
    candidates: list[int]
    """The other voters, the one with the longest log first."""
    unacknowledged: set[int]


@dataclass(slots=True)
class Observer:
    """Pulls the leader's log without a vote."""

    leader_id: int | None
    deadline_ms: int
    """With a leader: the fetch timeout. Without: when the next voter is asked for one."""
    asked: int = 0
    """The place in `voters` of the one that is asked for the leader."""
    download: Download | None = None


Role: TypeAlias = Unattached | Follower | Prospective | Candidate | Leader | Resigned | Observer

TRANSITIONS: dict[type, tuple[type, ...]] = {
    Unattached: (Unattached, Follower, Prospective),
    Follower: (Unattached, Follower, Prospective),
    Prospective: (Unattached, Follower, Candidate),
    Candidate: (Unattached, Follower, Prospective, Leader),
    Leader: (Unattached, Follower, Resigned),
    Resigned: (Unattached, Follower, Prospective),
    Observer: (Observer,),
}
"""What may follow each role."""
