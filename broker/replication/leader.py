"""The leader's side of one partition: positions, high watermark, in-sync set, what it may answer.

Rules, and where they are kept:

- The high watermark is the smallest log end over the *maximal* in-sync set, and over followers that
  keep up and are about to join; it moves only while `min.insync.replicas` are in sync (KIP-966):
  `_advance`.
- A position counts only from a Fetch of this leader epoch, by the incarnation of the broker that is
  registered, from where the two logs are equal: `validate_fetch`, then `note_fetch`.
- Who joins has reached the high watermark and the start of this epoch: before the high watermark is
  there, more may be committed than this leader knows. And it has dropped what this log begins
  after, for there the two logs were not compared: `is_in_sync`.
- What depends on the high watermark waits for the same: `latest_offset`.
- Positions of earlier epochs are forgotten, even when this broker led them: what happened in
  between is not known here.

The order of calls is the shell's: `validate_fetch`, read, `note_fetch`; `validate_append`, append,
`note_append`. After any call that returns True the high watermark has moved: `take_fulfilled`.
After any call at all `take_isr_change` may give a request for the controller.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from broker.errors import ErrorCode, KafkaError
from broker.metadata.image import PartitionImage
from broker.model import OffsetAndEpoch
from broker.protocol.messages.alter_partition import PartitionResult
from broker.replication.divergence import UNKNOWN_EPOCH, find_divergence
from broker.replication.fencing import ANY_EPOCH, validate_leader_epoch
from broker.replication.follower_progress import LONG_AGO_MS, FollowerProgress
from broker.replication.isr import ChangeOutcome, InSyncReplicas, IsrChange, outcome_of
from broker.replication.log import ReplicaLog
from broker.replication.offset_waits import OffsetWaits

ALL_IN_SYNC_REPLICAS = -1  # acks

T = TypeVar("T")

ActiveEpoch = Callable[[int], int | None]
"""The epoch of a broker that is registered, not fenced and not shutting down; else None."""


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
        """DeleteRecords that wait for the low watermark."""
        self._unsent: IsrChange | None = None
        self._has_enough_in_sync = False

    # --- what the metadata says ---

    def lead(self, partition: PartitionImage, now_ms: int) -> bool:
        """Follow metadata that names this broker the leader; a new epoch begins at the log end."""
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
            # The controller took it out, and may know what cannot be seen from here, as that it
            # lives on without its disk. To be waited for as one about to join, it fetches again.
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
                    # Who is in sync has the whole lag time to be heard of.
                    progress.last_caught_up_ms = now_ms

    def update_min_insync_replicas(self, min_insync_replicas: int, now_ms: int) -> bool:
        """Follow a changed setting."""
        self.min_insync_replicas = min_insync_replicas
        self._count_in_sync()
        return self._advance(now_ms)

    @property
    def effective_min_isr(self) -> int:
        """How many must be in sync: never more than there are replicas."""
        return min(self.min_insync_replicas, len(self.followers) + 1)

    def _count_in_sync(self) -> None:
        self._has_enough_in_sync = len(self.isr.committed) >= self.effective_min_isr

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica is not in sync."""
        return len(self.isr.committed) <= len(self.followers)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether too few are in sync for acks=all."""
        return not self._has_enough_in_sync

    # --- append ---

    def validate_append(self, acks: int) -> None:
        """Raise NOT_ENOUGH_REPLICAS before an append that could not be safe enough."""
        if acks == ALL_IN_SYNC_REPLICAS and not self._has_enough_in_sync:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR is {len(self.isr.committed)}, fewer than "
                f"min.insync.replicas of {self.effective_min_isr}",
            )

    def note_append(self, now_ms: int) -> bool:
        """Move the high watermark, where this broker is all there is in sync."""
        if not self.followers:
            return self.log.advance_high_watermark(self.log.log_end_offset)
        return self._advance(now_ms)

    def take_fulfilled(self) -> list[T]:
        """Give the waiting produces whose records are committed; see `append_error`."""
        return self.waits.take_fulfilled(self.log.high_watermark)

    def append_error(self) -> ErrorCode:
        """Return what to answer a fulfilled produce with: the in-sync set may have shrunk."""
        if len(self.isr.maximal) < self.effective_min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    # --- fetch ---

    def validate_fetch(
        self, current_leader_epoch: int, fetch_offset: int, last_fetched_epoch: int
    ) -> OffsetAndEpoch | None:
        """Fence a reader, and say where its log parts from this one, if it does; raises KafkaError.

        For consumers and replicas alike. With a divergence the answer has no records, and the
        position does not count.
        """
        # Most readers have nothing to compare, and a call for each partition of a fetch shows.
        if current_leader_epoch != ANY_EPOCH:
            validate_leader_epoch(current_leader_epoch, self.leader_epoch)
        if last_fetched_epoch == UNKNOWN_EPOCH:
            return None
        return find_divergence(
            self.log, fetch_offset=fetch_offset, last_fetched_epoch=last_fetched_epoch
        )

    def validate_follower(self, replica_id: int, broker_epoch: int) -> None:
        """Refuse who is no replica, or not the incarnation of it that is registered (KIP-903).

        A newer one may be of metadata that is not here yet: it tries again. Were it believed, one
        that was made up would shut out the real one. And who does not say which it is, as in
        versions before 15, might be anybody: were its position believed, it would commit records
        that no replica has.
        """
        follower = self.followers.get(replica_id)
        if follower is None:
            # Perhaps one that is added, and this leader does not know it yet: it tries again.
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
        """Count a follower that fetches from an offset, after `validate_fetch` and the others.

        An offset beyond the log's end is refused as out of range before it comes here.
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
        """Return whether a follower has everything that may be committed, and nothing else.

        The high watermark of a new leader may lie below what its predecessor has committed, but
        never is that more than the new leader had when its epoch began. And what lies below this
        log's start was not compared: a follower that parted from it there would bring back, as
        a leader, records that were never committed in place of those that were deleted.
        """
        end_offset, log = follower.log_end_offset, self.log
        return (
            end_offset >= log.high_watermark
            and end_offset >= self.epoch_start_offset
            and follower.log_start_offset >= log.log_start_offset
        )

    def _is_eligible(self, follower: FollowerProgress) -> bool:
        """Return whether it is alive, and in the incarnation that fetched (KIP-841, KIP-903)."""
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
                    # Else it would run after the high watermark and never get in.
                    follower.is_caught_up(end_offset, now_ms, self.lag_time_max_ms)
                    and self._is_eligible(follower)
                )
            ):
                lowest = follower.log_end_offset
        return self.log.advance_high_watermark(lowest)

    # --- what may be told of the high watermark ---

    @property
    def is_high_watermark_known(self) -> bool:
        """Whether the high watermark has reached the start of this leader's epoch (KIP-207)."""
        return self.log.high_watermark >= self.epoch_start_offset

    def latest_offset(self, *, is_read_committed: bool) -> int:
        """Return the end of what a consumer may read; raises OFFSET_NOT_AVAILABLE.

        A new leader does not know yet what was committed; telling less would let time run back.
        """
        if not self.is_high_watermark_known:
            raise KafkaError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"The high watermark {self.log.high_watermark} is below the start of this leader "
                f"epoch, {self.epoch_start_offset}",
            )
        return self.log.last_stable_offset if is_read_committed else self.log.high_watermark

    def low_watermark(self) -> int:
        """Return the smallest log start of all replicas alive: what DeleteRecords waits for."""
        starts = [
            follower.log_start_offset
            for follower in self.followers.values()
            if self._active_epoch(follower.broker_id) is not None
        ]
        return min([self.log.log_start_offset, *starts])

    def take_deleted(self) -> list[T]:
        """Give the waiting DeleteRecords whose records no replica alive has any more."""
        return self.deletions.take_fulfilled(self.low_watermark()) if self.deletions else []

    def take_all_waiting(self) -> list[T]:
        """Give everybody who waits here: the leadership is lost."""
        return [*self.waits.take_all(), *self.deletions.take_all()]

    # --- the in-sync set ---

    def out_of_sync(self, now_ms: int) -> list[int]:
        """Return the in-sync followers that have not kept up for `replica.lag.time.max.ms`."""
        end_offset = self.log.log_end_offset
        return [
            replica
            for replica in sorted(self.isr.committed - {self.node_id})
            if replica not in self.followers
            or not self.followers[replica].is_caught_up(end_offset, now_ms, self.lag_time_max_ms)
        ]

    def reconsider(self, now_ms: int) -> bool:
        """Move the high watermark, where it waited for a follower that is no longer about to join.

        Call it when brokers have come or gone, and now and then, for time passes too: a producer
        that waits for its answer sends nothing by which this would be noticed.
        """
        return bool(self.followers) and self._advance(now_ms)

    def maybe_shrink_isr(self, now_ms: int) -> bool:
        """Ask to remove who does not keep up; call it every half of the lag time."""
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
        """Give the change to send to the controller, once; see `isr_changes`."""
        change, self._unsent = self._unsent, None
        return change

    def handle_isr_answer(self, change: IsrChange, answer: PartitionResult, now_ms: int) -> bool:
        """Take the controller's answer; one to a change that is no longer pending says nothing."""
        if self.isr.pending is not change:
            return False
        match outcome_of(answer.error_code):
            case ChangeOutcome.DONE:
                if (
                    answer.leader_epoch != self.leader_epoch
                    or answer.partition_epoch < self.partition_epoch
                ):
                    return False  # Metadata will say what is.
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
