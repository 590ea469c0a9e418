"""One share-partition at its leader: its state is read, its changes are written, its locks end.

    state    since                                     ends with
    LOADING  the first request for it                  the coordinator's answer
    ACTIVE   its state is known                        the end of the leadership, or a refusal
    ENDED    it is not in the table of share-partitions

A member's change is answered when the coordinator has stored it. At most one write is under way;
the changes that come meanwhile are written together with the next one. After its end, changes that
were begun are still written: the coordinator refuses those of a leader that was replaced.
"""

import logging
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from broker.coordinator.share_state.state import SharePartitionKey
from broker.metadata.share_reset import Reset
from broker.server.clock import Clock, Timer
from broker.server.network.later import Later, happened
from broker.server.replication.parked_fetches import ParkedFetch, ParkedFetches
from broker.server.replication.partitions import Partition
from broker.server.share.share_metrics import PartitionMetrics, ShareMetrics
from broker.server.share.state_persister import StatePersister
from broker.server.share.state_requests import Refusal, Result
from broker.server.storage.failures import StorageFailures
from broker.share.acknowledgement import Acknowledgement
from broker.share.acquisition import Acquired, Demand, LogBatch
from broker.share.group_settings import ShareGroupSettings
from broker.share.share_partition import NO_DEADLINE, Change, SharePartition, StateBatch
from broker.share.stored_state import (
    ENDS_LEADERSHIP,
    StateWrite,
    StoredState,
    told_to_client,
)
from common.kafka.errors import ErrorCode, KafkaError

UNSET = -1

log = logging.getLogger("millstream.share")


class LedState(Enum):
    """The state is being read, is served, or is given up."""

    LOADING = auto()
    ACTIVE = auto()
    ENDED = auto()


class LedParts(NamedTuple):
    """The objects that a led share-partition works with."""

    clock: Clock
    persister: StatePersister
    parked_fetches: ParkedFetches
    failures: StorageFailures
    metrics: ShareMetrics
    settings_of: Callable[[str], ShareGroupSettings]
    on_ended: Callable[["LedSharePartition"], None] = lambda led: None
    """Called when the share-partition cannot go on, to take it out of the table."""


class _Pending(NamedTuple):
    """A change that waits to be written, and whoever waits for that."""

    batches: Sequence[StateBatch]
    change: Change | None
    written: Later | None


