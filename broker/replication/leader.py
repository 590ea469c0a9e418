"""The leader's side of one partition: positions, high watermark, in-sync set, allowed answers.

The rules, and the functions that keep them:

- The high watermark is the smallest log end offset of the *maximal* in-sync set and of the
  followers that are caught up and about to join. It moves only while at least `min.insync.replicas`
  replicas are in sync (KIP-966): `_advance`.
- A position counts only from a Fetch of this leader epoch, by the registered incarnation of the
  broker, at an offset up to which the two logs are equal: `validate_fetch`, then `note_fetch`.
- A follower joins the in-sync set only after it has reached the high watermark and the start of
  this epoch: until the high watermark reaches that start, more may be committed than this leader
  knows. Its log must not start before this leader's log either, because the logs were not compared
  there: `is_in_sync`.
- An answer that depends on the high watermark waits for the same condition: `latest_offset`.
- Positions of earlier epochs are dropped, even if this broker led them: this leader does not know
  what happened in between.

The shell must keep the order of calls: `validate_fetch`, read, `note_fetch`; `validate_append`,
append, `note_append`. After a call that returns True the high watermark has moved: call
`take_fulfilled`. After any call, `take_isr_change` may return a request for the controller.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from broker.metadata.image import PartitionImage
from broker.model import OffsetAndEpoch
from broker.replication.divergence import (
    ANY_EPOCH,
    UNKNOWN_EPOCH,
    find_divergence,
    validate_leader_epoch,
)
from broker.replication.follower_progress import LONG_AGO_MS, FollowerProgress
from broker.replication.isr import ChangeOutcome, InSyncReplicas, IsrChange, outcome_of
from broker.replication.log import ReplicaLog
from broker.replication.offset_waits import OffsetWaits
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.alter_partition import PartitionResult

ALL_IN_SYNC_REPLICAS = -1  # acks

T = TypeVar("T")

ActiveEpoch = Callable[[int], int | None]
"""Returns the epoch of a broker that is registered, not fenced and not shutting down; else None."""


class PartitionLeader(Generic[T]):
    """Invariant: everything below the log's high watermark is in every log of `isr.maximal`."""

    __slots__ = (
        "_active_epoch",
        "_has_enough_in_sync",
        "_unsent",
        "deletions",
        "epoch_start_offset",
        "followers",
        "isr",
        "lag_time_max_ms",
        "leader_epoch",
        "log",
        "min_insync_replicas",
        "node_id",
        "partition_epoch",
        "waits",
    )

    def __init__(
        self,
        node_id: int,
        log: ReplicaLog,
        active_epoch: ActiveEpoch,
        *,
        min_insync_replicas: int,
        lag_time_max_ms: int,
    ) -> None:
        self.node_id = node_id
        self.log = log
        self._active_epoch = active_epoch
        self.min_insync_replicas = min_insync_replicas
        self.lag_time_max_ms = lag_time_max_ms
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.epoch_start_offset = 0
        self.followers: dict[int, FollowerProgress] = {}
        self.isr = InSyncReplicas(())
        self.waits: OffsetWaits[T] = OffsetWaits()
        self.deletions: OffsetWaits[T] = OffsetWaits()
        """The DeleteRecords requests that wait for the low watermark."""
        self._unsent: IsrChange | None = None
        self._has_enough_in_sync = False

    # --- metadata ---

    def lead(self, partition: PartitionImage, now_ms: int) -> bool:
        """Apply metadata that names this broker the leader; a new epoch starts at the log end."""
        if partition.partition_epoch <= self.partition_epoch:
            return False
        is_new_epoch = partition.leader_epoch > self.leader_epoch
        if is_new_epoch:
            self.leader_epoch = partition.leader_epoch
            self.epoch_start_offset = self.log.log_end_offset
            self.log.become_leader(partition.leader_epoch)
            self.followers.clear()
        self.partition_epoch = partition.partition_epoch
        for replica in self.isr.maximal.difference(partition.isr) & self.followers.keys():
            # The controller removed this replica, and may know a reason that this leader does not,
            # such as a failed disk. The leader waits for it again only after its next Fetch.
            self.followers[replica].last_caught_up_ms = LONG_AGO_MS
        self.isr.commit(partition.isr)
        self._unsent = None
        self._set_replicas(partition, now_ms)
        self._count_in_sync()
        return self._advance(now_ms)

    def _set_replicas(self, partition: PartitionImage, now_ms: int) -> None:
        wanted = [replica for replica in partition.replicas if replica != self.node_id]
        for replica in self.followers.keys() - wanted:
            del self.followers[replica]
        for replica in wanted:
            if replica not in self.followers:
                progress = self.followers[replica] = FollowerProgress(replica)
                if replica in partition.isr:
                    # An in-sync replica has the whole lag time for its first Fetch.
                    progress.last_caught_up_ms = now_ms

    def update_min_insync_replicas(self, min_insync_replicas: int, now_ms: int) -> bool:
        """Apply a changed `min.insync.replicas`; return True if the high watermark moved."""
        self.min_insync_replicas = min_insync_replicas
        self._count_in_sync()
        return self._advance(now_ms)

    @property
    def effective_min_isr(self) -> int:
        """The number of replicas that must be in sync: at most the number of replicas."""
        return min(self.min_insync_replicas, len(self.followers) + 1)

    def _count_in_sync(self) -> None:
        self._has_enough_in_sync = len(self.isr.committed) >= self.effective_min_isr

    @property
    def is_under_replicated(self) -> bool:
        """True if a replica is not in sync."""
        return len(self.isr.committed) <= len(self.followers)

    @property
    def is_under_min_isr(self) -> bool:
        """True if too few replicas are in sync for acks=all."""
        return not self._has_enough_in_sync

    # --- append ---

    def validate_append(self, acks: int) -> None:
        """Raise NOT_ENOUGH_REPLICAS for acks=all if too few replicas are in sync."""
        if acks == ALL_IN_SYNC_REPLICAS and not self._has_enough_in_sync:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR is {len(self.isr.committed)}, fewer than "
                f"min.insync.replicas of {self.effective_min_isr}",
            )

    def note_append(self, now_ms: int) -> bool:
        """Advance the high watermark if no other replica is in sync; return True if it moved."""
        if not self.followers:
            return self.log.advance_high_watermark(self.log.log_end_offset)
        return self._advance(now_ms)

    def take_fulfilled(self) -> list[T]:
        """Remove and return the produces whose records are committed; see `append_error`."""
        return self.waits.take_fulfilled(self.log.high_watermark)

    def append_error(self) -> ErrorCode:
        """Return the error code for a fulfilled produce: the in-sync set may have shrunk."""
        if len(self.isr.maximal) < self.effective_min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    # --- fetch ---

    def validate_fetch(
        self, current_leader_epoch: int, fetch_offset: int, last_fetched_epoch: int
    ) -> OffsetAndEpoch | None:
        """Check a reader's epochs; return where its log diverges from this one, if it does.

        The check is the same for consumers and replicas. With a divergence the answer has no
        records, and the position does not count. Raise FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH or
        OFFSET_OUT_OF_RANGE.
        """
        # Most readers send no epoch, and a call per partition of a Fetch is measurable.
        if current_leader_epoch != ANY_EPOCH:
            validate_leader_epoch(current_leader_epoch, self.leader_epoch)
        if last_fetched_epoch == UNKNOWN_EPOCH:
            return None
        return find_divergence(
            self.log, fetch_offset=fetch_offset, last_fetched_epoch=last_fetched_epoch
        )

    def validate_follower(self, replica_id: int, broker_epoch: int) -> None:
        """Refuse a sender that is not a replica, or not its registered incarnation (KIP-903).

        A broker epoch that is newer than the known one may belong to metadata that has not arrived:
        the follower retries. If the leader accepted it, a forged epoch would shut out the real
        replica. A request without a broker epoch, as in versions before 15, may come from any
        process: if its position counted, records that no replica has would be committed. Raise
        UNKNOWN_LEADER_EPOCH or NOT_LEADER_OR_FOLLOWER.
        """
        follower = self.followers.get(replica_id)
        if follower is None:
            # It may be a replica that was added and that this leader does not know yet: it retries.
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"{replica_id} is no replica")
        active_epoch = self._active_epoch(replica_id)
        if broker_epoch == active_epoch:
            return
        if broker_epoch < 0 or (active_epoch is not None and broker_epoch > active_epoch):
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH, f"{replica_id} has no broker epoch {broker_epoch}"
            )
        if active_epoch is not None or broker_epoch < follower.broker_epoch:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{replica_id} has been replaced")

    def note_fetch(
        self,
        replica_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
    ) -> bool:
        """Count a follower's Fetch, after its validation; return True if the high watermark moved.

        The caller refuses an offset beyond the log's end before this call.
        """
        log = self.log
        assert fetch_offset <= log.log_end_offset, (fetch_offset, log.log_end_offset)
        follower = self.followers[replica_id]
        follower.broker_epoch = broker_epoch
        has_moved = follower.note_fetch(fetch_offset, log_start_offset, log.log_end_offset, now_ms)
        if (
            replica_id not in self.isr.maximal
            and self.isr.pending is None
            and self.is_in_sync(follower)
            and self._is_eligible(follower)
        ):
            self._ask_for(self.isr.committed | {replica_id})
        return has_moved and self._advance(now_ms)

    def is_in_sync(self, follower: FollowerProgress) -> bool:
        """Return True if a follower has everything that may be committed, and nothing else.

        The previous leader may have committed more than this leader's high watermark, but never
        more than this leader had at the start of its epoch. The logs below this log's start offset
        were not compared: as a leader, a follower that diverges there would serve uncommitted
        records in place of deleted ones.
        """
        end_offset, log = follower.log_end_offset, self.log
        return (
            end_offset >= log.high_watermark
            and end_offset >= self.epoch_start_offset
            and follower.log_start_offset >= log.log_start_offset
        )

    def _is_eligible(self, follower: FollowerProgress) -> bool:
        """Return True if the follower is active, in the incarnation that fetched (KIP-841, 903)."""
        active_epoch = self._active_epoch(follower.broker_id)
        return (
            active_epoch is not None
            and follower.has_fetched
            and follower.broker_epoch == active_epoch
        )

    def _advance(self, now_ms: int) -> bool:
        if not self._has_enough_in_sync:
            return False
        end_offset = lowest = self.log.log_end_offset
        maximal = self.isr.maximal
        for follower in self.followers.values():
            if follower.log_end_offset < lowest and (
                follower.broker_id in maximal
                or (
                    # Otherwise it would follow the high watermark and never reach it.
                    follower.is_caught_up(end_offset, now_ms, self.lag_time_max_ms)
                    and self._is_eligible(follower)
                )
            ):
                lowest = follower.log_end_offset
        return self.log.advance_high_watermark(lowest)

    # --- answers that depend on the high watermark ---

    @property
    def is_high_watermark_known(self) -> bool:
        """True if the high watermark has reached the start of this leader's epoch (KIP-207)."""
        return self.log.high_watermark >= self.epoch_start_offset

    def latest_offset(self, *, is_read_committed: bool) -> int:
        """Return the end offset of what a consumer may read; raise OFFSET_NOT_AVAILABLE.

        A new leader does not know yet what was committed. A lower offset than the previous leader's
        would go backwards for the consumer.
        """
        if not self.is_high_watermark_known:
            raise KafkaError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"The high watermark {self.log.high_watermark} is below the start of this leader "
                f"epoch, {self.epoch_start_offset}",
            )
        return self.log.last_stable_offset if is_read_committed else self.log.high_watermark

    def low_watermark(self) -> int:
        """Return the smallest log start offset of the active replicas, for DeleteRecords."""
        starts = [
            follower.log_start_offset
            for follower in self.followers.values()
            if self._active_epoch(follower.broker_id) is not None
        ]
        return min([self.log.log_start_offset, *starts])

    def take_deleted(self) -> list[T]:
        """Remove and return the waiting DeleteRecords that the low watermark has reached."""
        return self.deletions.take_fulfilled(self.low_watermark()) if self.deletions else []

    def take_all_waiting(self) -> list[T]:
        """Remove and return all waiting requests: the leadership is lost."""
        return [*self.waits.take_all(), *self.deletions.take_all()]

    # --- the in-sync set ---

    def out_of_sync(self, now_ms: int) -> list[int]:
        """Return the in-sync followers that are not caught up, in ascending order."""
        end_offset = self.log.log_end_offset
        return [
            replica
            for replica in sorted(self.isr.committed - {self.node_id})
            if replica not in self.followers
            or not self.followers[replica].is_caught_up(end_offset, now_ms, self.lag_time_max_ms)
        ]

    def reconsider(self, now_ms: int) -> bool:
        """Advance the high watermark if a follower that it waited for is no longer about to join.

        Call it when brokers have come or gone, and periodically: a producer that waits for its
        answer causes no other call. Return True if the high watermark moved.
        """
        return bool(self.followers) and self._advance(now_ms)

    def maybe_shrink_isr(self, now_ms: int) -> bool:
        """Ask to remove the followers that lag; call it every half of the lag time."""
        if self.isr.pending is not None or not self.followers:
            return False
        lagging = self.out_of_sync(now_ms)
        if not lagging:
            return False
        self._ask_for(self.isr.committed.difference(lagging))
        return True

    def _ask_for(self, isr: frozenset[int]) -> None:
        own_epoch = self._active_epoch(self.node_id)
        epochs = {self.node_id: -1 if own_epoch is None else own_epoch}
        for replica in isr & self.followers.keys():
            epochs[replica] = self.followers[replica].broker_epoch
        wanted = tuple((replica, epochs.get(replica, -1)) for replica in sorted(isr))
        change = IsrChange(
            self.leader_epoch, self.partition_epoch, wanted, before=self.isr.committed
        )
        self.isr.begin(change)
        self._unsent = change

    def take_isr_change(self) -> IsrChange | None:
        """Return the change to send to the controller, once; see `isr_changes`."""
        change, self._unsent = self._unsent, None
        return change

    def handle_isr_answer(self, change: IsrChange, answer: PartitionResult, now_ms: int) -> bool:
        """Handle the controller's answer, and ignore it if its change is not pending.

        Return True if the high watermark moved.
        """
        if self.isr.pending is not change:
            return False
        match outcome_of(answer.error_code):
            case ChangeOutcome.DONE:
                if (
                    answer.leader_epoch != self.leader_epoch
                    or answer.partition_epoch < self.partition_epoch
                ):
                    return False  # The metadata will show the outcome.
                self.partition_epoch = answer.partition_epoch
                self.isr.commit(answer.isr)
                self._count_in_sync()
                return self._advance(now_ms)
            case ChangeOutcome.REFUSED:
                self.isr.abandon()
                return self._advance(now_ms)
            case ChangeOutcome.AWAIT_METADATA:
                return False
            case ChangeOutcome.RETRY:
                self._unsent = change
                return False
