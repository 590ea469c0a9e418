"""The leader's decisions: high watermark, in-sync set, acknowledgements, fencing."""

import pytest

from broker.metadata.image import PartitionImage
from broker.model import OffsetAndEpoch
from broker.replication.leader import PartitionLeader
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.alter_partition import PartitionResult
from tests.sim.replica_log import ReplicaLog

LAG_MS = 100
EPOCHS = {1: 11, 2: 12, 3: 13}


class Cluster:
    """A leader of broker 1 with followers 2 and 3, and what it knows of the brokers."""

    def __init__(self, isr=(1, 2, 3), replicas=(1, 2, 3), min_isr: int = 2) -> None:
        self.active = dict(EPOCHS)
        self.log = ReplicaLog()
        self.leader: PartitionLeader[str] = PartitionLeader(
            1, self.log, self.active.get, min_insync_replicas=min_isr, lag_time_max_ms=LAG_MS
        )
        self.partition = PartitionImage(0, replicas, isr, leader=1, leader_epoch=5)
        self.leader.lead(self.partition, 0)

    def append(self, count: int = 1, now_ms: int = 0) -> bool:
        for _ in range(count):
            self.log.append_as_leader(7, self.leader.leader_epoch)
        return self.leader.note_append(now_ms)

    def fetch(self, replica: int, offset: int, now_ms: int = 0, broker_epoch: int = 0) -> bool:
        broker_epoch = broker_epoch or EPOCHS[replica]
        self.leader.validate_follower(replica, broker_epoch)
        return self.leader.note_fetch(replica, broker_epoch, offset, 0, now_ms)

    def metadata(self, **changes) -> bool:
        image = self.partition.copy()
        image.partition_epoch = self.leader.partition_epoch + 1
        for name, value in changes.items():
            setattr(image, name, value)
        self.partition = image
        return self.leader.lead(image, 0)

    def answer(self, change, error: ErrorCode = ErrorCode.NONE, **more) -> bool:
        result = PartitionResult(
            error_code=error,
            leader_id=1,
            leader_epoch=5,
            isr=[broker_id for broker_id, _ in change.isr],
            partition_epoch=change.partition_epoch + 1,
        )
        for name, value in more.items():
            setattr(result, name, value)
        return self.leader.handle_isr_answer(change, result, 0)


def code_of(refused) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        refused()
    return raised.value.code


# --- the high watermark ---


def test_a_partition_with_one_replica_commits_what_it_appends():
    cluster = Cluster(isr=(1,), replicas=(1,), min_isr=2)
    assert cluster.append(3)
    assert cluster.log.high_watermark == 3


def test_the_high_watermark_is_what_all_in_sync_replicas_have():
    cluster = Cluster()
    assert not cluster.append(5)
    assert not cluster.fetch(2, 5)
    assert cluster.fetch(3, 4)
    assert cluster.log.high_watermark == 4


def test_it_waits_for_a_follower_that_is_about_to_join_but_not_for_one_that_lags():
    cluster = Cluster(isr=(1, 2))
    cluster.append(5)
    cluster.fetch(3, 5, now_ms=10)
    cluster.leader.take_isr_change()
    cluster.leader.isr.abandon()  # refused: it is caught up, and not in sync
    cluster.append(5, now_ms=20)
    assert cluster.fetch(2, 10, now_ms=20)
    assert cluster.log.high_watermark == 5
    assert cluster.leader.note_append(10 + LAG_MS + 1)
    assert cluster.log.high_watermark == 10


def test_it_does_not_move_while_too_few_are_in_sync():
    cluster = Cluster(isr=(1,))
    assert not cluster.append(5)
    assert cluster.log.high_watermark == 0
    assert cluster.leader.update_min_insync_replicas(1, 0)
    assert cluster.log.high_watermark == 5


def test_positions_of_an_earlier_epoch_do_not_count():
    cluster = Cluster()
    cluster.append(5)
    cluster.fetch(2, 5)
    cluster.metadata(leader_epoch=6)
    assert not cluster.fetch(3, 5)
    assert cluster.log.high_watermark == 0


def test_a_replica_that_is_removed_is_not_waited_for():
    cluster = Cluster()
    cluster.append(5)
    cluster.fetch(2, 5)
    assert cluster.metadata(replicas=(1, 2), isr=(1, 2))
    assert cluster.log.high_watermark == 5


# --- acknowledgements ---


def test_too_few_in_sync_replicas_refuse_before_the_append():
    cluster = Cluster(isr=(1,))
    assert code_of(lambda: cluster.leader.validate_append(-1)) == ErrorCode.NOT_ENOUGH_REPLICAS
    cluster.leader.validate_append(1)
    Cluster(isr=(1,), replicas=(1,)).leader.validate_append(-1)  # there are no more to have


def test_produces_are_answered_when_the_high_watermark_reaches_them():
    cluster = Cluster()
    for offset in (1, 2, 3):
        cluster.append()
        cluster.leader.waits.add(offset, f"produce {offset}")
    cluster.fetch(2, 3)
    assert cluster.leader.take_fulfilled() == []
    cluster.fetch(3, 2)
    assert cluster.leader.take_fulfilled() == ["produce 1", "produce 2"]
    assert cluster.leader.append_error() == ErrorCode.NONE


