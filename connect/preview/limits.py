"""How much a preview does at most, and what it has so far."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from common.process.clock import now_ms
from connect.preview.shown import Shown

RECORDS: Final = 10
PATIENCE_MS: Final = 3_000
"""How long the next record is waited for."""
LIMIT_MS: Final = 10_000
"""How long all of it may take."""
_SIZE_LIMIT: Final = 1 << 20
"""Characters of all that is shown."""


class Ended(Enum):
    """Why a preview shows no more records."""

    RECORDS = "as many as a preview shows"
    SIZE = "more would be too long to show"
    END = "there are no more"
    PATIENCE = "no more came for 3 s"
    TIME = "10 s were over"
    ERROR = "it failed"


@dataclass(slots=True)
class Seen:
    """What a preview has seen. Filled by its thread, read by whoever waits for it."""

    clean: Callable[[Any], Any]
    """Makes of a record what may be shown of it."""
    deadline_ms: int
    records: list[Shown] = field(default_factory=list)
    facts: Shown = field(default_factory=dict)
    error: Shown | None = None
    ended: Ended | None = None
    _size: int = 0
    _last_ms: int = 0

    @classmethod
    def begun(cls, clean: Callable[[Any], Any]) -> "Seen":
        seen = cls(clean, now_ms() + LIMIT_MS)
        seen.waits()
        return seen

    def waits(self) -> None:
        """Begin to be patient."""
        self._last_ms = now_ms()

    def add(self, record: Shown) -> None:
        if self.ended is not None:
            return
        record = self.clean(record)
        size = len(json.dumps(record))
        if self._size + size > _SIZE_LIMIT:
            self.ended = Ended.SIZE
            return
        self._size += size
        self._last_ms = now_ms()
        self.records.append(record)
        if len(self.records) == RECORDS:
            self.ended = Ended.RECORDS

    def goes_on(self) -> bool:
        """Tell whether to look for more; when not, `ended` says why."""
        if self.ended is None and now_ms() >= self.deadline_ms:
            self.ended = Ended.TIME
        if self.ended is None and now_ms() >= self._last_ms + PATIENCE_MS:
            self.ended = Ended.PATIENCE
        return self.ended is None
