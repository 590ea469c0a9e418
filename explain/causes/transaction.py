"""In which state a transaction is, and what keeps it there."""

from collections.abc import Iterator
from typing import Final

from explain.causes.cause import Figures, fact, notice, problem
from explain.facts import TransactionCase

ONGOING: Final = "Ongoing"
ENDING: Final = {"PrepareCommit": "committed", "PrepareAbort": "aborted"}
CLOSED: Final = {
    "Empty": "its producer has been initialized, and has not begun one since",
    "CompleteCommit": "the last one was committed",
    "CompleteAbort": "the last one was aborted",
}
LOADING: Final = "COORDINATOR_LOAD_IN_PROGRESS"
SWEEP_MS: Final = 15_000
"""Coordinators look every ten seconds for transactions that are past their time-out."""


def _missing(case: TransactionCase) -> Iterator[Figures]:
    one = case.transaction
    if not one.is_found and one.coordinator_error is None:
        yield {
            "id": one.transactional_id,
            "similar": f" Similar: {', '.join(one.similar)}." if one.similar else "",
        }


def _coordinator_away(case: TransactionCase) -> Iterator[Figures]:
    one = case.transaction
    if one.coordinator_error is not None:
        yield {"id": one.transactional_id, "error": one.coordinator_error}


def _age(case: TransactionCase) -> int | None:
    started_ms = case.transaction.started_ms
    return None if started_ms is None else case.cluster.now_ms - started_ms


def _overtime(case: TransactionCase) -> int | None:
    """Return by how much an ongoing transaction is past its time-out, below zero before it."""
    age_ms, timeout_ms = _age(case), case.transaction.timeout_ms
    if case.transaction.state != ONGOING or age_ms is None or timeout_ms is None:
        return None
    return age_ms - timeout_ms


def _figures(case: TransactionCase) -> dict[str, object]:
    one = case.transaction
    return {
        "id": one.transactional_id,
        "producer": one.producer_id,
        "epoch": one.producer_epoch,
        "coordinator": one.coordinator_id,
        "partitions": [each.name for each in one.partitions],
    }


def _ongoing(case: TransactionCase) -> Iterator[Figures]:
    over_ms = _overtime(case)
    if over_ms is not None and over_ms <= SWEEP_MS:
        yield {
            **_figures(case),
            "age": _age(case),
            "since": case.transaction.started_ms,
            "timeout": case.transaction.timeout_ms,
            "left": max(-over_ms, 0),
        }


def _overdue(case: TransactionCase) -> Iterator[Figures]:
    over_ms = _overtime(case)
    if over_ms is not None and over_ms > SWEEP_MS:
        yield {
            **_figures(case),
            "age": _age(case),
            "since": case.transaction.started_ms,
            "timeout": case.transaction.timeout_ms,
            "over": over_ms,
        }


def _ending(case: TransactionCase) -> Iterator[Figures]:
    if case.transaction.state in ENDING:
        yield {**_figures(case), "how": ENDING[case.transaction.state]}


def _ending_without_leader(case: TransactionCase) -> Iterator[Figures]:
    unled = [each.name for each in case.transaction.partitions if not each.has_leader]
    if case.transaction.state in ENDING and unled:
        yield {**_figures(case), "unled": unled, "how": ENDING[case.transaction.state]}


def _closed(case: TransactionCase) -> Iterator[Figures]:
    if case.transaction.state in CLOSED:
        yield {**_figures(case), "why": CLOSED[case.transaction.state]}


TRANSACTION = (
    problem(
        "transaction-missing",
        _missing,
        "No coordinator knows the transactional id {id}: no producer has used it, or not for "
        "transactional.id.expiration.ms (7 days by default).{similar}",
        "Check transactional.id. A producer that expired gets INVALID_PRODUCER_ID_MAPPING, and has "
        "to be started anew.",
    ),
    problem(
        "transaction-coordinator-unavailable",
        _coordinator_away,
        "The transactional id {id} waits for its coordinator ({error}): its producer can neither "
        "begin nor end a transaction.",
        "Look at the topic __transaction_state, whose leaders are the coordinators: `millstream "
        "explain topic __transaction_state`.",
    ),
    fact(
        "transaction-ongoing",
        _ongoing,
        "The transaction of {id} (producer id {producer}, epoch {epoch}) has been open for "
        "{age:duration} (since {since:time}) in [{partitions:names}]. Coordinator {coordinator} "
        "aborts it after {timeout:duration}, in {left:duration}.",
    ),
    problem(
        "transaction-overdue",
        _overdue,
        "The transaction of {id} (producer id {producer}, epoch {epoch}) has been open for "
        "{age:duration} (since {since:time}) in [{partitions:names}], {over:duration} beyond its "
        "time-out of {timeout:duration}: coordinator {coordinator} should have aborted it.",
        "`millstream transactions force-terminate --transactional-id {id}` ends it. Look at the "
        "log of broker {coordinator}.",
    ),
    notice(
        "transaction-ending",
        _ending,
        "The transaction of {id} (producer id {producer}) is being {how}: coordinator "
        "{coordinator} still writes markers to [{partitions:names}].",
        "That takes milliseconds, unless a partition cannot be written.",
    ),
    problem(
        "transaction-ending-without-leader",
        _ending_without_leader,
        "The transaction of {id} (producer id {producer}) cannot be {how}: {unled:names} have no "
        "leader that takes the marker, so its producer cannot go on.",
        "`millstream explain topic` tells which brokers are missing.",
    ),
    fact(
        "transaction-closed",
        _closed,
        "The transactional id {id} (producer id {producer}, epoch {epoch}, coordinator "
        "{coordinator}) has no open transaction: {why}.",
    ),
)
