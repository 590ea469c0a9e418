"""Mutations of replication: bugs of other implementations, and ours with one rule left out each.

A mutation also removes the core's assertions that would find it at once: the test is whether the
simulation's invariants find the damage.
"""

import pytest

from broker.metadata.control.leadership import isr as controller_isr
from broker.model import OffsetAndEpoch
from broker.replication import follower as follower_module
from broker.replication import leader
from broker.replication.divergence import UNKNOWN_EPOCH, find_divergence
from broker.replication.follower import FetchPosition, PartitionFollower
from broker.replication.follower_progress import FollowerProgress
from broker.replication.isr import InSyncReplicas
from broker.replication.isr_changes import IsrChanges
from broker.replication.leader import PartitionLeader
from common.kafka.errors import ErrorCode, KafkaError
from tests.sim import replica_cluster
from tests.sim.replica_controller import SimulatedController
from tests.sim.replica_node import ReplicaNode

original_follow = PartitionFollower.follow
original_lead = PartitionLeader.lead


def ask_without_an_epoch(follower: PartitionFollower) -> FetchPosition:
    log = follower.log
    return FetchPosition(
        follower.leader_epoch, log.log_end_offset, UNKNOWN_EPOCH, log.log_start_offset
    )


def truncate_to_the_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncate to the high watermark under a new leader (KIP-101, scenario 1)."""

    def follow(follower: PartitionFollower, partition) -> bool:
        is_new = original_follow(follower, partition)
        if is_new:
            follower.log.truncate_to(follower.log.high_watermark)
        return is_new

    monkeypatch.setattr(PartitionFollower, "follow", follow)
    monkeypatch.setattr(PartitionFollower, "position", ask_without_an_epoch)


def never_truncate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetch from the log end offset without a check of the epochs (KIP-101, scenario 2)."""
    monkeypatch.setattr(PartitionFollower, "position", ask_without_an_epoch)


def truncate_once_to_the_leaders_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncate once to the leader's end of an epoch, not to the common one (KIP-279)."""
    done: dict[PartitionFollower, int] = {}
    position = PartitionFollower.position

    def position_once(follower: PartitionFollower) -> FetchPosition:
        asked = position(follower)
        if done.get(follower) == follower.leader_epoch:
            return asked._replace(last_fetched_epoch=UNKNOWN_EPOCH)
        return asked

    def handle(follower: PartitionFollower, asked, answer, now_ms):
        outcome = original_handle(follower, asked, answer, now_ms)
        if outcome is not follower_module.FollowerOutcome.STALE:
            done[follower] = follower.leader_epoch
        return outcome

    original_handle = PartitionFollower.handle_fetch_answer
    monkeypatch.setattr(PartitionFollower, "position", position_once)
    monkeypatch.setattr(PartitionFollower, "handle_fetch_answer", handle)
    monkeypatch.setattr(
        follower_module,
        "truncation_offset",
        lambda log, leader_end: min(log.log_end_offset, leader_end.offset),
    )


def serve_any_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the check of the leader epoch in a leader and in a follower (KIP-320)."""
    monkeypatch.setattr(leader, "validate_leader_epoch", lambda claimed, current: None)

    def find(log, *, fetch_offset: int, last_fetched_epoch: int) -> OffsetAndEpoch | None:
        try:
            return find_divergence(
                log, fetch_offset=fetch_offset, last_fetched_epoch=last_fetched_epoch
            )
        except KafkaError:
            return OffsetAndEpoch(log.log_end_offset, log.leader_epoch)

    monkeypatch.setattr(leader, "find_divergence", find)
    monkeypatch.setattr(
        PartitionFollower,
        "_is_current",
        lambda follower, asked: asked[1:3] == follower.position()[1:3],
    )


def count_a_follower_of_any_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the check of the leader epoch in a leader only (KIP-320).

    The follower may still be in an earlier epoch and truncate its log for that epoch's leader.
    """
    monkeypatch.setattr(leader, "validate_leader_epoch", lambda claimed, current: None)
    monkeypatch.setattr(
        PartitionFollower,
        "_is_current",
        lambda follower, asked: asked[1:3] == follower.position()[1:3],
    )


def admit_an_earlier_incarnation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the check of the broker epoch, so a broker with a new disk can join (KIP-903)."""

    def is_eligible(view, state) -> bool:
        broker = view.image.brokers.get(state.broker_id)
        return broker is not None and broker.is_active

    monkeypatch.setattr(controller_isr, "_is_eligible", is_eligible)


def let_the_last_replica_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep no eligible leader replicas; the last replica of the ISR is elected (KIP-966)."""

    class WithoutElr(SimulatedController):
        def __init__(self, *arguments, is_elr_enabled: bool) -> None:
            super().__init__(*arguments, is_elr_enabled=False)

    monkeypatch.setattr(replica_cluster, "SimulatedController", WithoutElr)