class LedSharePartition:
    """Owns the state of one share-partition, its locks and the changes that wait to be written."""

    __slots__ = (
        "_loading_since_ms",
        "_parts",
        "_pending",
        "_timer",
        "_timer_ms",
        "_writing",
        "figures",
        "key",
        "leader_epoch",
        "on_idle",
        "parked",
        "parked_followers",
        "partition",
        "refusal",
        "share",
        "state",
    )

    def __init__(self, parts: LedParts, key: SharePartitionKey, partition: Partition) -> None:
        assert partition.leader is not None, key
        self._parts = parts
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader.leader_epoch
        self.state = LedState.LOADING
        self.share: SharePartition | None = None
        """Its records in flight; None while it is loading."""
        self.refusal: KafkaError | None = None
        """Why it has ended."""
        self.parked: dict[ParkedFetch, None] = {}
        self.parked_followers: dict[ParkedFetch, None] = {}
        """Always empty: a member is no replica."""
        self.figures = PartitionMetrics()
        self._loading_since_ms = parts.clock.now_ms()
        self.on_idle: list[Callable[[], None]] = []
        self._pending: list[_Pending] = []
        self._writing: list[_Pending] = []
        self._timer: Timer | None = None
        self._timer_ms = NO_DEADLINE

    @property
    def settings(self) -> ShareGroupSettings:
        """The settings of its group."""
        return self._parts.settings_of(self.key.group_id)

    @property
    def is_idle(self) -> bool:
        """True if no change is being written."""
        return not self._writing and not self._pending

    # --- load ---

    def load(self) -> None:
        """Ask the coordinator for the state; older leaders are fenced with this."""
        self._parts.persister.read(self.key, self.leader_epoch, self._on_loaded)

    def _on_loaded(self, result: Result) -> None:
        if self.state is not LedState.LOADING:
            return
        try:
            if isinstance(result, Refusal):
                raise told_to_client(result.code, result.message)
            assert isinstance(result, StoredState), result
            self.share = self._begin(result)
        except KafkaError as error:
            self._end(error)
            return
        except OSError as error:
            self._end(self._parts.failures.on_failure(*self.partition.topic_partition, error))
            return
        self.state = LedState.ACTIVE
        metrics = self._parts.metrics
        metrics.load_count += 1
        metrics.load_ms += self._parts.clock.now_ms() - self._loading_since_ms
        self.wake()

    def _begin(self, stored: StoredState) -> SharePartition:
        start_offset = stored.start_offset
        if start_offset != UNSET:
            try:
                return SharePartition(
                    start_offset, state_epoch=stored.state_epoch, batches=stored.batches
                )
            except ValueError as error:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        settings = self.settings
        start_offset = initial_offset(self.partition, settings, self._parts.clock.timestamp_ms())
        share = SharePartition(start_offset, state_epoch=stored.state_epoch)
        log.info(
            "share-partition begins group=%s partition=%s start_offset=%d reset=%s",
            self.key.group_id, self.partition.topic_partition, start_offset, settings.reset.value,
        )  # fmt: skip
        # Otherwise the next leader would begin at another offset, if no member acknowledges.
        self._write_later(_Pending((), None, None), share)
        return share

    # --- members ---

    def acquire(self, demand: Demand, batches: Sequence[LogBatch]) -> list[Acquired]:
        """Give a member records of a read that began at the next fetch offset."""
        share = self._active()
        now_ms = self._parts.clock.now_ms()
        acquired = share.acquire(demand, batches, self.settings.policy, now_ms)
        for start, end, _ in acquired:
            self.figures.batch_records.add(end - start)
        if acquired:
            self._arm(now_ms + self.settings.policy.record_lock_duration_ms)
        return acquired

    def acknowledge(self, member_id: str, acknowledged: Sequence[Acknowledgement]) -> Later:
        """Return an event with None when it is stored, or with the refusal; raises KafkaError."""
        share = self._active()
        policy, now_ms = self.settings.policy, self._parts.clock.now_ms()
        change = share.acknowledge(member_id, acknowledged, policy, now_ms)
        return happened(None) if change is None else self._write(change, share)

    def release(self, member_id: str) -> Later:
        """Give back what a member has, because its session has ended."""
        share = self.share
        if share is None:
            return happened(None)
        change = share.release(member_id, self.settings.policy)
        return happened(None) if change is None else self._write(change, share)

    def _active(self) -> SharePartition:
        if self.share is None or self.state is not LedState.ACTIVE:
            raise self.refusal or KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The share-partition is not loaded."
            )
        return self.share

    def follow_log_start(self) -> None:
        """Forget the records that the log has deleted.

        The new start offset is stored, or they would count as lag until the next change.
        """
        share = self.share
        if share is not None and share.follow_log_start(self.partition.log.log_start_offset):
            if self.state is LedState.ACTIVE:
                self._write_later(_Pending((), None, None), share)
            self.wake()

    # --- write ---

    def _write(self, change: Change, share: SharePartition) -> Later:
        written = Later()
        self._write_later(_Pending(change.batches, change, written), share)
        return written

    def _write_later(self, pending: _Pending, share: SharePartition) -> None:
        self._pending.append(pending)
        if not self._writing:
            self._write_pending(share)

    def _write_pending(self, share: SharePartition) -> None:
        """Write the changes that wait, up to one that follows another of the same records."""
        batches: list[StateBatch] = []
        count = 0
        for pending in self._pending:
            merged = sorted((*batches, *pending.batches))
            if any(one.end_offset > two.start_offset for one, two in pairwise(merged)):
                break
            batches = merged
            count += 1
        self._writing, self._pending = self._pending[:count], self._pending[count:]
        write = StateWrite(
            share.state_epoch,
            self.leader_epoch,
            share.start_offset,
            share.delivery_complete_count(),
            batches,
        )
        self._parts.persister.write(self.key, write, partial(self._on_written, share))

    def _on_written(self, share: SharePartition, result: Result) -> None:
        done, self._writing = self._writing, []
        error = told_to_client(result.code, result.message) if isinstance(result, Refusal) else None
        now_ms = self._parts.clock.now_ms()
        for pending in done:
            if pending.change is not None:
                share.complete(pending.change, is_written=error is None, now_ms=now_ms)
        if error is not None:
            log.warning(
                "share state is not stored group=%s partition=%s error=%s",
                self.key.group_id, self.partition.topic_partition, error,
            )  # fmt: skip
            if error.code in ENDS_LEADERSHIP:
                self._end(error)
            else:
                self._arm(share.next_deadline_ms())
        if self._pending:
            self._write_pending(share)
        self.wake()
        for pending in done:
            if pending.written is not None:
                pending.written.done(error)
        if self.is_idle:
            idle, self.on_idle = self.on_idle, []
            for proceed in idle:
                proceed()

    # --- locks ---

    def _arm(self, deadline_ms: int) -> None:
        """Set the timer, unless it is set for this time or an earlier one."""
        if deadline_ms >= self._timer_ms or self.state is LedState.ENDED:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_ms = max(0, deadline_ms - self._parts.clock.now_ms())
        self._timer = self._parts.clock.call_later(delay_ms, self._on_timer)

    def _on_timer(self) -> None:
        self._timer, self._timer_ms = None, NO_DEADLINE
        share = self.share
        if share is None:
            return
        change = share.expire(self.settings.policy, self._parts.clock.now_ms())
        if change is not None:
            self.figures.expired_count += sum(
                batch.end_offset - batch.start_offset for batch in change.batches
            )
            self._write_later(_Pending(change.batches, change, None), share)
            self.wake()
        self._arm(share.next_deadline_ms())

    # --- the end ---

    def wake(self) -> None:
        """Let the fetches that wait for records look again, if there is something for them."""
        if self.parked and (self.state is LedState.ENDED or self.has_records()):
            for fetch in self.parked:
                fetch.missing_bytes = 0
            self._parts.parked_fetches.wake(self.parked)

    def has_records(self) -> bool:
        """Return whether a member could get records, of its isolation level."""
        share = self.share
        if share is None:
            return False
        settings, log = self.settings, self.partition.log
        end = log.last_stable_offset if settings.reads_committed else log.high_watermark
        return share.can_acquire(settings.policy) and share.next_fetch_offset() < end

    def _end(self, error: KafkaError) -> None:
        if self.state is not LedState.ENDED:
            self.end(error)
            self._parts.on_ended(self)

    def end(self, error: KafkaError) -> None:
        """End it; the fetches that wait for it are answered with the error."""
        self.state = LedState.ENDED
        self.refusal = error
        self.stop()
        self.wake()

    def stop(self) -> None:
        """Stop the timer of the locks."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._timer_ms = None, NO_DEADLINE


def initial_offset(partition: Partition, settings: ShareGroupSettings, timestamp_ms: int) -> int:
    """Return the first offset of a group without state; raises KafkaError.

    With a duration longer than the age of every record it is the first record; if no record is
    young enough, it is the end.
    """
    leader, log = partition.leader, partition.log
    if leader is None:
        raise KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"This broker does not lead {log.topic_partition}."
        )
    if settings.reset is Reset.EARLIEST:
        return log.log_start_offset
    end_offset = leader.latest_offset(is_read_committed=False)
    if settings.reset is Reset.LATEST:
        return end_offset
    found = log.offset_for_timestamp(timestamp_ms - settings.reset_duration_ms)
    return end_offset if found is None else min(found.offset, end_offset)
