"""The books of the workers: what each wanted to do with a record, and what it was told of it.

A worker writes a line before it asks and a line when it is answered, so that its death at any point
leaves at most an open question. So does an error that leaves open whether the change is stored: the
coordinator may have stored it before its answer was lost. The anomalies:

- `lost`: nobody has accepted a record, and it is no open question;
- `accepted twice`: two workers were told that they have accepted the same record;
- `delivered again`: a worker began with a record after another was told that it has accepted it,
  and after every fault was over: a leader that was replaced cannot be meant.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.chaos.checker import Anomaly

Place = tuple[int, int]
"""Partition and offset."""


class Entry(NamedTuple):
    """One line of a book."""

    second: float
    """When it was written, on the clock of the machine."""
    what: str
    """`begun`, `wanted`, `accepted`, `released`, `refused` or `unanswered`."""
    places: list[Place]


def read_book(file: Path) -> list[Entry]:
    """Read the book of one worker; its last line may be cut off."""
    whole, _, _ = file.read_text().rpartition("\n")
    entries = []
    for line in whole.splitlines():
        second, what, places = json.loads(line)
        entries.append(Entry(second, what, [(partition, offset) for partition, offset in places]))
    return entries


class Balance(NamedTuple):
    """The sum of all books."""

    accepted: Mapping[Place, int]
    """How often each record was accepted."""
    open: frozenset[Place]
    """Records that a worker wanted to accept without an answer."""
    deliveries: int
    last_second: float


def balance(books: Iterable[list[Entry]]) -> Balance:
    """Add up the books."""
    accepted: dict[Place, int] = {}
    open_places: set[Place] = set()
    deliveries, last = 0, 0.0
    for book in books:
        wanted: set[Place] = set()
        for second, what, places in book:
            last = max(last, second)
            if what == "begun":
                deliveries += len(places)
            elif what == "wanted":
                wanted.update(places)
            elif what != "unanswered":
                wanted.difference_update(places)
            if what == "accepted":
                for place in places:
                    accepted[place] = accepted.get(place, 0) + 1
        open_places |= wanted
    return Balance(accepted, frozenset(open_places), deliveries, last)


def check(produced: Iterable[Place], books: list[list[Entry]], calm_second: float) -> list[Anomaly]:
    """Return all anomalies; no fault began after `calm_second`."""
    found = balance(books)
    anomalies = [
        _anomaly("lost", place, "nobody accepted it")
        for place in sorted(produced)
        if place not in found.accepted and place not in found.open
    ]
    anomalies += [
        _anomaly("accepted twice", place, f"{count} times")
        for place, count in sorted(found.accepted.items())
        if count > 1
    ]
    since: dict[Place, float] = {}
    for second, what, places in sorted(entry for book in books for entry in book):
        for place in places:
            if what == "accepted":
                since.setdefault(place, second)
            elif what == "begun" and since.get(place, second) < second and second > calm_second:
                anomalies.append(_anomaly("delivered again", place, f"at {second:.3f}"))
    return anomalies


def _anomaly(rule: str, place: Place, detail: str) -> Anomaly:
    return Anomaly(rule, f"partition {place[0]}", str(place[1]), detail)
