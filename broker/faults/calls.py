"""The calls that clients made: what each asked, what it was answered, and the rules that hit it."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from broker.faults.places import Place, places
from broker.faults.rule import Call, api_name
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message, Struct

MAX_BYTES: Final = 8 << 20
_CALL_BYTES: Final = 600
"""What one call takes besides its texts, about."""
_PARTITION_BYTES: Final = 32
MAX_ENTRIES: Final = 1_000
"""No more entries of an answer are looked at for errors: it may have a million."""


@dataclass(slots=True)
class Noted:
    """One call; times are milliseconds since 1970 UTC, durations milliseconds."""

    call_id: int
    call: Call
    at_ms: int
    size_bytes: int
    duration_ms: float | None = None
    """None while the client waits, and for a call that is never answered."""
    errors: list[str] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    """The ids of the rules that hit it."""

    def as_json(self) -> dict[str, Any]:
        """Return what a test reads."""
        call = self.call
        return {
            "id": self.call_id,
            "api": api_name(call.api_key),
            "version": call.version,
            "client_id": call.client_id,
            "principal": call.principal,
            "topics": {name: list(each) for name, each in call.asked.topics.items()},
            "groups": list(call.asked.groups),
            "transactional_ids": list(call.asked.transactional_ids),
            "at_ms": self.at_ms,
            "duration_ms": self.duration_ms,
            "errors": self.errors,
            "faults": self.faults,
        }


class CallLog:
    """The last calls. Invariant: about `max_bytes` at most; the oldest are dropped, and counted."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._calls: deque[Noted] = deque()
        self._size_bytes = 0
        self._last_id = 0
        self.dropped = 0

    @property
    def last_id(self) -> int:
        """The id of the last call; 0 if there was none."""
        return self._last_id

    def note(self, call: Call, at_ms: int) -> Noted:
        """Add a call that has just begun."""
        self._last_id += 1
        noted = Noted(self._last_id, call, at_ms, _size_bytes(call))
        self._calls.append(noted)
        self._size_bytes += noted.size_bytes
        while self._size_bytes > self._max_bytes:
            self._size_bytes -= self._calls.popleft().size_bytes
            self.dropped += 1
        return noted

    def clear(self) -> None:
        """Forget all calls; ids go on."""
        self._calls.clear()
        self._size_bytes = self.dropped = 0

    def since(self, call_id: int, wanted: Mapping[str, str]) -> Iterator[Noted]:
        """Yield the calls after an id that have these values: `api`, `client_id`, `topic`, ..."""
        for noted in self._calls:
            if noted.call_id > call_id and all(
                value in _values(noted.call, name) for name, value in wanted.items()
            ):
                yield noted


WANTED: Final = ("api", "client_id", "principal", "topic", "group", "transactional_id")


def _values(call: Call, name: str) -> tuple[str, ...]:
    match name:
        case "api":
            return (api_name(call.api_key),)
        case "client_id":
            return (call.client_id,)
        case "principal":
            return (call.principal,)
        case "topic":
            return tuple(call.asked.topics)
        case "group":
            return call.asked.groups
        case _:
            return call.asked.transactional_ids


def _size_bytes(call: Call) -> int:
    asked = call.asked
    texts = (call.client_id, call.principal, *asked.groups, *asked.transactional_ids, *asked.topics)
    partitions = sum(map(len, asked.topics.values()))
    return _CALL_BYTES + 4 * sum(map(len, texts)) + _PARTITION_BYTES * partitions


def errors_of(answer: Message, version: int) -> list[str]:
    """Return the names of the errors in an answer, each once, those nearer to the top first."""
    found: dict[str, None] = {}
    left = [MAX_ENTRIES]
    for place in places(answer.__api_key__, version):
        for code in _codes(answer, place, 0, left):
            if code:
                found[ErrorCode(code).name] = None
    return list(found)


def _codes(struct: Struct, place: Place, depth: int, left: list[int]) -> Iterator[int]:
    if depth == len(place.levels):
        left[0] -= 1
        yield getattr(struct, place.field)
        return
    for entry in getattr(struct, place.levels[depth].name) or ():
        if left[0] <= 0:
            return
        yield from _codes(entry, place, depth + 1, left)
