"""The valid offsets in a shard's log, while it is loaded.

Only the last record of a key is valid, and most records of such a log are not the last ones. So the
loader keeps encoded records, and decodes only those that remain at the end.

A record in a transaction becomes valid with the commit marker, at the record's own position: a
later commit by another producer is the last one, even if the marker comes after it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import NamedTuple

from broker.records.header import NO_PRODUCER_ID


class OffsetFound(NamedTuple):
    """The last record of a key; with the producer's id if its transaction is open."""

    log_offset: int
    key: bytes
    value: bytes | None
    producer_id: int = NO_PRODUCER_ID


@dataclass
class LastOffsets:
    """The last record of each key, and the last ones of each open transaction."""

    _last: dict[bytes, OffsetFound] = field(default_factory=dict)
    _open: dict[int, dict[bytes, OffsetFound]] = field(default_factory=dict)

    def add(self, found: OffsetFound) -> None:
        """Add the next record of the log. A tombstone is valid at once, also in a transaction."""
        if found.producer_id == NO_PRODUCER_ID or found.value is None:
            self._last[found.key] = found._replace(producer_id=NO_PRODUCER_ID)
        else:
            self._open.setdefault(found.producer_id, {})[found.key] = found

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        """End a producer's transaction: its records become valid, or are dropped."""
        ended = self._open.pop(producer_id, {})
        for key, found in ended.items() if is_commit else ():
            before = self._last.get(key)
            if before is None or before.log_offset < found.log_offset:
                self._last[key] = found._replace(producer_id=NO_PRODUCER_ID)

    def left(self) -> Iterator[OffsetFound]:
        """Yield the remaining records; those of one key are in log order."""
        found = sorted(one for each in self._open.values() for one in each.values())
        yield from filter(self._is_overtaken, found)
        yield from self._last.values()
        yield from filterfalse(self._is_overtaken, found)

    def _is_overtaken(self, found: OffsetFound) -> bool:
        last = self._last.get(found.key)
        return last is not None and found.log_offset < last.log_offset
