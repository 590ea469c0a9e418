"""Mutations of the transaction coordinator: each leaves out one rule."""

from dataclasses import replace
from typing import Any

import pytest

from broker.coordinator.transaction import add_partitions, end_txn, markers, records, step, sweep
from broker.coordinator.transaction.transaction import Transaction
from broker.server.coordinators import marker_sender
from tests.sim.transaction_coordinator import SHARD, Coordinator
from tests.sim.transaction_data_mutations import (
    let_aborted_offsets_count,
    load_offsets_as_if_outside_transactions,
    load_without_markers,
)
from tests.sim.transaction_partitions import DataPartition

original_prepare = Transaction.prepare
original_fence = Transaction.fence
original_run = Coordinator.run
original_transaction_of = step.Step.transaction_of
original_value_of = records._value_of


def end_without_raising_the_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prepare the end of a transaction without a new epoch."""

    def prepare(transaction: Transaction, **more: Any) -> Transaction:
        prepared = original_prepare(transaction, **more)
        return replace(prepared, producer_epoch=transaction.producer_epoch)

    monkeypatch.setattr(Transaction, "prepare", prepare)


def fence_without_raising_the_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Abort a producer's transaction without a new epoch for it."""

    def fence(transaction: Transaction, **more: Any) -> Transaction:
        return replace(
            original_fence(transaction, **more), producer_epoch=transaction.producer_epoch
        )

    monkeypatch.setattr(Transaction, "fence", fence)


def end_for_an_epoch_that_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """End the current transaction for a request of an earlier epoch."""

    def is_repeat(transaction: Transaction, request: Any) -> bool:
        if request.producer_epoch < transaction.producer_epoch:
            request.producer_epoch = transaction.producer_epoch
        return False

    monkeypatch.setattr(end_txn, "_is_repeat", is_repeat)


def look_at_no_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the check of the epoch in AddPartitionsToTxn."""

    def transaction_of(self: Any, name: str, producer_id: int, epoch: Any = None) -> Transaction:
        return original_transaction_of(self, name, producer_id)

    monkeypatch.setattr(step.Step, "transaction_of", transaction_of)


def add_while_the_markers_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a partition to a prepared transaction."""
    monkeypatch.setattr(add_partitions, "_validate_open", lambda transaction: None)


def begin_effects_before_they_are_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send markers before the PREPARE record is committed."""

    def run(coordinator: Coordinator, output: Any, **more: Any) -> None:
        effects, output.effects = output.effects, []
        original_run(coordinator, output, **more)
        for effect in effects:
            coordinator.sender.send(SHARD, effect)

    monkeypatch.setattr(Coordinator, "run", run)


def answer_before_it_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer before the records are committed."""

    def run(coordinator: Coordinator, output: Any, **more: Any) -> None:
        replies, output.replies = output.replies, []
        original_run(coordinator, output, **more)
        for on_answer, response in replies:
            on_answer(response)

    monkeypatch.setattr(Coordinator, "run", run)


def load_and_send_no_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send no markers for the prepared transactions of a loaded log."""
    monkeypatch.setitem(sweep.ACTS, step.Sweep.END_PREPARED, lambda *_: False)


def complete_with_the_first_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Complete a transaction after its first marker."""

    def note_written(endings: Any, sent: Any, partitions: Any) -> bool:
        return endings._by_id.pop(sent.transactional_id, None) is not None

    monkeypatch.setattr(markers.Endings, "note_written", note_written)


def take_a_refusal_for_a_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count a marker that the partition's leader refused."""
    monkeypatch.setattr(
        marker_sender,
        "_written",
        lambda answer: {
            marker.producer_id: frozenset(
                marker_sender.TopicPartition(topic.name, each.partition_index)
                for topic in marker.topics
                for each in topic.partitions
            )
            for marker in answer.markers
        },
    )


def forget_the_partitions_of_what_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a PREPARE record without its partitions, so a new coordinator sends no markers."""

    def value_of(transaction: Transaction) -> Any:
        if transaction.state in step.PREPARED:
            transaction = replace(transaction, partitions=frozenset())
        return original_value_of(transaction)

    monkeypatch.setattr(records, "_value_of", value_of)


def verify_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Append the first batch of a transaction without verification."""

    def verify(partition: DataPartition, state: Any, batch: Any, on_answer: Any) -> None:
        partition._append(state, batch, on_answer)

    monkeypatch.setattr(DataPartition, "_verify", verify)


MUTATIONS = [
    end_without_raising_the_epoch,
    fence_without_raising_the_epoch,
    end_for_an_epoch_that_is_over,
    look_at_no_epoch,
    add_while_the_markers_are_written,
    begin_effects_before_they_are_committed,
    answer_before_it_is_committed,
    load_and_send_no_markers,
    complete_with_the_first_marker,
    take_a_refusal_for_a_marker,
    forget_the_partitions_of_what_is_prepared,
    verify_nothing,
    let_aborted_offsets_count,
    load_offsets_as_if_outside_transactions,
    load_without_markers,
]
