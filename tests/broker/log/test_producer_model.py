"""Producers and transactions of one partition against an oracle that reads the whole history.

The oracle is a list of the batches that are in the log. What is open, what was aborted and where
readers stop is computed anew from all of it after every step, so that it cannot be wrong in the
way the log's own bookkeeping can: after appends, cuts, rolled segments, deleted records, restarts,
also such as have lost the high watermark.
"""

from typing import NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from broker.log.append import AppendOrigin
from broker.log.config import LogConfig
from broker.log.log_start import OpenHints
from broker.records.build import build_batch
from broker.records.control import EndMarker, build_end_marker
from broker.records.header import INT32_MAX
from common.kafka.errors import ErrorCode, KafkaError
from tests.lib.logs import NOW_MS, open_log
from tests.lib.simulated_storage import SimulatedStorage

PRODUCERS = st.integers(1, 2)
SHARES = st.sampled_from([0.0, 0.5, 1.0])


class Written(NamedTuple):
    """One batch as the oracle remembers it."""

    base_offset: int
    next_offset: int
    producer_id: int
    epoch: int
    base_sequence: int
    is_transactional: bool
    commits: bool | None = None
    """Of a marker."""


class Producer(NamedTuple):
    """What the history says of one producer."""

    epoch: int = -1
    next_sequence: int | None = None
    open_since: int | None = None


