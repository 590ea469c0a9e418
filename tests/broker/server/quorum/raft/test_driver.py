"""The driver does things in one order only: persist, send, apply."""

from random import Random

import pytest

from broker.model import OffsetAndEpoch
from broker.raft.config import RaftConfig
from broker.raft.node import RaftNode
from broker.raft.output import Envelope, Output
from broker.raft.quorum_state import DamagedQuorumState, QuorumState
from broker.raft.voter_set import static_voters
from broker.records.errors import CorruptBatch
from broker.server.quorum.raft.driver import Effects, RaftDriver
from broker.server.quorum.raft.raft_shell import load_quorum_state, save_quorum_state
from tests.lib.logs import store_snapshot
from tests.lib.quorum_peer import DIRECTORY, ask_vote, batch_of, open_raft_log, pull
from tests.lib.simulated_storage import SimulatedStorage


class Diary:
    """Writes down what a driver does."""

    def __init__(self, voters=(1,)) -> None:
        self.lines: list[str] = []
        self.applied_epochs: list[int] = []
        self.steps_before_the_last = 0
        self.storage = SimulatedStorage()
        self.log = open_raft_log(self.storage)
        flush = self.log.flush
        self.log.flush = lambda: (self.lines.append("flush"), flush())
        config = RaftConfig(node_id=1, voters=static_voters(voters), cluster_id="cluster")
        self.node = RaftNode(config, QuorumState(), self.log, Random(1))
        effects = Effects(
            lambda state: self.lines.append("save"),
            lambda envelope: self.lines.append(f"send {type(envelope.message).__name__}"),
            self,
        )
        self.driver = RaftDriver(self.node, self.log, 1, effects)
        self.driver.start(0)
        self.driver.run(0)

    def apply(self, batch):
        for step in range(self.steps_before_the_last):
            self.lines.append(f"step {step} of {batch.base_offset}")
            yield
        self.lines.append(f"apply {batch.base_offset}")
        self.applied_epochs.append(batch.header.partition_leader_epoch)

    def load_snapshot(self, snapshot_id, data) -> None:
        self.lines.append(f"load {snapshot_id.offset}")

    def change_leader(self, change) -> None:
        self.lines.append(f"leader {change.leader_id} in {change.leader_epoch}")


def test_a_leader_hears_of_itself_when_everything_before_is_applied():
    assert Diary().lines == ["save", "flush", "leader None in 1", "apply 0", "leader 1 in 1"]


def test_many_appends_take_one_flush():
    diary = Diary()
    diary.lines.clear()
    for value in "abc":
        diary.driver.take(diary.node.append(batch_of(value), 0)[1])
    diary.driver.run(0)
    assert diary.lines == ["flush", "apply 1", "apply 2", "apply 3"]


def test_a_batch_of_very_much_is_applied_in_steps_and_counts_after_the_last():
    diary = Diary()
    diary.lines.clear()
    diary.steps_before_the_last = 2
    for value in "ab":
        diary.driver.take(diary.node.append(batch_of(value), 0)[1])
    seen = []
    while diary.driver.has_work:
        diary.driver.run(0)
        seen.append((diary.lines[-1], diary.driver.applied_offset))
    assert seen == [
        ("step 0 of 1", 1),
        ("step 1 of 1", 1),
        ("step 0 of 2", 2),
        ("step 1 of 2", 2),
        ("apply 2", 3),
    ]
    assert not diary.driver.is_applying


def test_what_is_committed_between_two_steps_comes_after_the_batch():
    diary = Diary()
    diary.lines.clear()
    diary.steps_before_the_last = 1
    diary.driver.take(diary.node.append(batch_of("a"), 0)[1])
    diary.driver.run(0)
    diary.steps_before_the_last = 0
    diary.driver.take(diary.node.append(batch_of("b"), 0)[1])
    diary.driver.run(0)
    assert diary.lines == ["flush", "step 0 of 1", "flush", "apply 1", "apply 2"]
    assert not diary.driver.has_work


def test_what_another_leader_replaces_between_two_steps_is_never_applied():
    diary = Diary(voters=(1, 2, 3))
    diary.steps_before_the_last = 1
    for value in ("committed", "lost"):
        diary.log.append_as_leader(batch_of(value), 1)
    diary.driver.take(Output(high_watermark=1))
    diary.driver.run(0)
    assert diary.driver.is_applying
    diary.log.truncate_to(1)
    diary.log.append_as_leader(batch_of("of the next leader"), 2)
    diary.driver.take(Output(high_watermark=2))
    while diary.driver.has_work:
        diary.driver.run(0)
    assert diary.applied_epochs == [1, 2]


