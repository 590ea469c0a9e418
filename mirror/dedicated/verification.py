"""Compares a copy with its source, by a digest of every partition."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from millstream.connect.connectors import TopicPartition


@dataclass(frozen=True, slots=True)
class Digest:
    """A partition's number of records, and a hash of their keys, values, headers, timestamps."""

    record_count: int
    sha256: str
    first_offset: int = field(default=0, compare=False)


class _Digesting:
    """Owns the hash of a partition while it is read."""

    def __init__(self, *, is_compacted: bool, skip: int) -> None:
        self._is_compacted = is_compacted
        self._skip = skip
        self._count = 0
        self._first_offset: int | None = None
        self._whole = hashlib.sha256()
        self._last: dict[bytes, bytes] = {}

    def add(self, message: Any) -> None:
        if self._first_offset is None:
            self._first_offset = message.offset()
        if self._skip:
            self._skip -= 1
            return
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
        count, first_offset = self._count + len(self._last), self._first_offset or 0
        return Digest(count, self._whole.hexdigest(), first_offset)


def digests(
    messages: Iterable[Any],
    *,
    is_compacted: bool = False,
    skip: Mapping[int, int] = MappingProxyType({}),
) -> dict[int, Digest]:
    """Digest messages by partition without the first ones; in a compacted topic the last per key.

    Each cluster compacts a topic at its own time and removes tombstones, but the last record of a
    key is the same in both.
    """
    found: dict[int, _Digesting] = {}
    for message in messages:
        number = message.partition()
        if number not in found:
            skipped = skip.get(number, 0)
            found[number] = _Digesting(is_compacted=is_compacted, skip=skipped)
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
    only_in_target: int = 0
    """Records at the copy's start that the source has deleted; they are not compared."""

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
    """Read both sides of a topic and compare them; in the source, up to an offset.

    If the source has deleted its oldest records, only the copy's last records are compared.
    """
    copied = (
        each
        for each in source()
        if each.offset() < copied_to[TopicPartition(each.topic(), each.partition())]
    )
    there = digests(copied, is_compacted=is_compacted)
    here = digests(target(), is_compacted=is_compacted)
    retired = {} if is_compacted else _retired(there, here)
    if retired:
        here |= digests((each for each in target() if each.partition() in retired), skip=retired)
    return [
        Compared(
            at,
            there.get(at.partition, _NOTHING),
            here.get(at.partition, _NOTHING),
            retired.get(at.partition, 0),
        )
        for at in sorted(copied_to)
    ]


def _retired(there: Mapping[int, Digest], here: Mapping[int, Digest]) -> dict[int, int]:
    """Return how many more records the copy has of partitions whose start was deleted."""
    return {
        number: more
        for number, digest in there.items()
        if digest.first_offset > 0
        and (more := here.get(number, _NOTHING).record_count - digest.record_count) > 0
    }
