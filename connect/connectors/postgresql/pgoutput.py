"""Parse the messages of PostgreSQL's logical replication, protocol version 1. Does no IO.

A transaction is a Begin, its changes and a Commit. A Relation describes a table before its first
change. Values are texts. Source: PostgreSQL's documentation, "Logical Replication Message Formats".
"""

import struct
from dataclasses import dataclass
from enum import Enum
from struct import Struct as Layout
from typing import Final, NamedTuple

from millstream.connect import DataException

_BEGIN: Final = Layout(">QqI")
_COMMIT: Final = Layout(">BQQq")
_INT16, _INT32 = Layout(">h"), Layout(">i")
_UINT32: Final = Layout(">I")
_EPOCH_MS: Final = 946_684_800_000  # PostgreSQL counts time from 2000


class Unchanged(Enum):
    """Marks a large value that an update did not change, which the log does not contain."""

    UNCHANGED = "unchanged"


Value = str | None | Unchanged
Values = tuple[Value, ...]


class Column(NamedTuple):
    """A column of a table, as the log describes it."""

    name: str
    is_key: bool
    """Whether the column is part of the replica identity."""
    type_id: int
    modifier: int


@dataclass(frozen=True, slots=True)
class Relation:
    """The description of a table, sent before its first change and after each alteration."""

    relation_id: int
    schema: str
    table: str
    columns: tuple[Column, ...]
    identity: str = "d"
    """The replica identity: d(efault), f(ull), i(ndex) or n(othing)."""


class Begin(NamedTuple):
    """A transaction begins; its changes follow."""

    transaction_id: int
    timestamp_ms: int


class Commit(NamedTuple):
    """The transaction ends; the log may be confirmed up to `end_lsn`."""

    end_lsn: int


class Change(NamedTuple):
    """An insert (no `before`), an update, or a delete (no `after`)."""

    relation_id: int
    before: Values | None
    after: Values | None
    is_before_key: bool = False
    """Whether `before` has only the columns of the key."""
    is_update: bool = False


class Truncate(NamedTuple):
    """Tables lost all their rows."""

    relation_ids: tuple[int, ...]


Message = Begin | Commit | Relation | Change | Truncate


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 1

    def take(self, layout: Layout) -> tuple[int, ...]:
        values = layout.unpack_from(self._data, self._place)
        self._place += layout.size
        return values

    def byte(self) -> bytes:
        self._place += 1
        if self._place > len(self._data):
            raise IndexError(self._place)
        return self._data[self._place - 1 : self._place]

    def text(self) -> str:
        end = self._data.index(b"\0", self._place)
        found = self._data[self._place : end].decode()
        self._place = end + 1
        return found

    def sized(self) -> str:
        (size,) = self.take(_INT32)
        if not 0 <= size <= len(self._data) - self._place:
            raise IndexError(size)
        self._place += size
        return self._data[self._place - size : self._place].decode()

    def values(self) -> Values:
        (count,) = self.take(_INT16)
        return tuple(self._value() for _ in range(count))

    def _value(self) -> Value:
        match self.byte():
            case b"n":
                return None
            case b"u":
                return Unchanged.UNCHANGED
            case b"t":
                return self.sized()
            case kind:
                raise ValueError(f"value of the kind {kind!r}")


def message_of(data: bytes) -> Message | None:
    """Return a parsed message; None for a kind that is not needed. Raise DataException."""
    try:
        return _message_of(data[:1], _Bytes(data))
    except (struct.error, ValueError, IndexError) as error:
        raise DataException(f"The log has a message that cannot be read: {error}") from None


def _message_of(kind: bytes, told: _Bytes) -> Message | None:
    match kind:
        case b"B":
            _, timestamp_us, transaction_id = told.take(_BEGIN)
            return Begin(transaction_id, timestamp_us // 1000 + _EPOCH_MS)
        case b"C":
            _, _, end_lsn, _ = told.take(_COMMIT)
            return Commit(end_lsn)
        case b"R":
            return _relation(told)
        case b"I" | b"U" | b"D":
            return _change(told, is_update=kind == b"U")
        case b"T":
            (count,) = told.take(_UINT32)
            told.byte()
            return Truncate(tuple(told.take(_UINT32)[0] for _ in range(count)))
        case _:
            return None


def _relation(told: _Bytes) -> Relation:
    (relation_id,) = told.take(_UINT32)
    schema, table = told.text(), told.text()
    identity = told.byte().decode("ascii")
    (count,) = told.take(_INT16)
    columns = []
    for _ in range(count):
        is_key = told.byte() == b"\1"
        name = told.text()
        (type_id,), (modifier,) = told.take(_UINT32), told.take(_INT32)
        columns.append(Column(name, is_key, type_id, modifier))
    # The protocol leaves the schema of the server's own tables empty.
    return Relation(relation_id, schema or "pg_catalog", table, tuple(columns), identity)


def _change(told: _Bytes, *, is_update: bool) -> Change:
    (relation_id,) = told.take(_UINT32)
    before: Values | None = None
    is_before_key = False
    kind = told.byte()
    if kind in b"KO":
        before, is_before_key = told.values(), kind == b"K"
        try:
            kind = told.byte()
        except IndexError:
            return Change(relation_id, before, None, is_before_key)
    if kind != b"N":
        raise ValueError(f"row of the kind {kind!r}")
    return Change(relation_id, before, told.values(), is_before_key, is_update)
