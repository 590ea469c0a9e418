"""What a few records of one table's reader come to, and in which order it takes effect. Pure.

Records are handled one after the other, each seeing the rows that those before it have made; what
they want sent and written is collected here and takes effect together:

1. everything they send;
2. the first row that each record writes, then the second;
3. the positions.

Each waits for the acknowledgement of all of the one before. So after a crash anywhere the records
come again and find either their row as it was, or one that knows them and whose outgoing records
are there. A record that writes two rows may rely on the first being there when the second is. Of
several rows of one key only the last is written.
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
    """One step of one record: the row of this key as it is now (None: as before), what to send."""

    key: str
    row: Row | None
    messages: list[Message]


RowKey = tuple[int, str]
"""Partition and key."""


@dataclass
class MicroBatch:
    """Collects; `messages` and then each of `stages` are what to do."""

    messages: list[Message] = field(default_factory=list)
    stages: list[dict[RowKey, Row]] = field(default_factory=list)

    def row(self, partition: int, key: str) -> Row | None:
        """Return a row that a record of this batch has made, the last one of its key."""
        for stage in self.stages:
            if (partition, key) in stage:
                return stage[partition, key]
        return None

    def add(self, partition: int, effects: Iterable[Effect]) -> None:
        """Take in what one record came to, in the order of its steps.

        A key must always be written by the same step.
        """
        for number, effect in enumerate(effects):
            if number == len(self.stages):
                self.stages.append({})
            self.messages += effect.messages
            if effect.row is not None:
                self.stages[number][partition, effect.key] = effect.row
