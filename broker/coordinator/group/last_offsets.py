"""What counts of the offsets in a shard's log while it is loaded: pure.

Of a key only the last record does, and such a log is mostly what came before. So records are kept
as they are, and only what is left in the end is decoded.

What a producer wrote in a transaction counts from its marker on, and then as of where it was
written: a later commit by somebody else is the last one, though the marker came after it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import NamedTuple

from broker.records.header import NO_PRODUCER_ID


class OffsetFound(NamedTuple):
    """The last record of a key; with a producer while its transaction is open."""

    log_offset: int
    key: bytes
    value: bytes | None
    producer_id: int = NO_PRODUCER_ID


@dataclass
class LastOffsets:
    """The last offset of each key, and the last ones in every transaction that is open."""

    _last: dict[bytes, OffsetFound] = field(default_factory=dict)
    _open: dict[int, dict[bytes, OffsetFound]] = field(default_factory=dict)

    def add(self, found: OffsetFound) -> None:
        """Take in what comes next in the log. That an offset was deleted counts at once."""
        if found.producer_id == NO_PRODUCER_ID or found.value is None:
            self._last[found.key] = found._replace(producer_id=NO_PRODUCER_ID)
        else:
            self._open.setdefault(found.producer_id, {})[found.key] = found

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        """Let what a producer has open count where nothing later does, or forget it."""
        ended = self._open.pop(producer_id, {})
        for key, found in ended.items() if is_commit else ():
            before = self._last.get(key)
            if before is None or before.log_offset < found.log_offset:
                self._last[key] = found._replace(producer_id=NO_PRODUCER_ID)

    def left(self) -> Iterator[OffsetFound]:
        """Yield what is left: of each key in log order."""
        found = sorted(one for each in self._open.values() for one in each.values())
        yield from filter(self._is_overtaken, found)
        yield from self._last.values()
        yield from filterfalse(self._is_overtaken, found)

    def _is_overtaken(self, found: OffsetFound) -> bool:
        last = self._last.get(found.key)
        return last is not None and found.log_offset < last.log_offset
