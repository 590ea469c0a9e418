"""One acquisition: which records of a read a member gets.

Records are taken in the order of the log. Usually a member gets at least as many as it asked for,
up to the end of the batch of the log in which the last one is, because whole batches are sent
(`batch_optimized`); in `record_limit` mode (KIP-1206) it gets exactly that many at most.

Records that have failed often are delivered in ever smaller numbers, so that a bad one is found
without using up the deliveries of the others: from half of the delivery limit on, half of what was
delivered together, then a quarter, and the last time a record is alone.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker.share.in_flight import ARCHIVED, NEVER_DELIVERED, Delivery, InFlight, Run

LEAST_THROTTLED_COUNT = 2
LAST_ATTEMPT_LIMIT = 2
"""With a higher delivery limit, a record is alone in its last delivery."""


class LogBatch(NamedTuple):
    """A batch of the log that was read."""

    base_offset: int
    end_offset: int
    is_aborted: bool = False
    """True if its transaction was aborted and the group reads committed records only."""


class Demand(NamedTuple):
    """What a member asks for."""

    member_id: str
    max_records: int
    batch_size: int
    """The least number of records in one piece of the answer, which ends with a batch."""
    is_record_limit: bool = False


class SharePolicy(NamedTuple):
    """The settings of a share group that its share-partitions follow."""

    delivery_count_limit: int = 5
    record_lock_duration_ms: int = 30_000
    max_record_locks: int = 2_000
    renews_locks: bool = True


class Acquired(NamedTuple):
    """A piece of the records that a member got."""

    start_offset: int
    end_offset: int
    delivery_count: int


def undeliverable(position: int, batches: Sequence[LogBatch]) -> Iterator[tuple[int, int]]:
    """Yield the offsets from `position` on without a record in the log, or with an aborted one."""
    for batch in batches:
        if batch.end_offset <= position:
            continue
        if batch.base_offset > position:
            yield position, batch.base_offset
            position = batch.base_offset
        if batch.is_aborted:
            yield position, batch.end_offset
        position = batch.end_offset


class Acquisition:
    """Picks records for one member. `in_flight` covers all of the offsets that were read."""

    def __init__(
        self,
        in_flight: InFlight,
        batches: Sequence[LogBatch],
        demand: Demand,
        policy: SharePolicy,
        now_ms: int,
    ) -> None:
        self._in_flight = in_flight
        self._batches = batches
        self._demand = demand
        self._deadline_ms = now_ms + policy.record_lock_duration_ms
        self._limit = policy.delivery_count_limit
        self._throttled_from = max(LEAST_THROTTLED_COUNT, (self._limit + 1) // 2)
        self._delivery = NEVER_DELIVERED
        self._most_of_delivery: int | None = None
        self._taken_of_delivery = 0
        self._is_complete = False
        self.count = 0
        self.acquired: list[Acquired] = []

    def take(self, position: int, end_offset: int, most: int) -> None:
        """Acquire available records of [position, end), about `most` of them."""
        runs = self._in_flight.runs
        index = self._in_flight.index_of(position)
        while index < len(runs) and runs[index].start_offset < end_offset:
            if self.count >= most or self._is_complete:
                return
            run = runs[index]
            if run.is_available:
                if self._most_of_delivery is not None and run.delivery != self._delivery:
                    return  # An answer with throttled records ends with them.
                if run.delivery is NEVER_DELIVERED:
                    self._take_new(run, min(run.end_offset, end_offset), most - self.count)
                else:
                    self._take_again(run, index, end_offset, most - self.count)
            index += 1

    # --- records that nobody got before ---

    def _take_new(self, run: Run, end_offset: int, most: int) -> None:
        start_offset = run.start_offset
        if end_offset - start_offset > most:
            end_offset = start_offset + most
            if not self._demand.is_record_limit:
                end_offset = min(self._batch_end(end_offset - 1), run.end_offset)
        for piece_start, piece_end in self._pieces(start_offset, end_offset):
            piece = self._in_flight.divided(piece_start, piece_end)[0]
            piece.delivery = Delivery(piece_start, piece_end - piece_start)
            self._give(piece)

    def _batch_end(self, offset: int) -> int:
        for batch in self._batches:
            if offset < batch.end_offset:
                return batch.end_offset if batch.base_offset <= offset else offset + 1
        return offset + 1

    def _pieces(self, start_offset: int, end_offset: int) -> Iterator[tuple[int, int]]:
        """Divide a range at batches of the log into pieces of at least the batch size."""
        if not self._demand.is_record_limit:
            size = max(1, self._demand.batch_size)
            for batch in self._batches:
                if batch.base_offset >= end_offset:
                    break
                if batch.base_offset - start_offset >= size:
                    yield start_offset, batch.base_offset
                    start_offset = batch.base_offset
        yield start_offset, end_offset

    # --- records that were delivered before ---

    def _take_again(self, run: Run, index: int, end_offset: int, most: int) -> None:
        if run.delivery != self._delivery:
            if self.count and self._is_throttled(index, end_offset):
                self._is_complete = True
                return
            self._delivery = run.delivery
            self._most_of_delivery, self._taken_of_delivery = None, 0
        count = min(run.end_offset, end_offset) - run.start_offset
        if self._demand.is_record_limit:
            count = min(count, most)
        if run.delivery_count >= self._throttled_from:
            count = self._throttled(run, count)
            if not count:
                self._is_complete = True
                return
        taken = self._in_flight.divided(run.start_offset, run.start_offset + count)[0]
        self._give(taken)
        self._taken_of_delivery += count

    def _is_throttled(self, index: int, end_offset: int) -> bool:
        """Return whether a delivery has a throttled record in this read."""
        runs = self._in_flight.runs
        delivery = runs[index].delivery
        while index < len(runs) and runs[index].start_offset < end_offset:
            run = runs[index]
            if run.delivery != delivery:
                return False
            if run.is_available and run.delivery_count >= self._throttled_from:
                return True
            index += 1
        return False

    def _throttled(self, run: Run, count: int) -> int:
        """Return how many of often failed records to take: the answer ends with them."""
        if self._limit > LAST_ATTEMPT_LIMIT and run.delivery_count >= self._limit - 1:
            self._is_complete = True
            return 0 if self._taken_of_delivery else 1
        if self._most_of_delivery is None:
            halvings = run.delivery_count - self._throttled_from + 1
            self._most_of_delivery = max(1, run.delivery.record_count >> halvings)
        left = max(0, self._most_of_delivery - self._taken_of_delivery)
        return min(count, left)

    def _give(self, run: Run) -> None:
        run.acquire(self._demand.member_id, self._deadline_ms)
        self.count += run.record_count
        piece = Acquired(run.start_offset, run.end_offset, run.delivery_count)
        if self.acquired and run.delivery == self._delivery:
            last = self.acquired[-1]
            if last[1] == piece.start_offset and last.delivery_count == piece.delivery_count:
                self.acquired[-1] = last._replace(end_offset=piece.end_offset)
                return
        self.acquired.append(piece)


def archive(in_flight: InFlight, start_offset: int, end_offset: int) -> bool:
    """Archive the available records of [start, end); return whether there were any."""
    found = [run for run in in_flight.within(start_offset, end_offset) if run.is_available]
    for run in found:
        start, end = max(start_offset, run.start_offset), min(end_offset, run.end_offset)
        for part in in_flight.divided(start, end):
            part.settle(ARCHIVED)
    return bool(found)