def test_a_set_that_shrank_since_is_told_after_the_append():
    cluster = Cluster()
    cluster.append()
    cluster.metadata(isr=(1,))
    assert cluster.leader.append_error() == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


# --- joining and leaving the in-sync set ---


def test_who_was_taken_out_of_the_in_sync_set_is_not_waited_for_until_it_fetches_again():
    """A broker whose disk has failed lives on, and had all there was a moment ago."""
    cluster = Cluster()
    for replica in (2, 3):
        cluster.fetch(replica, 0)
    cluster.append()
    cluster.metadata(isr=(1, 2))
    assert cluster.fetch(2, 1)
    assert cluster.log.high_watermark == 1
    cluster.fetch(3, 1)
    cluster.append()
    cluster.fetch(2, 2)
    assert cluster.log.high_watermark == 1


@pytest.mark.parametrize(("is_dead", "now_ms"), [(True, 0), (False, LAG_MS + 1)])
def test_a_death_or_time_alone_lets_the_high_watermark_go_on(is_dead, now_ms):
    """The producer waits for its answer, and the others have nothing new to fetch."""
    cluster = Cluster(isr=(1, 2))
    cluster.fetch(3, 0)
    cluster.leader.take_isr_change()
    cluster.leader.isr.abandon()  # refused: it is caught up, and not in sync
    cluster.append()
    assert not cluster.fetch(2, 1)
    assert not cluster.leader.reconsider(0)
    if is_dead:
        del cluster.active[3]
    assert cluster.leader.reconsider(now_ms)
    assert cluster.log.high_watermark == 1


def test_a_follower_joins_at_the_high_watermark_and_counts_at_once():
    cluster = Cluster(isr=(1, 2))
    cluster.append(5)
    cluster.fetch(2, 4)
    cluster.fetch(3, 3)
    assert cluster.leader.take_isr_change() is None
    cluster.fetch(3, 4)
    change = cluster.leader.take_isr_change()
    assert change == (5, 0, ((1, 11), (2, 12), (3, 13)), {1, 2})
    assert cluster.leader.take_isr_change() is None
    assert not cluster.fetch(2, 5)  # 3 counts before the controller has agreed
    cluster.answer(change)
    assert cluster.leader.isr.committed == {1, 2, 3}
    assert cluster.leader.partition_epoch == 1


def test_nobody_joins_before_the_start_of_the_leaders_epoch():
    cluster = Cluster(isr=(1, 2))
    cluster.append(5)
    cluster.metadata(leader_epoch=6)  # the high watermark is 0, and 5 records may be committed
    cluster.fetch(3, 4)
    assert cluster.leader.take_isr_change() is None
    cluster.fetch(3, 5)
    assert cluster.leader.take_isr_change() is not None


def test_nobody_joins_with_records_that_the_leader_has_deleted():
    # Records below the leader's log start cannot be compared: they may be of another history.
    cluster = Cluster(isr=(1, 2))
    cluster.append(5)
    cluster.log.high_watermark = 4
    cluster.log.delete_records_before(4)
    cluster.leader.note_fetch(3, 13, 5, 0, 0)
    assert cluster.leader.take_isr_change() is None
    cluster.leader.note_fetch(3, 13, 5, 4, 0)
    assert cluster.leader.take_isr_change() is not None


@pytest.mark.parametrize(
    ("active", "broker_epoch"), [({}, 13), ({3: 14}, 13)], ids=["fenced", "replaced"]
)
def test_a_broker_that_is_not_there_does_not_join(active, broker_epoch):
    cluster = Cluster(isr=(1, 2))
    cluster.active.pop(3)
    cluster.leader.note_fetch(3, broker_epoch, 0, 0, 0)
    cluster.active.update(active)
    assert cluster.leader.take_isr_change() is None


def test_who_has_not_kept_up_for_the_lag_time_leaves_once_the_controller_agrees():
    cluster = Cluster()
    cluster.append(5)
    cluster.fetch(2, 5, now_ms=LAG_MS)
    assert not cluster.leader.maybe_shrink_isr(LAG_MS)
    assert cluster.leader.maybe_shrink_isr(LAG_MS + 1)
    change = cluster.leader.take_isr_change()
    assert change.isr == ((1, 11), (2, 12))
    assert cluster.log.high_watermark == 0
    assert cluster.answer(change)
    assert cluster.log.high_watermark == 5


def test_a_follower_always_a_little_behind_a_busy_leader_stays():
    cluster = Cluster(isr=(1, 2), replicas=(1, 2))
    for step in range(10):
        cluster.append(5, now_ms=50 * step)
        cluster.fetch(2, 5 * step, now_ms=50 * step)
        assert not cluster.leader.maybe_shrink_isr(50 * step)


def test_a_follower_with_all_there_is_stays_however_long_it_is_silent():
    cluster = Cluster(isr=(1, 2), replicas=(1, 2))
    cluster.append(5)
    cluster.fetch(2, 5)
    assert not cluster.leader.maybe_shrink_isr(1_000_000)


