"""Bugs to plant: each omits one line of Raft, and the simulation must find it.

The core's assertions that would detect a bug at once are removed with it: the test is whether the
invariants, checked from outside, detect the damage.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from broker.log.storage import replace_file
from broker.raft import following, leading, voting
from broker.raft.output import Output
from broker.raft.progress import majority_end_offset
from broker.raft.quorum_state import FILE_NAME, encode_quorum_state
from broker.raft.roles import Prospective, Unattached
from broker.raft.state import RaftState
from broker.records.batch import RecordBatch, split_batches
from broker.server.quorum.raft.driver import READ_BYTES, RaftDriver
from broker.server.quorum.raft.partition_raft_log import PartitionRaftLog
from tests.sim import quorum_node


def skip_the_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report the log as flushed when it is only in the page cache."""

    def flush(raft_log: PartitionRaftLog) -> None:
        log = raft_log._log
        log.finish_flush(log.prepare_flush())

    monkeypatch.setattr(PartitionRaftLog, "flush", flush)


def save_the_vote_lazily(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write `quorum-state` without waiting for the disk."""

    def save(storage, directory, state) -> None:
        path = f"{directory}/{FILE_NAME}"
        replace_file(storage, path, encode_quorum_state(state), is_durable=False)

    monkeypatch.setattr(quorum_node, "save_quorum_state", save)


def send_before_persisting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send messages before the state that they report is on disk."""
    begin = RaftDriver.begin

    def begin_with_sending(driver: RaftDriver) -> Output:
        output = begin(driver)
        for envelope in output.send:
            driver._effects.send(envelope)
        output.send = []
        return output

    monkeypatch.setattr(RaftDriver, "begin", begin_with_sending)


def vote_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vote for every candidate, even after a vote for another one."""

    def may_grant(role, quorum, partition) -> bool:
        if partition.pre_vote:
            return voting._may_grant_pre_vote(role)
        return not quorum.has_leader and isinstance(role, Unattached | Prospective)

    def give_vote(state: RaftState, candidate_id, directory_id, now_ms) -> None:
        quorum = replace(state.quorum, voted_id=candidate_id, voted_directory_id=directory_id)
        state._become(Unattached(state.random_election_deadline_ms(now_ms)), quorum)

    monkeypatch.setattr(voting, "may_grant", may_grant)
    monkeypatch.setattr(RaftState, "give_vote", give_vote)


def vote_for_shorter_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not compare the candidate's log with the voter's (Raft 5.4.1)."""
    monkeypatch.setattr(voting, "is_up_to_date", lambda candidate, own: True)


def commit_old_epochs_by_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count replicas of entries of earlier epochs (Raft 5.4.2, figure 8)."""

    def compute(end_offsets, epoch_start_offset, high_watermark) -> int:
        return max(high_watermark, majority_end_offset(end_offsets))

    monkeypatch.setattr(leading, "compute_high_watermark", compute)


def truncate_below_the_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncate one record more than the leader requires."""

    def truncate(state: RaftState, diverging) -> None:
        own = state.log.end_offset_for_epoch(diverging.leader_epoch)
        offset = min(own.offset, diverging.offset) - 1
        state.log.truncate_to(max(offset, state.log.start_offset))
        state.output.must_flush = True

    monkeypatch.setattr(following, "truncate_to_diverging_epoch", truncate)


def apply_what_was_read_before_it_was_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apply a batch that was read before its commit, without reading it again."""

    def apply_committed(driver: RaftDriver) -> Iterator[None]:
        read: list[RecordBatch] = []
        while driver.applied_offset < driver._high_watermark:
            read = read or list(split_batches(driver._log.read(driver.applied_offset, READ_BYTES)))
            if read[0].next_offset > driver._high_watermark:
                break
            batch = read.pop(0)
            yield from driver._effects.listener.apply(batch)
            driver.applied_offset = batch.next_offset

    monkeypatch.setattr(RaftDriver, "_apply_committed", apply_committed)


MUTATIONS = [
    skip_the_fsync,
    save_the_vote_lazily,
    send_before_persisting,
    vote_twice,
    vote_for_shorter_logs,
    commit_old_epochs_by_count,
    truncate_below_the_high_watermark,
    apply_what_was_read_before_it_was_committed,
]
