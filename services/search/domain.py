"""Documents, words and queries of the search. Pure.

An order has one document, made of its newest event. It is found by its customer and its state,
exactly, and by words: every word of a query must begin a word of the document. Words are made
here, of letters and digits without case and accents, in documents and queries alike; an index only
compares them. So every index finds the same.

Answers are sorted by the time of the order, newest first, then by id, and a page begins behind the
last order of the page before: what comes in or changes meanwhile moves nothing from page to page.
"""

import base64
import binascii
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from services.json_values import moment, money


class IndexAwayError(OSError):
    """The index cannot be reached or written; what was asked for may be tried again."""


STATES = ("CREATED", "VALIDATED", "FAILED", "PAID", "SHIPPED", "CANCELLED")
LIMIT_DEFAULT = 20
LIMIT_MAX = 100
TEXT_MAX = 200
_CURSOR_MAX = 1000
_ORDERED_AT_END_MS = 1 << 53
_WORD = re.compile(r"[^\W_]+")
_PARAMETERS = ("customer", "state", "q", "limit", "cursor")


class Place(NamedTuple):
    """Where an order stands among all."""

    ordered_at_ms: int
    order_id: str


@dataclass(frozen=True, slots=True)
class Document:
    """What is kept of an order: what it is found by, and what is answered."""

    place: Place
    version: int
    customer_id: str
    state: str
    words: tuple[str, ...]
    summary: dict[str, Any]


class Found(NamedTuple):
    """One order of an answer."""

    place: Place
    summary: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """A query; None stands for any value."""

    customer_id: str | None = None
    state: str | None = None
    words: tuple[str, ...] = ()
    limit: int = LIMIT_DEFAULT
    behind: Place | None = None


class WrongQuestionError(ValueError):
    """The query is invalid."""


def split_words(text: str) -> list[str]:
    """Return the words of a text, without case and accents."""
    if text.isascii():
        return _WORD.findall(text.lower())  # Nearly every text, and there is no more to it.
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return _WORD.findall(plain)


def document_of(order: Mapping[str, Any]) -> Document:
    """Return the document that an event of an order makes."""
    reasons: Sequence[Mapping[str, str]] = order["reasons"]
    texts: list[str] = [order["order_id"], order["customer_id"], order["country"] or ""]
    texts += [line["product_id"] for line in order["lines"]]
    texts += [text for reason in reasons for text in (reason["code"], reason["detail"])]
    return Document(
        Place(round(order["ordered_at"].timestamp() * 1000), order["order_id"]),
        order["version"],
        order["customer_id"],
        order["state"],
        tuple(dict.fromkeys(word for text in texts for word in split_words(text))),
        {
            "id": order["order_id"],
            "version": order["version"],
            "state": order["state"],
            "reasons": [dict(reason) for reason in reasons],
            "customer_id": order["customer_id"],
            "country": order["country"],
            "total": money(order["total"]),
            "line_count": len(order["lines"]),
            "ordered_at": moment(order["ordered_at"]),
            "created_at": moment(order["created_at"]),
            "updated_at": moment(order["occurred_at"]),
        },
    )


def newest(documents: Iterable[Document]) -> list[Document]:
    """Return of each order the document with the highest version."""
    found: dict[str, Document] = {}
    for document in documents:
        known = found.get(document.place.order_id)
        if known is None or known.version < document.version:
            found[document.place.order_id] = document
    return list(found.values())


def read_question(parameters: Iterable[tuple[str, str]]) -> Question:
    """Return what the query of a URL asks; raise WrongQuestionError."""
    given: dict[str, str] = {}
    for name, value in parameters:
        if name not in _PARAMETERS:
            raise WrongQuestionError(f"unknown parameter; there are {', '.join(_PARAMETERS)}")
        if name in given:
            raise WrongQuestionError(f"{name} is given twice")
        given[name] = value
    for name in ("customer", "q"):
        if len(given.get(name, "")) > TEXT_MAX:
            raise WrongQuestionError(f"{name} must not be longer than {TEXT_MAX} characters")
    state = given.get("state")
    if state is not None and state not in STATES:
        raise WrongQuestionError(f"state must be one of {', '.join(STATES)}")
    return Question(
        given.get("customer"),
        state,
        tuple(dict.fromkeys(_asked_words(given.get("q", "")))),
        _read_limit(given.get("limit")),
        read_cursor(given["cursor"]) if "cursor" in given else None,
    )


def _asked_words(text: str) -> list[str]:
    words = split_words(text)
    if text.strip() and not words:
        raise WrongQuestionError("q must have a letter or a digit in it")
    return words


def _read_limit(text: str | None) -> int:
    if text is None:
        return LIMIT_DEFAULT
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 0 < int(text) <= LIMIT_MAX):
        raise WrongQuestionError(f"limit must be a whole number from 1 to {LIMIT_MAX}")
    return int(text)


def write_cursor(place: Place) -> str:
    """Return the text that `read_cursor` makes the same place of."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def read_cursor(text: str) -> Place:
    """Return the place a page begins behind; raise WrongQuestionError for what is no cursor."""
    try:
        if len(text) > _CURSOR_MAX or not text.isascii():
            raise ValueError(text[:_CURSOR_MAX])
        padded = text + "=" * (-len(text) % 4)
        place = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        match place:
            case [bool(), _]:
                raise ValueError(place)
            case [int(ordered_at_ms), str(order_id)] if abs(ordered_at_ms) < _ORDERED_AT_END_MS:
                order_id.encode()
                return Place(ordered_at_ms, order_id)
        raise ValueError(place)
    except (ValueError, binascii.Error, RecursionError) as error:
        raise WrongQuestionError("cursor must be the `next` of an answer") from error


def answer(question: Question, found: Sequence[Found]) -> dict[str, Any]:
    """Return a page of orders; `next` is the cursor of the one after it, null on the last."""
    page = found[: question.limit]
    is_last = len(found) <= question.limit
    following = None if is_last else write_cursor(page[-1].place)
    return {"orders": [order.summary for order in page], "next": following}
