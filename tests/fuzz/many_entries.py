"""Requests with very many different entries in one of their arrays."""

from collections.abc import Iterator
from copy import copy
from typing import Any

from common.kafka.protocol.layout import layout_of
from common.kafka.protocol.message import Message, Struct

Path = tuple[str, ...]
"""The way to an array: its own name, behind those of the arrays it is in an entry of."""

DISTINCT = {
    "broker_id",
    "entity_name",
    "group",
    "group_id",
    "host",
    "index",
    "member_id",
    "name",
    "partition",
    "partition_id",
    "partition_index",
    "producer_id",
    "resource_name",
    "topic",
    "topic_id",
    "topic_name",
    "transactional_id",
}
"""The fields that distinguish the entries of an array."""
MOST_OF_KIND = {"int8": 1 << 7, "int16": 1 << 15}


def arrays_of(struct: Struct, version: int) -> Iterator[Path]:
    """Yield the path of every nonempty array of a message, also inside the first entries."""
    layout = layout_of(type(struct), version)
    for field in layout.plain + layout.tagged:
        entries = getattr(struct, field.name)
        if field.kind == "array" and entries:
            yield (field.name,)
            if isinstance(entries[0], Struct):
                for path in arrays_of(entries[0], version):
                    yield (field.name, *path)


def make_many(message: Message, path: Path, version: int, count: int) -> None:
    """Fill an array with `count` copies of its first entry, each with its own name."""
    owner: Any = message
    for name in path[:-1]:
        owner = getattr(owner, name)[0]
    field = type(owner).__fields__[path[-1]]
    (first,) = getattr(owner, field.name)
    if isinstance(first, Struct):
        entries = [_other_struct(first, version, number) for number in range(count)]
    else:
        entries = [_other(first, str(field.element), number) for number in range(count)]
    setattr(owner, field.name, entries)


def _other_struct(first: Struct, version: int, number: int) -> Struct:
    made = copy(first)
    for field in layout_of(type(first), version).plain:
        if field.name in DISTINCT:
            setattr(made, field.name, _other(getattr(first, field.name), field.kind, number))
    return made


def _other(first: Any, kind: str, number: int) -> Any:
    match first:
        case str():
            return f"{number:05d}"
        case bytes() if kind == "uuid":
            return number.to_bytes(16, "big")
        case int() if not isinstance(first, bool):
            return number % MOST_OF_KIND.get(kind, 1 << 31)
        case _:
            return first
