"""The books of share workers: what is an anomaly, and what is not."""

import json
from pathlib import Path

from tests.chaos.share.books import Entry, balance, check, read_book

ONE, TWO = (0, 1), (0, 2)


def rules(books: list[list[Entry]], calm_second: float = 100.0) -> list[str]:
    return [found.rule for found in check([ONE, TWO], books, calm_second)]


def handled(second: float, what: str = "accepted") -> list[Entry]:
    return [
        Entry(second, "begun", [ONE, TWO]),
        Entry(second + 0.1, "wanted", [ONE, TWO]),
        Entry(second + 0.2, what, [ONE, TWO]),
    ]


def test_everything_accepted_once_is_no_anomaly():
    assert rules([handled(1.0)]) == []
    assert rules([handled(1.0, "refused"), handled(2.0)]) == []


def test_a_record_that_nobody_accepted_is_lost():
    assert rules([]) == ["lost", "lost"]
    assert rules([handled(1.0, "refused")]) == ["lost", "lost"]


def test_a_worker_that_died_with_the_question_open_may_have_accepted():
    assert rules([handled(1.0)[:2]]) == []
    assert rules([handled(1.0, "unanswered")]) == []
    assert rules([handled(1.0)[:1]]) == ["lost", "lost"]


def test_two_workers_may_not_accept_the_same_record():
    assert rules([handled(1.0), handled(2.0)]) == ["accepted twice"] * 2


def test_an_accepted_record_is_not_delivered_when_all_is_calm():
    later = handled(200.0, "refused")
    assert rules([handled(1.0), later]) == ["delivered again"] * 2
    assert rules([handled(1.0), later], calm_second=300.0) == []


def test_a_last_line_that_is_cut_off_is_ignored(tmp_path: Path):
    book = tmp_path / "book"
    book.write_text(json.dumps([1.0, "begun", [ONE]]) + "\n" + '[2.0, "wan')
    assert read_book(book) == [Entry(1.0, "begun", [ONE])]
    assert balance([read_book(book)]).deliveries == 1