def pending_expansion() -> tuple[Cluster, object]:
    cluster = Cluster(isr=(1, 2))
    cluster.fetch(3, 0)
    return cluster, cluster.leader.take_isr_change()


def test_one_change_at_a_time():
    cluster, _ = pending_expansion()
    cluster.append()
    assert not cluster.leader.maybe_shrink_isr(1_000_000)
    assert cluster.leader.take_isr_change() is None


def test_a_refusal_that_is_certain_brings_the_committed_set_back():
    cluster, change = pending_expansion()
    cluster.answer(change, ErrorCode.INELIGIBLE_REPLICA)
    assert cluster.leader.isr.maximal == {1, 2}
    assert cluster.leader.isr.pending is None


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NEW_LEADER_ELECTED,
    ],
)
def test_what_may_have_been_done_counts_until_metadata_says_what_is(error):
    cluster, change = pending_expansion()
    cluster.answer(change, error)
    assert cluster.leader.isr.maximal == {1, 2, 3}
    cluster.metadata(isr=(1,))
    assert cluster.leader.isr.maximal == {1}


def test_any_other_error_sends_it_again():
    cluster, change = pending_expansion()
    cluster.answer(change, ErrorCode.NOT_CONTROLLER)
    assert cluster.leader.take_isr_change() is change


def test_metadata_that_says_what_is_known_does_not_end_a_newer_change():
    cluster, change = pending_expansion()
    cluster.leader.lead(cluster.partition, 0)
    assert cluster.leader.isr.pending is change


def test_an_answer_of_another_epoch_or_to_a_change_that_is_over_says_nothing():
    cluster, change = pending_expansion()
    cluster.answer(change, leader_epoch=6)
    assert cluster.leader.isr.pending is change
    cluster.metadata(isr=(1, 2))
    cluster.answer(change)
    assert cluster.leader.isr.committed == {1, 2}


# --- fencing, and what depends on the high watermark ---


def test_requests_of_other_leader_epochs_are_refused():
    leader = Cluster().leader
    assert code_of(lambda: leader.validate_fetch(4, 0, -1)) == ErrorCode.FENCED_LEADER_EPOCH
    assert code_of(lambda: leader.validate_fetch(6, 0, -1)) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert leader.validate_fetch(-1, 0, -1) is None


def test_who_is_no_replica_or_has_been_replaced_is_refused():
    cluster = Cluster()
    assert code_of(lambda: cluster.fetch(4, 0, broker_epoch=14)) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert code_of(lambda: cluster.fetch(3, 0, broker_epoch=12)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.active.pop(3)
    cluster.fetch(3, 0, broker_epoch=20)
    assert code_of(lambda: cluster.fetch(3, 0, broker_epoch=13)) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_broker_epoch_that_nobody_has_is_refused_and_does_not_shut_out_the_real_one():
    cluster = Cluster()
    forged = 1 << 40
    code = ErrorCode.UNKNOWN_LEADER_EPOCH
    assert code_of(lambda: cluster.fetch(3, 0, broker_epoch=forged)) == code
    cluster.fetch(3, 0, broker_epoch=13)
    cluster.active.pop(3)
    # Of a broker that is fenced no epoch is known.
    cluster.fetch(3, 0, broker_epoch=forged)
    cluster.active[3] = 13
    cluster.fetch(3, 0, broker_epoch=13)


def test_a_log_that_parts_is_told_where():
    cluster = Cluster()
    cluster.append(5)
    cluster.metadata(leader_epoch=8)
    cluster.append(2)
    leader = cluster.leader
    assert leader.validate_fetch(8, 5, 5) is None
    assert leader.validate_fetch(8, 6, 5) == OffsetAndEpoch(5, 5)
    assert leader.validate_fetch(8, 9, 7) == OffsetAndEpoch(5, 5)
    assert leader.validate_fetch(8, 9, 8) == OffsetAndEpoch(7, 8)
    assert code_of(lambda: leader.validate_fetch(8, 9, 9)) == ErrorCode.OFFSET_OUT_OF_RANGE
    cluster.log.high_watermark = 6
    cluster.log.delete_records_before(6)
    assert code_of(lambda: leader.validate_fetch(8, 5, 5)) == ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_latest_offset_is_not_told_before_the_epochs_start_is_committed():
    cluster = Cluster()
    cluster.append(5)
    cluster.metadata(leader_epoch=6)
    ask = cluster.leader.latest_offset
    assert code_of(lambda: ask(is_read_committed=False)) == ErrorCode.OFFSET_NOT_AVAILABLE
    cluster.fetch(2, 5)
    cluster.fetch(3, 5)
    assert ask(is_read_committed=False) == 5


def test_deleted_records_are_gone_when_all_replicas_alive_have_deleted_them():
    cluster = Cluster()
    cluster.append(5)
    for replica in (2, 3):
        cluster.fetch(replica, 5)
    cluster.log.delete_records_before(4)
    cluster.leader.note_fetch(2, 12, 5, 4, 0)
    assert cluster.leader.low_watermark() == 0
    del cluster.active[3]
    assert cluster.leader.low_watermark() == 4