def commit_below_min_isr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance the high watermark below min.insync.replicas (KIP-966)."""

    def count(partition_leader: PartitionLeader) -> None:
        partition_leader._has_enough_in_sync = True

    monkeypatch.setattr(PartitionLeader, "_count_in_sync", count)


def expand_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a follower at the high watermark that has not reached the leader epoch's start."""
    monkeypatch.setattr(
        PartitionLeader,
        "is_in_sync",
        lambda self, follower: follower.log_end_offset >= self.log.high_watermark,
    )


def forget_the_pending_isr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the committed ISR for the high watermark while a change is pending (KIP-497)."""

    def begin(isr: InSyncReplicas, change) -> None:
        isr.pending = change

    monkeypatch.setattr(InSyncReplicas, "begin", begin)


def shrink_before_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a smaller ISR before the controller has committed it (KIP-497)."""

    def begin(isr: InSyncReplicas, change) -> None:
        isr.pending = change
        isr.maximal = frozenset(broker_id for broker_id, _ in change.isr)

    monkeypatch.setattr(InSyncReplicas, "begin", begin)


def drop_the_pending_isr_with_old_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let metadata of the same partition epoch end a newer pending change."""

    def lead(self: PartitionLeader, partition, now_ms: int) -> bool:
        if partition.partition_epoch == self.partition_epoch:
            self.isr.commit(partition.isr)
            return self._advance(now_ms)
        return original_lead(self, partition, now_ms)

    monkeypatch.setattr(PartitionLeader, "lead", lead)


def decide_on_any_partition_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the check of the partition epoch in AlterPartition (KIP-497)."""

    def validate(partition, broker_id: int, data) -> None:
        if data.leader_epoch < partition.leader_epoch or broker_id != partition.leader:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)

    monkeypatch.setattr(controller_isr, "_validate_epochs", validate)


def lead_before_knowing_oneself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apply metadata from before the own registration, which means an earlier incarnation."""

    def follow_image(self: ReplicaNode, time_ms: int) -> None:
        own = self.image.brokers.get(self.node_id)
        epoch = self.broker_epoch
        if own is not None and epoch >= 0:
            self.broker_epoch = own.epoch
        original(self, time_ms)
        self.broker_epoch = epoch

    original = ReplicaNode.follow_image
    monkeypatch.setattr(ReplicaNode, "follow_image", follow_image)


def take_part_with_every_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report a clean shutdown after every stop."""
    original = ReplicaNode.die

    def die(self: ReplicaNode) -> None:
        epoch = self.broker_epoch
        original(self)
        self.clean_shutdown_epoch = epoch

    monkeypatch.setattr(ReplicaNode, "die", die)


def count_before_comparing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the fetch offset of a follower whose log diverges from the leader's."""
    original = FollowerProgress.note_fetch

    def read(self: ReplicaNode, partition_leader, call, time_ms: int):
        progress = partition_leader.followers.get(call.replica_id)
        log = self.log
        is_same_epoch = call.position.current_leader_epoch == partition_leader.leader_epoch
        if progress is not None and is_same_epoch:
            offset = min(call.position.fetch_offset, log.log_end_offset)
            original(progress, offset, 0, log.log_end_offset, self.now_ms(time_ms))
            partition_leader._advance(self.now_ms(time_ms))
            self.after_leader_call()
        return original_read(self, partition_leader, call, time_ms)

    original_read = ReplicaNode._read
    monkeypatch.setattr(ReplicaNode, "_read", read)


def resend_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send an AlterPartition again and forget the copy that may still arrive.

    Few seeds find it; `test_late_copy` plays the history step by step.
    """

    def handle_no_answer(self: IsrChanges, now_ms: int) -> None:
        original(self, now_ms)
        for waiting in self._waiting.values():
            waiting.unanswered_at_ms = None

    original = IsrChanges.handle_no_answer
    monkeypatch.setattr(IsrChanges, "handle_no_answer", handle_no_answer)


MUTATIONS = [
    truncate_to_the_high_watermark,
    never_truncate,
    truncate_once_to_the_leaders_end,
    serve_any_epoch,
    count_a_follower_of_any_epoch,
    admit_an_earlier_incarnation,
    resend_unseen,
    let_the_last_replica_stand,
    commit_below_min_isr,
    expand_too_early,
    forget_the_pending_isr,
    shrink_before_the_answer,
    drop_the_pending_isr_with_old_news,
    decide_on_any_partition_epoch,
    lead_before_knowing_oneself,
    take_part_with_every_loss,
    count_before_comparing,
]
