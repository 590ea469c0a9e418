"""The collected effects of a batch of records from one reader. No code here does IO.

Records are handled one after the other, and each handler sees the rows of the records before. Their
output and rows are collected here, and committed in one transaction together with the positions
after the records. So after a crash either all of it exists, or nothing, and then the records are
read again. If a key has several new rows, only the last is written.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from streams.records import Row


class Message(NamedTuple):
    """A record to send; without a partition the key decides it."""

    topic: str
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]
    partition: int | None = None


class Effect(NamedTuple):
    """One step of a record: the new row of this key (None: unchanged), and the records to send."""

    key: str
    row: Row | None
    messages: list[Message]


RowKey = tuple[int, str]
"""The partition and the key of a row."""


@dataclass
class MicroBatch:
    """Collects effects: `messages` are the records to send, `rows` the rows to write."""

    messages: list[Message] = field(default_factory=list)
    rows: dict[RowKey, Row] = field(default_factory=dict)

    def row(self, partition: int, key: str) -> Row | None:
        """Return the last row of a key that this batch has made."""
        return self.rows.get((partition, key))

    def add(self, partition: int, effects: Iterable[Effect]) -> None:
        """Add the effects of one record, in the order of its steps."""
        for effect in effects:
            self.messages += effect.messages
            if effect.row is not None:
                self.rows[partition, effect.key] = effect.row
