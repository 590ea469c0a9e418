"""The follower's side of one partition: what to ask its leader, and what to make of the answer.

It asks for what follows its log's end and says which epoch the log ends in. The leader answers with
records, or with the place where the two logs part; then the follower cuts its log there, by its own
epochs, and asks again. It never cuts at its high watermark, which may be older than what was
committed (KIP-101).

An answer counts only if nothing has changed since it was asked for: `FetchPosition` is the whole
question, and a follower that would ask otherwise by now leaves the answer alone. So answers may
come late, twice, and from a leader of the past.
"""

from enum import Enum
from typing import NamedTuple

from broker.errors import ErrorCode
from broker.metadata.image import NO_LEADER, PartitionImage
from broker.model import OffsetAndEpoch
from broker.protocol.messages.fetch import PartitionData
from broker.records.errors import CorruptBatch
from broker.replication.divergence import UNKNOWN_EPOCH, truncation_offset
from broker.replication.log import ReplicaLog

NO_ERROR = ErrorCode.NONE.value


class FollowerState(Enum):
    """See the package."""

    IDLE = "idle"
    FETCHING = "fetching"
    RESETTING = "resetting"
    FENCED = "fenced"


class FetchPosition(NamedTuple):
    """What a follower asks of its leader for one partition."""

    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int


class FollowerOutcome(Enum):
    """What an answer did."""

    STALE = "stale"  # nothing: it answers another question
    UNCHANGED = "unchanged"  # nothing came; the high watermark may have moved
    APPENDED = "appended"
    TRUNCATED = "truncated"
    RESTARTED = "restarted"  # all of the log was dropped
    OUT_OF_RANGE = "out of range"  # ask the leader for its offsets: `handle_offsets`
    BACKING_OFF = "backing off"
    FENCED = "fenced"