class ProducersMachine(RuleBasedStateMachine):
    """The high watermark is moved on its own, as followers do."""

    @initialize(start=st.sampled_from([0, INT32_MAX - 3]), segment_bytes=st.integers(150, 900))
    def begin(self, start: int, segment_bytes: int) -> None:
        self.config = LogConfig(internal_segment_bytes=segment_bytes, index_interval_bytes=100)
        self.log = open_log(SimulatedStorage(), self.config)
        self.history: list[Written] = []
        self.first_sequence = start

    # --- the oracle ---

    def producer(self, producer_id: int) -> Producer:
        known = Producer()
        for batch in self.history:
            if batch.producer_id != producer_id:
                continue
            if batch.epoch != known.epoch:
                known = Producer(batch.epoch, None, known.open_since)
            if batch.commits is not None:
                known = known._replace(open_since=None)
                continue
            count = batch.next_offset - batch.base_offset
            known = known._replace(next_sequence=(batch.base_sequence + count) & INT32_MAX)
            if batch.is_transactional and known.open_since is None:
                known = known._replace(open_since=batch.base_offset)
        return known

    def transactions(self) -> list[tuple[int, int, int | None, bool]]:
        """Give (producer, first offset, marker's offset, whether committed) of each."""
        found: dict[int, tuple[int, int]] = {}
        ended: list[tuple[int, int, int | None, bool]] = []
        for batch in self.history:
            if batch.commits is not None:
                if batch.producer_id in found:
                    producer_id, first = found.pop(batch.producer_id)
                    ended.append((producer_id, first, batch.base_offset, batch.commits))
            elif batch.is_transactional:
                found.setdefault(batch.producer_id, (batch.producer_id, batch.base_offset))
        return ended + [(producer_id, first, None, False) for producer_id, first in found.values()]

    # --- what happens ---

    @rule(
        producer_id=PRODUCERS,
        count=st.integers(1, 3),
        is_transactional=st.booleans(),
        raises=st.booleans(),
        share=SHARES,
    )
    def write(
        self, producer_id: int, count: int, is_transactional: bool, raises: bool, share: float
    ) -> None:
        known = self.producer(producer_id)
        is_transactional |= known.open_since is not None
        epoch, sequence = known.epoch, known.next_sequence
        if known.epoch < 0:
            epoch, sequence = 0, self.first_sequence
        elif sequence is None or (raises and known.open_since is None):
            epoch, sequence = known.epoch + (sequence is not None), 0
        self.append(Written(-1, count, producer_id, epoch, sequence, is_transactional))
        self.commit(share)

    def append(self, batch: Written, origin: AppendOrigin = AppendOrigin.CLIENT) -> bool:
        records = [(None, b"v", (), NOW_MS)] * batch.next_offset
        encoded = build_batch(
            records,
            producer_id=batch.producer_id,
            producer_epoch=batch.epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
        )
        info = self.log.append_as_leader(
            encoded, leader_epoch=0, timestamp_ms=NOW_MS, origin=origin
        )
        if not info.is_duplicate:
            self.history.append(
                batch._replace(base_offset=info.base_offset, next_offset=info.last_offset + 1)
            )
        return info.is_duplicate

    @rule(producer_id=PRODUCERS, commits=st.booleans(), raised=st.integers(0, 1), share=SHARES)
    def end(self, producer_id: int, commits: bool, raised: int, share: float) -> None:
        epoch = max(0, self.producer(producer_id).epoch) + raised
        marker = build_end_marker(producer_id, epoch, EndMarker(commits, 0), NOW_MS)
        origin = AppendOrigin.COORDINATOR
        info = self.log.append_as_leader(marker, leader_epoch=0, timestamp_ms=NOW_MS, origin=origin)
        end_offset = info.last_offset + 1
        self.history.append(
            Written(info.base_offset, end_offset, producer_id, epoch, -1, True, commits)
        )
        self.commit(share)

    @precondition(lambda self: self.history)
    @rule(producer_id=PRODUCERS, gap=st.integers(1, 5))
    def what_is_out_of_order_or_fenced_is_refused(self, producer_id: int, gap: int) -> None:
        known = self.producer(producer_id)
        if known.next_sequence is not None:
            sequence = (known.next_sequence + gap) & INT32_MAX
            batch = Written(-1, 1, producer_id, known.epoch, sequence, True)
            self.refuses(batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        if known.epoch > 0:
            batch = Written(-1, 1, producer_id, known.epoch - 1, 0, True)
            self.refuses(batch, ErrorCode.INVALID_PRODUCER_EPOCH)

    def refuses(self, batch: Written, code: ErrorCode) -> None:
        with pytest.raises(KafkaError) as refused:
            self.append(batch)
        assert refused.value.code == code

    @precondition(lambda self: self.history)
    @rule(producer_id=PRODUCERS)
    def a_repeat_of_the_last_batch_is_answered_as_before(self, producer_id: int) -> None:
        known = self.producer(producer_id)
        of_producer = [
            batch
            for batch in self.history
            if batch.producer_id == producer_id and batch.commits is None
        ]
        if of_producer and of_producer[-1].epoch == known.epoch:
            last = of_producer[-1]
            count = last.next_offset - last.base_offset
            assert self.append(last._replace(next_offset=count))

    @precondition(lambda self: self.history)
    @rule()
    def roll(self) -> None:
        if self.log.segments.active.size_bytes:
            self.log.roll(NOW_MS)

    def commit(self, share: float) -> None:
        log = self.log
        log.advance_high_watermark(
            log.high_watermark + round(share * (log.log_end_offset - log.high_watermark))
        )

    @precondition(lambda self: self.history)
    @rule(share=SHARES)
    def cut_what_is_not_committed(self, share: float) -> None:
        log = self.log
        wanted = log.high_watermark + round(share * (log.log_end_offset - log.high_watermark))
        end_offset = log.truncate_to(wanted)
        self.history = [batch for batch in self.history if batch.next_offset <= end_offset]

    @precondition(lambda self: self.history)
    @rule(share=SHARES)
    def delete_records(self, share: float) -> None:
        log = self.log
        start = log.log_start_offset
        log.delete_records_before(start + round(share * (log.high_watermark - start)))
        log.delete_old_segments(NOW_MS)
        log.save_names()

    @precondition(lambda self: self.history)
    @rule(is_clean=st.booleans(), is_high_watermark_lost=st.booleans())
    def restart(self, is_clean: bool, is_high_watermark_lost: bool) -> None:
        log = self.log
        if is_clean:
            log.close()
        hints = OpenHints(
            is_clean=is_clean,
            recovery_point=log.recovery_point,
            log_start_offset=log.log_start_offset,
            high_watermark=0 if is_high_watermark_lost else log.high_watermark,
            timestamp_ms=NOW_MS,
        )
        self.log = open_log(log.place.storage, self.config, hints)

    # --- what holds ---

    @invariant()
    def readers_stop_at_the_first_transaction_that_is_not_decided(self) -> None:
        if not hasattr(self, "log"):
            return
        log = self.log
        undecided = [
            first
            for _, first, ended, _ in self.transactions()
            if ended is None or ended >= log.high_watermark
        ]
        first = min([*undecided, log.high_watermark])
        assert log.last_stable_offset == max(first, log.log_start_offset)

    @invariant()
    def readers_are_told_of_every_aborted_transaction_once(self) -> None:
        if not hasattr(self, "log") or not self.history:
            return
        aborted = [
            (producer_id, first, ended)
            for producer_id, first, ended, is_commit in self.transactions()
            if ended is not None and not is_commit and ended >= self.log.segments.first.base_offset
        ]
        aborted.sort(key=lambda entry: entry[2])
        told: list[tuple[int, int, int]] = []
        for segment in self.log.segments:
            told += [entry[:3] for entry in segment.transaction_index.entries]
        assert told == aborted

    @invariant()
    def what_is_open_and_who_writes_is_known(self) -> None:
        if not hasattr(self, "log"):
            return
        for producer_id in range(1, 3):
            known, entry = self.producer(producer_id), self.log.producers.producers.get(producer_id)
            if known.epoch < 0:
                assert entry is None
                continue
            assert entry is not None
            first = -1 if known.open_since is None else known.open_since
            assert (entry.epoch, entry.transaction_first_offset) == (known.epoch, first)
            following = (entry.last_sequence + 1) & INT32_MAX if entry.batches else None
            assert following == known.next_sequence


def test_the_producers_are_what_the_history_says() -> None:
    run_state_machine_as_test(
        ProducersMachine, settings=settings(max_examples=40, stateful_step_count=30, deadline=None)
    )
