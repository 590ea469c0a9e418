"""Whether a copy is the source, by a digest of every partition."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from millrace.connect.connectors import TopicPartition


@dataclass(frozen=True, slots=True)
class Digest:
    """How many records a partition has, and a hash of their keys, values, headers and times."""

    record_count: int
    sha256: str


class _Digesting:
    """Owns the hash of a partition while it is read."""

    def __init__(self, *, is_compacted: bool) -> None:
        self._is_compacted = is_compacted
        self._count = 0
        self._whole = hashlib.sha256()
        self._last: dict[bytes, bytes] = {}

    def add(self, message: Any) -> None:
        own = _record_hash(message)
        if not self._is_compacted or message.key() is None:
            self._count += 1
            self._whole.update(own)
        elif message.value() is None:
            self._last.pop(message.key(), None)
        else:
            self._last[message.key()] = own

    def done(self) -> Digest:
        for key in sorted(self._last):
            self._whole.update(self._last[key])
        return Digest(self._count + len(self._last), self._whole.hexdigest())


def digests(messages: Iterable[Any], *, is_compacted: bool = False) -> dict[int, Digest]:
    """Digest messages by partition; of a compacted topic, the last of each key.

    A compacted topic is cleaned in each cluster when its time comes, tombstones go: what is left
    of every key is the same.
    """
    found: dict[int, _Digesting] = {}
    for message in messages:
        number = message.partition()
        if number not in found:
            found[number] = _Digesting(is_compacted=is_compacted)
        found[number].add(message)
    return {number: each.done() for number, each in found.items()}


def _record_hash(message: Any) -> bytes:
    one = hashlib.sha256()
    parts = [message.key(), message.value()]
    for name, value in message.headers() or ():
        parts += [name.encode(), value]
    for part in parts:
        one.update(b"-" if part is None else b"%d:" % len(part) + part)
    one.update(b"@%d" % message.timestamp()[1])
    return one.digest()


_NOTHING: Final = Digest(0, hashlib.sha256().hexdigest())


@dataclass(frozen=True, slots=True)
class Compared:
    """One partition of the source, and its copy."""

    at: TopicPartition
    source: Digest
    target: Digest

    @property
    def is_same(self) -> bool:
        return self.source == self.target


def compare(
    source: Callable[[], Iterable[Any]],
    target: Callable[[], Iterable[Any]],
    copied_to: Mapping[TopicPartition, int],
    *,
    is_compacted: bool,
) -> list[Compared]:
    """Read both sides of a topic; of the source what was copied, which lies before an offset."""
    copied = (
        each
        for each in source()
        if each.offset() < copied_to[TopicPartition(each.topic(), each.partition())]
    )
    there = digests(copied, is_compacted=is_compacted)
    here = digests(target(), is_compacted=is_compacted)
    return [
        Compared(at, there.get(at.partition, _NOTHING), here.get(at.partition, _NOTHING))
        for at in sorted(copied_to)
    ]
