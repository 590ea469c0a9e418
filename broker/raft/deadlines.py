"""When the caller must call `tick` even if no message arrives: at the node's earliest deadline.

`node.RaftNode.tick` acts on each of these deadlines: after a tick, none of them has passed.
"""

from collections.abc import Iterable
from typing import assert_never

from broker.raft.config import NEVER_MS
from broker.raft.leading import announce_at_ms, quorum_deadline_ms
from broker.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Observer,
    Prospective,
    Resigned,
    Unattached,
)
from broker.raft.state import RaftState


def next_deadline_ms(state: RaftState) -> int:
    """Compute the earliest deadline; a node that is stopping has no election deadline."""
    return min(_times_ms(state), default=NEVER_MS)


def _times_ms(state: RaftState) -> Iterable[int]:
    role, free_at_ms = state.role, state.requests.free_at_ms
    election_ms = [] if state.is_stopping else [getattr(role, "deadline_ms", NEVER_MS)]
    match role:
        case Unattached():
            return election_ms
        case Follower():
            return [*election_ms, free_at_ms(role.leader_id)]
        case Prospective() | Candidate():
            asked = [] if role.tally.is_lost else role.tally.unanswered
            return [role.deadline_ms, *map(free_at_ms, asked)]
        case Leader():
            announcements = (announce_at_ms(state, role, voter) for voter in state.other_voters)
            waits = (parked.deadline_ms for parked in role.parked)
            change = [] if role.change is None else [role.change.deadline_ms]
            return [quorum_deadline_ms(state, role), *announcements, *waits, *change]
        case Resigned():
            return [*election_ms, *map(free_at_ms, role.unacknowledged)]
        case Observer():
            pulls = [] if role.leader_id is None else [free_at_ms(role.leader_id)]
            return [role.deadline_ms, *pulls]
        case _:
            assert_never(role)
