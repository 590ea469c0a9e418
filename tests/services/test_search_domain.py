"""Documents, words, questions and cursors."""

from datetime import timedelta
from typing import Any

import pytest

from services.search.domain import (
    Found,
    Place,
    Question,
    WrongQuestionError,
    answer,
    document_of,
    newest,
    read_cursor,
    read_question,
    split_words,
    write_cursor,
)
from tests.lib.order_feed import LINE, NOON, order_event

NOON_MS = round(NOON.timestamp() * 1000)


def test_document_is_found_by_everything_a_person_knows_of_an_order() -> None:
    reasons = [{"check": "FRAUD", "code": "SPENDING_LIMIT", "detail": "spent 2,100.00"}]
    order = order_event("7f-1", "FAILED", 2, country="Åland", reasons=reasons, customer_id="Ann B")
    document = document_of(order)
    assert document.place == Place(NOON_MS, "7f-1")
    expected = {"7f", "1", "ann", "b", "aland", "item", "001", "spending", "limit", "spent", "100"}
    assert expected <= set(document.words)
    assert document.summary["total"] == "5.10"
    assert document.summary["ordered_at"] == "2026-01-01T12:00:00.000Z"
    assert document.summary["line_count"] == 1


def test_order_of_thousands_of_lines_has_each_word_once() -> None:
    order = order_event("o", "CREATED", 1, lines=[LINE] * 5000)
    assert document_of(order).words.count("item") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" - _ ! ", []),
        ("Item-001", ["item", "001"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("Café cafe\u0301", ["cafe", "cafe"]),
        ('a" OR b*', ["a", "or", "b"]),
        ("日本", ["日本"]),
    ],
)
def test_words_have_neither_case_nor_accents_nor_anything_between(
    text: str, words: list[str]
) -> None:
    assert split_words(text) == words


def test_of_a_batch_the_newest_document_of_each_order_is_written() -> None:
    events = [order_event("a", "PAID", 3), order_event("a", "VALIDATED", 2)]
    events.append(order_event("b", "CREATED", 1))
    found = newest(document_of(event) for event in events)
    assert [(one.place.order_id, one.version) for one in found] == [("a", 3), ("b", 1)]


def test_question_is_read_from_the_parameters() -> None:
    cursor = write_cursor(Place(5, "x"))
    given = [("customer", "c"), ("state", "PAID"), ("q", "A b a"), ("limit", "3")]
    assert read_question([*given, ("cursor", cursor)]) == Question(
        "c", "PAID", ("a", "b"), 3, Place(5, "x")
    )
    assert read_question([]) == Question(limit=20)
    assert read_question([("q", " ")]).words == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("colour", "red"),
        ("state", "paid"),
        ("state", ""),
        ("limit", "0"),
        ("limit", "101"),
        ("limit", "-1"),
        ("limit", "1.5"),
        ("limit", "٣"),
        ("limit", "9" * 5000),
        ("limit", ""),
        ("customer", "c" * 201),
        ("q", "w" * 201),
        ("q", "???"),
        ("cursor", ""),
        ("cursor", "???"),
        ("cursor", "ä"),
        ("cursor", "W10"),
        ("cursor", "A" * 1001),
        ("cursor", "W1tbW1tbW1s" * 90),
        ("cursor", write_cursor(Place(True, "x"))),
        ("cursor", write_cursor(Place(1 << 60, "x"))),
        ("cursor", "WzEsICJcdWQ4MDAiXQ"),
    ],
)
def test_what_is_no_question_is_refused(name: str, value: str) -> None:
    with pytest.raises(WrongQuestionError):
        read_question([(name, value)])


def test_parameter_given_twice_is_refused() -> None:
    with pytest.raises(WrongQuestionError, match="twice"):
        read_question([("state", "PAID"), ("state", "FAILED")])


@pytest.mark.parametrize("place", [Place(0, ""), Place(-1, "o"), Place(NOON_MS, "ä/\x00'")])
def test_cursor_leads_back_to_its_place(place: Place) -> None:
    assert read_cursor(write_cursor(place)) == place


def test_page_knows_whether_there_is_another() -> None:
    def found(*numbers: int) -> list[Found]:
        return [Found(Place(number, "o"), {"id": str(number)}) for number in numbers]

    question = Question(limit=2)
    assert answer(question, found(3, 2)) == {"orders": [{"id": "3"}, {"id": "2"}], "next": None}
    page: dict[str, Any] = answer(question, found(3, 2, 1))
    assert [one["id"] for one in page["orders"]] == ["3", "2"]
    assert read_cursor(page["next"]) == Place(2, "o")


def test_time_of_the_order_decides_the_place_not_that_of_its_last_event() -> None:
    later = document_of(order_event("o", "PAID", 3, occurred_at=NOON + timedelta(days=1)))
    assert later.place.ordered_at_ms == NOON_MS
