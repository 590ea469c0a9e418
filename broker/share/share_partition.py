"""A share-partition: one partition as one share group sees it, at the partition's leader.

The records in flight are those in [start_offset, end_offset); everything below is final, and
nothing above was delivered so far. A member acquires records for the time of a lock. It
acknowledges them, or the lock ends, or its session does: then they are available again, or, after
`delivery_count_limit` deliveries, archived. `in_flight` has the states and their order.

The share coordinator stores the states. A change by a member is a `Change`: the records keep their
state, and nobody can change it, until `complete` tells whether the coordinator has stored the new
one; only then is the member answered. Acquiring is not stored, so a new leader delivers again what
its predecessor had given out. A lock that ends makes records available at once; those that are to
be archived instead wait for the coordinator too, so that everything below `start_offset` that a
member had is stored as final.

Invariants:

- no offset is acquired by two members at once;
- `start_offset` and `end_offset` only grow, and start_offset <= end_offset;
- the delivery count of an offset only grows;
- a final state is final.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from broker.share.acknowledgement import STATE_AFTER, Acknowledgement, AcknowledgeType
from broker.share.acquisition import (
    Acquired,
    Acquisition,
    Demand,
    LogBatch,
    SharePolicy,
    archive,
    undeliverable,
)
from broker.share.in_flight import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    FINAL,
    Delivery,
    InFlight,
    RecordState,
    Run,
)
from common.kafka.errors import ErrorCode, KafkaError

NO_DEADLINE = 1 << 62
ARCHIVE_RETRY_MS = 1_000
"""The time until records that could not be stored as archived are tried again."""


class StateBatch(NamedTuple):
    """A range of records and its state, as the share coordinator stores it."""

    start_offset: int
    end_offset: int
    state: RecordState
    delivery_count: int


class Change:
    """Records whose new states are being written."""

    __slots__ = ("batches", "delivery_count_limit", "runs")

    def __init__(
        self, runs: list[Run], delivery_count_limit: int, available: Sequence[Run] = ()
    ) -> None:
        self.runs = runs
        self.delivery_count_limit = delivery_count_limit
        self.batches = _state_batches(sorted([*runs, *available], key=lambda run: run.start_offset))
        """What to write, also of records that are `available` without it."""


class SharePartition:
    """The records in flight of one partition for one share group, and the states of each.

    A change by a member takes effect when `complete` says that the coordinator has stored it.
    """

    def __init__(
        self, start_offset: int, *, state_epoch: int = 0, batches: Iterable[StateBatch] = ()
    ) -> None:
        """Begin with the state that the coordinator has stored; raise ValueError if it is invalid.

        Offsets between the batches were delivered, but not stored, or have no record: they are
        available.
        """
        self.state_epoch = state_epoch
        self.start_offset = self.end_offset = start_offset
        self._in_flight = InFlight()
        self._may_have_available = False
        for batch in batches:
            self._restore(batch)
        self._advance()

    def _restore(self, batch: StateBatch) -> None:
        start, end = batch.start_offset, batch.end_offset
        if start < self.end_offset or end <= start or batch.state is ACQUIRED:
            raise ValueError(f"{batch} after offset {self.end_offset}")
        self._cover(start)
        delivery = Delivery(start, end - start)
        run = Run(start, end, batch.state, batch.delivery_count, delivery)
        self._in_flight.append(run)
        self.end_offset = end
        self._may_have_available |= run.is_available

    def _cover(self, end_offset: int) -> None:
        """Add what lies between the end and an offset, as records that nobody got."""
        if end_offset > self.end_offset:
            self._in_flight.append(Run(self.end_offset, end_offset))
            self.end_offset = end_offset
            self._may_have_available = True

    # --- what a reader and the metrics ask ---

    @property
    def record_count(self) -> int:
        """The number of offsets in flight."""
        return self.end_offset - self.start_offset

    @property
    def runs(self) -> Sequence[Run]:
        """The ranges in flight, to read only."""
        return self._in_flight.runs

    def next_fetch_offset(self) -> int:
        """Return the first available offset, or the end of those in flight."""
        if self._may_have_available:
            for run in self._in_flight.runs:
                if run.is_available:
                    return run.start_offset
            self._may_have_available = False
        return self.end_offset

    def can_acquire(self, policy: SharePolicy) -> bool:
        """Return whether a member may get records, if the log has any."""
        return (
            self.record_count < policy.max_record_locks
            or self.next_fetch_offset() < self.end_offset
        )

    def delivery_complete_count(self) -> int:
        """Return how many offsets in flight are final, or will be when their change is written."""
        return sum(
            run.record_count
            for run in self._in_flight.runs
            if (run.state if run.target is None else run.target) in FINAL
        )

    def next_deadline_ms(self) -> int:
        """Return when the first lock ends, or NO_DEADLINE."""
        return min(
            (run.deadline_ms for run in self._in_flight.runs if run.is_acquired),
            default=NO_DEADLINE,
        )

    # --- acquire ---

    def acquire(
        self, demand: Demand, batches: Sequence[LogBatch], policy: SharePolicy, now_ms: int
    ) -> list[Acquired]:
        """Give a member records of a read that began at `next_fetch_offset`."""
        position = self.next_fetch_offset()
        end = batches[-1].end_offset if batches else position
        most = min(demand.max_records, policy.max_record_locks - self.record_count)
        if most <= 0:
            # Only what was in flight before may be delivered.
            end = min(end, self.end_offset)
            most = min(demand.max_records, end - position)
        if end <= position or most <= 0:
            return []
        self._cover(end)
        for start, stop in undeliverable(position, batches):
            archive(self._in_flight, start, min(stop, end))
        acquisition = Acquisition(self._in_flight, batches, demand, policy, now_ms)
        acquisition.take(position, end, most)
        self._uncover()
        self._advance()
        return acquisition.acquired

    def _uncover(self) -> None:
        """Forget the end of the read, which nobody got."""
        runs = self._in_flight.runs
        last = len(runs)
        for index in range(len(runs) - 1, -1, -1):
            run = runs[index]
            if run.is_available and run.delivery_count == 0:
                last = index
            elif not (run.state is ARCHIVED and run.delivery_count == 0):
                break
        if last < len(runs):
            self._in_flight.drop_from(runs[last].start_offset)
            self.end_offset = runs[-1].end_offset if runs else self.start_offset

    # --- acknowledge, release, expire ---

    def acknowledge(
        self,
        member_id: str,
        acknowledged: Sequence[Acknowledgement],
        policy: SharePolicy,
        now_ms: int,
    ) -> Change | None:
        """Begin to change what a member acknowledges; None if there is nothing to write.

        Records below the start offset are final, and ignored. Either everything is changed, or
        nothing, with INVALID_RECORD_STATE or INVALID_REQUEST.
        """
        acknowledged = [each for each in acknowledged if each.end_offset > self.start_offset]
        for each in acknowledged:
            self._validate(member_id, each, policy)
        changed: list[Run] = []
        for start, end, kind in acknowledged:
            for run in self._in_flight.divided(max(start, self.start_offset), end):
                if kind == AcknowledgeType.RENEW:
                    run.deadline_ms = now_ms + policy.record_lock_duration_ms
                else:
                    run.target = _after(STATE_AFTER[kind], run, policy.delivery_count_limit)
                    changed.append(run)
        return Change(changed, policy.delivery_count_limit) if changed else None

    def _validate(self, member_id: str, each: Acknowledgement, policy: SharePolicy) -> None:
        start, end, kind = each
        if not self._in_flight.runs:
            raise _invalid_state(f"The records {start} to {end - 1} are not in flight")
        if end > self.end_offset:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"The last offset {end - 1} is past the acquired records, "
                f"which end at {self.end_offset - 1}",
            )
        if kind == AcknowledgeType.RENEW and not policy.renews_locks:
            raise _invalid_state("Renewing acquisition locks is not enabled for the group")
        for run in self._in_flight.within(max(start, self.start_offset), end):
            if not run.is_acquired:
                raise _invalid_state(f"The record at {run.start_offset} is not acquired")
            if run.member_id != member_id:
                raise _invalid_state(
                    f"Member {member_id} does not have the record at {run.start_offset}"
                )

    def release(self, member_id: str, policy: SharePolicy) -> Change | None:
        """Begin to give back everything that a member has; its session has ended."""
        released = [
            run for run in self._in_flight.runs if run.member_id == member_id and run.is_acquired
        ]
        limit = policy.delivery_count_limit
        for run in released:
            run.target = _after(AVAILABLE, run, limit)
        return Change(released, limit) if released else None

    def complete(self, change: Change, *, is_written: bool, now_ms: int) -> None:
        """End a change: the coordinator has stored it, or it may not have.

        Without it, the members have their records again, except those whose lock has ended.
        """
        for run in change.runs:
            target, run.target = run.target, None
            assert target is not None, run
            if is_written:
                run.settle(target)
            elif run.deadline_ms <= now_ms:
                if _after(AVAILABLE, run, change.delivery_count_limit) is AVAILABLE:
                    run.settle(AVAILABLE)
                else:
                    run.deadline_ms = now_ms + ARCHIVE_RETRY_MS
            self._may_have_available |= run.is_available
        if change.runs:
            self._in_flight.join(change.runs[0].start_offset, change.runs[-1].end_offset)
        self._advance()

    def expire(self, policy: SharePolicy, now_ms: int) -> Change | None:
        """End the locks whose time is over; None if there is none."""
        expired = [
            run for run in self._in_flight.runs if run.is_acquired and run.deadline_ms <= now_ms
        ]
        if not expired:
            return None
        limit = policy.delivery_count_limit
        available = [run for run in expired if _after(AVAILABLE, run, limit) is AVAILABLE]
        last = [run for run in expired if _after(AVAILABLE, run, limit) is ARCHIVED]
        for run in available:
            run.settle(AVAILABLE)
            self._may_have_available = True
        for run in last:
            run.target = ARCHIVED
        change = Change(last, limit, available)
        self._in_flight.join(expired[0].start_offset, expired[-1].end_offset)
        return change

    # --- the start offset ---

    def follow_log_start(self, log_start_offset: int) -> bool:
        """Forget what the log has deleted; return whether the start offset moved."""
        if log_start_offset <= self.start_offset:
            return False
        self._in_flight.drop_below(log_start_offset)
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)
        self._advance()
        return True

    def _advance(self) -> None:
        """Move the start offset over the records that are final."""
        runs = self._in_flight.runs
        count = 0
        while count < len(runs) and runs[count].state in FINAL:
            count += 1
        if count:
            self.start_offset = runs[count - 1].end_offset
            del runs[:count]


def _after(state: RecordState, run: Run, delivery_count_limit: int) -> RecordState:
    """Return the state after a delivery: nothing is delivered more often than the limit."""
    if state is AVAILABLE and run.delivery_count >= delivery_count_limit:
        return ARCHIVED
    return state


def _state_batches(runs: Sequence[Run]) -> list[StateBatch]:
    batches: list[StateBatch] = []
    for run in runs:
        state = run.state if run.target is None else run.target
        if batches:
            last = batches[-1]
            if (last.end_offset, last.state, last.delivery_count) == (
                run.start_offset,
                state,
                run.delivery_count,
            ):
                batches[-1] = last._replace(end_offset=run.end_offset)
                continue
        batches.append(StateBatch(run.start_offset, run.end_offset, state, run.delivery_count))
    return batches


def _invalid_state(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD_STATE, message)
