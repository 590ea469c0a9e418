"""The follower's side of one partition: what to fetch, and how to handle the answer.

A follower fetches from its log's end and sends the last epoch of its log. The leader answers with
records, or with the diverging epoch; the follower then truncates its log by its own epochs and
fetches again. It never truncates to its high watermark, which may be lower than what was committed
(KIP-101).

An answer counts only if the follower would still send the same request: `FetchPosition` is the
whole request for a partition. So answers may arrive late, twice, or from a former leader.
"""

from enum import Enum
from typing import NamedTuple

from broker.metadata.image import NO_LEADER, PartitionImage
from broker.model import OffsetAndEpoch
from broker.records.errors import CorruptBatch
from broker.replication.divergence import UNKNOWN_EPOCH, truncation_offset
from broker.replication.log import ReplicaLog
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.fetch import PartitionData

NO_ERROR = ErrorCode.NONE.value


class FollowerState(Enum):
    """What a follower does; the package has the table of states."""

    IDLE = "idle"
    FETCHING = "fetching"
    RESETTING = "resetting"
    FENCED = "fenced"


class FetchPosition(NamedTuple):
    """The request of a follower for one partition."""

    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int


class FollowerOutcome(Enum):
    """The effect of an answer."""

    STALE = "stale"  # ignored: it answers an outdated request
    UNCHANGED = "unchanged"  # no records; the high watermark may have moved
    APPENDED = "appended"
    TRUNCATED = "truncated"
    RESTARTED = "restarted"  # the whole log was deleted
    OUT_OF_RANGE = "out of range"  # ask the leader for its offsets: `handle_offsets`
    BACKING_OFF = "backing off"
    FENCED = "fenced"


class PartitionFollower:
    """Invariant: below the high watermark, the log equals that of every later leader."""

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
        """True if the metadata has it in the in-sync set; it is then not throttled."""
        self.retry_at_ms = 0
        self._state = FollowerState.IDLE

    @property
    def state(self) -> FollowerState:
        """The state; see the package."""
        return self._state

    def follow(self, partition: PartitionImage) -> bool:
        """Apply the metadata; return True if the leader epoch is new, so that fetching restarts."""
        if partition.leader_epoch == self.leader_epoch:
            return False
        assert partition.leader_epoch > self.leader_epoch, (partition, self.leader_epoch)
        self.leader_epoch = partition.leader_epoch
        self.leader_id = partition.leader
        self.retry_at_ms = 0
        has_leader = partition.leader != NO_LEADER
        self._state = FollowerState.FETCHING if has_leader else FollowerState.IDLE
        return True

    # --- requests ---

    def position(self) -> FetchPosition:
        """Return the request that fits the current state."""
        log = self.log
        return FetchPosition(
            self.leader_epoch, log.log_end_offset, log.leader_epoch, log.log_start_offset
        )

    def next_fetch(self, now_ms: int) -> FetchPosition | None:
        """Return the request to send; None while the follower is not fetching or backs off."""
        if self._state is not FollowerState.FETCHING or now_ms < self.retry_at_ms:
            return None
        return self.position()

    def needs_offsets(self, now_ms: int) -> bool:
        """Return True if the leader must be asked for its log's offsets (ListOffsets)."""
        return self._state is FollowerState.RESETTING and now_ms >= self.retry_at_ms

    # --- answers ---

    def handle_fetch_answer(
        self, asked: FetchPosition, answer: PartitionData, now_ms: int
    ) -> FollowerOutcome:
        """Handle the leader's answer. An OSError from the log means that the disk has failed."""
        if self._state is not FollowerState.FETCHING or not self._is_current(asked):
            return FollowerOutcome.STALE
        if answer.error_code != NO_ERROR:
            return self._handle_error(answer.error_code, now_ms)
        diverging = answer.diverging_epoch
        if diverging.epoch != UNKNOWN_EPOCH:
            is_possible = 0 <= diverging.epoch <= asked.last_fetched_epoch
            if not is_possible or diverging.end_offset < 0:
                # No correct leader sends this, and the truncation would remove committed records.
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
                # The batch was damaged on the network or on the leader's disk. The log keeps the
                # batches before it.
                return self.back_off(now_ms)
            outcome = FollowerOutcome.APPENDED
        self._follow_offsets(answer.high_watermark, answer.log_start_offset)
        return outcome

    def _is_current(self, asked: FetchPosition) -> bool:
        # The log start offset may have moved: the records still fit.
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
        """Send nothing for `backoff_ms`: the leader refused or could not be reached."""
        self.retry_at_ms = now_ms + self.backoff_ms
        return FollowerOutcome.BACKING_OFF

    def handle_offsets(
        self,
        current_leader_epoch: int,
        leader_start_offset: int,
        leader_end_offset: int,
        now_ms: int,
    ) -> FollowerOutcome:
        """Handle the start and end of the leader's log, and continue to fetch within them.

        If the follower's log ends before the leader's log starts, no replica can fill the gap: the
        follower deletes its log and starts at the leader's log start offset. If its log ends within
        the bounds, it keeps it, and the next Fetch shows whether the logs are equal.
        """
        if (
            self._state is not FollowerState.RESETTING
            or current_leader_epoch != self.leader_epoch
            or leader_start_offset > leader_end_offset
        ):
            return FollowerOutcome.STALE
        if leader_start_offset < 0:
            return self.back_off(now_ms)  # No log has a negative start offset.
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
        """Handle an error of ListOffsets: retry, or wait for the metadata if fenced."""
        if self._state is not FollowerState.RESETTING or current_leader_epoch != self.leader_epoch:
            return FollowerOutcome.STALE
        if error_code == ErrorCode.FENCED_LEADER_EPOCH:
            self._state = FollowerState.FENCED
            return FollowerOutcome.FENCED
        return self.back_off(now_ms)