class PartitionFollower:
    """Invariant: below its high watermark its log equals that of every leader to come."""

    __slots__ = (
        "_state",
        "backoff_ms",
        "is_in_sync",
        "leader_epoch",
        "leader_id",
        "log",
        "retry_at_ms",
    )

    def __init__(self, log: ReplicaLog, *, backoff_ms: int) -> None:
        self.log = log
        self.backoff_ms = backoff_ms  # replica.fetch.backoff.ms
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.is_in_sync = False
        """Whether the metadata counts it as in sync: then no throttle holds it back."""
        self.retry_at_ms = 0
        self._state = FollowerState.IDLE

    @property
    def state(self) -> FollowerState:
        """What it does now."""
        return self._state

    def follow(self, partition: PartitionImage) -> bool:
        """Follow the metadata; tell whether it begins anew, because the leader epoch is another."""
        if partition.leader_epoch == self.leader_epoch:
            return False
        assert partition.leader_epoch > self.leader_epoch, (partition, self.leader_epoch)
        self.leader_epoch = partition.leader_epoch
        self.leader_id = partition.leader
        self.retry_at_ms = 0
        has_leader = partition.leader != NO_LEADER
        self._state = FollowerState.FETCHING if has_leader else FollowerState.IDLE
        return True

    # --- ask ---

    def position(self) -> FetchPosition:
        """Return what it would ask now."""
        log = self.log
        return FetchPosition(
            self.leader_epoch, log.log_end_offset, log.leader_epoch, log.log_start_offset
        )

    def next_fetch(self, now_ms: int) -> FetchPosition | None:
        """Return what to ask its leader; None while there is nothing to ask, or it backs off."""
        if self._state is not FollowerState.FETCHING or now_ms < self.retry_at_ms:
            return None
        return self.position()

    def needs_offsets(self, now_ms: int) -> bool:
        """Return whether to ask its leader where its log begins and ends (ListOffsets)."""
        return self._state is FollowerState.RESETTING and now_ms >= self.retry_at_ms

    # --- answers ---

    def handle_fetch_answer(
        self, asked: FetchPosition, answer: PartitionData, now_ms: int
    ) -> FollowerOutcome:
        """Take what the leader answered. An OSError from the log means that its disk has failed."""
        if self._state is not FollowerState.FETCHING or not self._is_current(asked):
            return FollowerOutcome.STALE
        if answer.error_code != NO_ERROR:
            return self._handle_error(answer.error_code, now_ms)
        diverging = answer.diverging_epoch
        if diverging.epoch != UNKNOWN_EPOCH:
            is_possible = 0 <= diverging.epoch <= asked.last_fetched_epoch
            if not is_possible or diverging.end_offset < 0:
                # No leader's log parts there; obeyed, it would cut what is committed.
                return self.back_off(now_ms)
            leader_end = OffsetAndEpoch(diverging.end_offset, diverging.epoch)
            self.log.truncate_to(truncation_offset(self.log, leader_end))
            return FollowerOutcome.TRUNCATED
        outcome = FollowerOutcome.UNCHANGED
        if answer.records:
            assert isinstance(answer.records, bytes | bytearray | memoryview), type(answer.records)
            try:
                self.log.append_as_follower(answer.records)
            except CorruptBatch:
                # Damaged on the way, or by the leader's disk: what came before it counts.
                return self.back_off(now_ms)
            outcome = FollowerOutcome.APPENDED
        self._follow_offsets(answer.high_watermark, answer.log_start_offset)
        return outcome

    def _is_current(self, asked: FetchPosition) -> bool:
        # The log's start does not matter: it may have moved, and the records fit all the same.
        return asked[:3] == self.position()[:3]

    def _follow_offsets(self, high_watermark: int, leader_start_offset: int) -> None:
        log = self.log
        log.advance_high_watermark(high_watermark)
        if leader_start_offset > log.log_start_offset:
            log.delete_records_before(min(leader_start_offset, log.high_watermark))

    def _handle_error(self, error_code: int, now_ms: int) -> FollowerOutcome:
        if error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._state = FollowerState.RESETTING
            return FollowerOutcome.OUT_OF_RANGE
        if error_code == ErrorCode.FENCED_LEADER_EPOCH:
            self._state = FollowerState.FENCED
            return FollowerOutcome.FENCED
        return self.back_off(now_ms)

    def back_off(self, now_ms: int) -> FollowerOutcome:
        """Leave the leader alone for a while: it refused, or could not be reached."""
        self.retry_at_ms = now_ms + self.backoff_ms
        return FollowerOutcome.BACKING_OFF

    def handle_offsets(
        self,
        current_leader_epoch: int,
        leader_start_offset: int,
        leader_end_offset: int,
        now_ms: int,
    ) -> FollowerOutcome:
        """Take the bounds of the leader's log, asked for in an epoch, and go on from within them.

        A log that ends before the leader's begins is of no use any more, and there is nothing left
        to fill the gap: it begins again where the leader's does. A log that lies within the bounds
        is kept; whether it is equal, the next Fetch will show.
        """
        if (
            self._state is not FollowerState.RESETTING
            or current_leader_epoch != self.leader_epoch
            or leader_start_offset > leader_end_offset
        ):
            return FollowerOutcome.STALE
        if leader_start_offset < 0:
            return self.back_off(now_ms)  # No log begins there.
        self._state = FollowerState.FETCHING
        if self.log.log_end_offset < leader_start_offset:
            self.log.truncate_fully_and_start_at(leader_start_offset)
            return FollowerOutcome.RESTARTED
        if self.log.log_end_offset > leader_end_offset:
            self.log.truncate_to(leader_end_offset)
            return FollowerOutcome.TRUNCATED
        return self.back_off(now_ms)

    def handle_offsets_error(
        self, current_leader_epoch: int, error_code: int, now_ms: int
    ) -> FollowerOutcome:
        """Take a refusal of the question for offsets: ask again, or wait for the metadata."""
        if self._state is not FollowerState.RESETTING or current_leader_epoch != self.leader_epoch:
            return FollowerOutcome.STALE
        if error_code == ErrorCode.FENCED_LEADER_EPOCH:
            self._state = FollowerState.FENCED
            return FollowerOutcome.FENCED
        return self.back_off(now_ms)