def test_a_snapshot_that_comes_between_two_steps_takes_the_place_of_the_batch():
    diary = Diary()
    diary.steps_before_the_last = 1
    diary.driver.take(diary.node.append(batch_of("a"), 0)[1])
    diary.driver.run(0)
    assert diary.driver.is_applying
    diary.driver.take(diary.node.append(batch_of("b"), 0)[1])
    store_snapshot(diary.log, OffsetAndEpoch(2, 1), b"state")
    diary.log.delete_before_snapshot(OffsetAndEpoch(2, 1))
    diary.lines.clear()
    diary.steps_before_the_last = 0
    diary.driver.run(0)
    assert diary.lines == ["flush", "load 2", "apply 2"]
    assert diary.driver.applied_offset == 3


def test_a_vote_is_saved_before_it_is_sent():
    diary = Diary(voters=(1, 2, 3))
    diary.lines.clear()
    diary.driver.take(diary.node.step(_from(2, ask_vote(2, 1)), 0))
    diary.driver.run(0)
    assert diary.lines[:2] == ["save", "send VoteResponse"]


def test_a_snapshot_is_loaded_where_the_log_does_not_begin_at_0():
    diary = Diary()
    for value in "abc":
        diary.driver.take(diary.node.append(batch_of(value), 0)[1])
    diary.driver.run(0)
    store_snapshot(diary.log, OffsetAndEpoch(3, 1), b"state")
    diary.log.delete_before_snapshot(OffsetAndEpoch(3, 1))
    diary.lines.clear()
    config = RaftConfig(node_id=1, voters=static_voters((1,)), cluster_id="cluster")
    node = RaftNode(config, diary.node.quorum, diary.log, Random(1))
    driver = RaftDriver(node, diary.log, 1, diary.driver._effects)
    driver.start(0)
    driver.run(0)
    assert diary.lines[:3] == ["save", "flush", "leader None in 2"]
    assert diary.lines[3:] == ["load 3", "apply 3", "apply 4", "leader 1 in 2"]


@pytest.mark.parametrize("at", [8, 30, 70])
def test_a_flipped_byte_in_the_log_is_never_applied(at):
    diary = Diary()
    diary.driver.take(diary.node.append(batch_of("a"), 0)[1])
    diary.driver.run(0)
    file = diary.storage.open(f"{DIRECTORY}/{0:020d}.log")
    file.write(at, bytes([file.read(at, 1)[0] ^ 1]))
    diary.lines.clear()
    # At the start a node looks for voter sets, so it reads its control batches before all else.
    with pytest.raises(CorruptBatch):
        RaftNode(diary.node._state.config, diary.node.quorum, diary.log, Random(1))
    assert not [line for line in diary.lines if line.startswith("apply")]


def test_a_message_that_is_none_of_the_quorums_is_a_bug():
    diary = Diary()
    with pytest.raises(AssertionError, match="no message of the quorum"):
        diary.node.step(_from(2, object()), 0)


def test_the_file_survives_a_power_failure():
    storage = SimulatedStorage()
    storage.make_directory(DIRECTORY)
    storage.sync_directory("/logs")
    assert load_quorum_state(storage, DIRECTORY) == QuorumState()
    state = QuorumState(leader_epoch=3, voted_id=2)
    save_quorum_state(storage, DIRECTORY, state)
    storage.crash(keep_unsynced=False)
    assert load_quorum_state(storage, DIRECTORY) == state


def test_an_empty_file_is_damage_not_a_new_node():
    storage = SimulatedStorage()
    storage.make_directory(DIRECTORY)
    storage.open(f"{DIRECTORY}/quorum-state", create=True)
    with pytest.raises(DamagedQuorumState):
        load_quorum_state(storage, DIRECTORY)


def _from(source: int, message):
    return Envelope(source, 1, 1, message)


def test_pull_is_answered_after_the_flush():
    diary = Diary()
    diary.driver.take(diary.node.step(_from(101, pull(101, 1, 1, 1, high_watermark=1)), 0))
    diary.driver.run(0)
    diary.lines.clear()
    diary.driver.take(diary.node.append(batch_of("a"), 0)[1])
    diary.driver.run(0)
    assert diary.lines[:2] == ["flush", "send FetchResponse"]
