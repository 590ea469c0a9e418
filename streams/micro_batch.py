"""The effects of some records of one table's reader. Pure.

Records are handled one after the other, and each sees the rows of those before it. Their output and
rows are collected here and committed in one transaction with the positions behind the records. So
after a crash either nothing of it is there, and the records come again, or all of it. Of several
rows of one key only the last is written.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from streams.records import Row


class Message(NamedTuple):
    """A record as it goes out; without a partition its key decides."""

    topic: str
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]
    partition: int | None = None


class Effect(NamedTuple):
    """One step of one record: the new row of this key (None: unchanged), and what to send."""

    key: str
    row: Row | None
    messages: list[Message]


RowKey = tuple[int, str]
"""Partition and key."""


@dataclass
class MicroBatch:
    """Collects; `messages` are what to send, `rows` what to write."""

    messages: list[Message] = field(default_factory=list)
    rows: dict[RowKey, Row] = field(default_factory=dict)

    def row(self, partition: int, key: str) -> Row | None:
        """Return a row that a record of this batch has made, the last one of its key."""
        return self.rows.get((partition, key))

    def add(self, partition: int, effects: Iterable[Effect]) -> None:
        """Take in what one record came to, in the order of its steps."""
        for effect in effects:
            self.messages += effect.messages
            if effect.row is not None:
                self.rows[partition, effect.key] = effect.row
