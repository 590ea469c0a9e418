"""Bugs to plant in voter sets that change: each omits one rule, and the simulation must find it."""

import pytest

from broker.raft import leading, state, voter_changes, voting
from broker.raft.roles import Leader
from broker.raft.state import RaftState
from broker.raft.voter_history import VoterHistory
from broker.raft.voter_set import VoterSet
from tests.sim import quorum_node


def change_several_voters_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a change before the last one is committed, also in an epoch without a commit."""
    monkeypatch.setattr(voter_changes, "_check_may_change", lambda state, role, what: None)


def keep_truncated_voter_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count by a voter set that truncation has removed from the log."""

    def truncate_to(history: VoterHistory, offset: int) -> None:
        history.end_offset = min(history.end_offset, offset)

    monkeypatch.setattr(VoterHistory, "truncate_to", truncate_to)


def leave_the_voters_out_of_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write snapshots without the voters, as if only the first one needed them."""
    build = quorum_node.build_snapshot

    def without_voters(values, epoch, last_ms, now_ms, voters=None) -> bytes:
        return build(values, epoch, last_ms, now_ms, voters if epoch == 0 else None)

    monkeypatch.setattr(quorum_node, "build_snapshot", without_voters)


def know_voters_by_their_node_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a node that lost its disk for the voter that it was."""
    monkeypatch.setattr(voting, "_is_meant", lambda state, voter_id, directory_id: True)
    monkeypatch.setattr(
        state.VoterSet, "is_voter", lambda voters, key: voters.find(key.node_id) is not None
    )


def lead_on_after_the_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a leader that the committed voters do not have."""
    monkeypatch.setattr(leading, "is_removed", lambda state, role: False)


def answer_before_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer a removal as soon as it is in the leader's log."""
    write = voter_changes._write

    def write_and_answer(state: RaftState, role: Leader, voters, now_ms) -> int:
        end_offset = write(state, role, voters, now_ms)
        voter_changes._finish(state, role, voter_changes.ErrorCode.NONE)
        role.change = voter_changes.VoterChange(None, now_ms)
        role.change.waits_for_commit = False
        return end_offset

    monkeypatch.setattr(voter_changes, "_write", write_and_answer)


def keep_the_first_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never write that a voter is at another address."""
    monkeypatch.setattr(state.VoterSet, "needs_update", lambda voters, voter: False)


def lose_a_voter_when_one_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose a voter when another one has moved."""
    with_voter = state.VoterSet.with_voter

    def without_the_last(voters, voter):
        written = with_voter(voters, voter)
        is_update = len(written.nodes) == len(voters.nodes) > 2
        return VoterSet(written.nodes[:-1]) if is_update else written

    monkeypatch.setattr(state.VoterSet, "with_voter", without_the_last)


MUTATIONS = [
    keep_the_first_endpoints,
    lose_a_voter_when_one_moves,
    change_several_voters_at_once,
    keep_truncated_voter_sets,
    leave_the_voters_out_of_snapshots,
    know_voters_by_their_node_id,
    lead_on_after_the_removal,
    answer_before_the_commit,
]
