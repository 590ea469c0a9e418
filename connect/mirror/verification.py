"""Whether a copy is the source, by a digest of every partition."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from connect.mirror.whole_topic import whole_topic
from millrace.connect.connectors import TopicPartition


@dataclass(frozen=True, slots=True)
class Digest:
    """How many records a partition has, and a hash of their keys, values, headers and times."""

    record_count: int
    sha256: str


def digest(messages: Iterable[Any], *, is_compacted: bool = False) -> Digest:
    """Digest a partition's messages; of one that is compacted, the last of each key.

    A compacted topic is cleaned in each cluster when its time comes, tombstones go: what is left
    of every key is the same.
    """
    count, whole = 0, hashlib.sha256()
    last: dict[bytes, bytes] = {}
    for message in messages:
        own = _record_hash(message)
        if not is_compacted or message.key() is None:
            count += 1
            whole.update(own)
        elif message.value() is None:
            last.pop(message.key(), None)
        else:
            last[message.key()] = own
    for key in sorted(last):
        whole.update(last[key])
    return Digest(count + len(last), whole.hexdigest())


def _record_hash(message: Any) -> bytes:
    one = hashlib.sha256()
    parts = [message.key(), message.value()]
    for name, value in message.headers() or ():
        parts += [name.encode(), value]
    for part in parts:
        one.update(b"-" if part is None else b"%d:" % len(part) + part)
    one.update(b"@%d" % message.timestamp()[1])
    return one.digest()


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
    source: Mapping[str, Any],
    target: Mapping[str, Any],
    at: TopicPartition,
    remote_topic: str,
    copied_to: int,
    *,
    is_compacted: bool,
) -> Compared:
    """Read both sides; of the source what was copied, which is what lies before an offset."""
    read = whole_topic(source, at.topic, [at.partition])
    copied = (each for each in read if each.offset() < copied_to)
    return Compared(
        at,
        digest(copied, is_compacted=is_compacted),
        digest(whole_topic(target, remote_topic, [at.partition]), is_compacted=is_compacted),
    )
