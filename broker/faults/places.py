"""Where an answer has its errors: for every API and version, from the tables of the messages.

An error is at the top of an answer, or in an entry of its arrays: of a topic, a partition, a group.
A `Place` is the way there. Most arrays answer an array of the request, entry by entry; the two are
found by their fields: `topic_data[].partition_data[]` of a Produce request, with `name` and
`index`, is answered by `responses[].partition_responses[]` with the same two. So an entry with an
error can be made from the request alone, without doing its work.
"""

from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

from common.kafka.protocol.framing import request_class, response_class
from common.kafka.protocol.layout import parse_versions
from common.kafka.protocol.message import Field, Struct


class Kind(StrEnum):
    """What an error is about."""

    REQUEST = "request"
    TOPIC = "topic"
    PARTITION = "partition"
    GROUP = "group"
    MEMBER = "member"
    TRANSACTION = "transaction"
    ENTRY = "entry"


_SPELLINGS: Final = {
    "topic": "name",
    "topic_name": "name",
    "user": "name",
    "partition_index": "partition",
    "partition_id": "partition",
    "index": "partition",
}
"""The fields that Kafka names in several ways, by the one that stands for all here."""
_KINDS: Final = {
    "topic_id": Kind.TOPIC,
    "partition": Kind.PARTITION,
    "group_id": Kind.GROUP,
    "member_id": Kind.MEMBER,
    "transactional_id": Kind.TRANSACTION,
}
_NAMES: Final = {
    *("name", "group_instance_id", "producer_id", "resource_type", "resource_name"),
    *("key", "feature", "entity", "id", *_KINDS),
}
"""The fields by which entries are told apart; the others are values."""
ERROR: Final = "error_code"

Element = str | type[Struct]


class Level(NamedTuple):
    """One array on the way to an error."""

    name: str
    """Its name in the answer."""
    struct: type[Struct]
    kind: Kind
    asked: tuple[tuple[str, ...], ...] = ()
    """The ways to the arrays of the request, from the level above, whose entries it answers; () if
    the request lists none."""
    keys: tuple[tuple[str, str], ...] = ()
    """The fields of an entry that repeat the request's: their names here and there. The name there
    is "" where the request lists plain values."""


class Place(NamedTuple):
    """The way to one error of an answer."""

    levels: tuple[Level, ...]
    field: str

    @property
    def kind(self) -> Kind:
        """What the error is about."""
        return self.levels[-1].kind if self.levels else Kind.REQUEST

    @property
    def is_listed(self) -> bool:
        """True if an entry with the error can be made from the request."""
        return all(level.asked for level in self.levels)

    def has(self, kind: Kind) -> bool:
        """Return whether the way leads through an array of this kind."""
        return any(level.kind is kind for level in self.levels)


@cache
def places(api_key: int, version: int) -> tuple[Place, ...]:
    """Return all places of an API in a version, those nearer to the top first."""
    found = [
        Place(_aligned(path, api_key, version), field)
        for path, field in _errors(response_class(api_key), (), version)
    ]
    return tuple(sorted(found, key=lambda place: len(place.levels)))


def fields_of(struct: type[Struct], version: int) -> Iterator[Field]:
    """Yield the fields that a struct has in a version."""
    for field in struct.__fields__.values():
        if parse_versions(field.versions).includes(version):
            yield field


def spelled(name: str) -> str:
    """Return the one name of a field that Kafka names in several ways."""
    return _SPELLINGS.get(name, name)


def kind_of(array: str, element: Element, version: int) -> Kind:
    """Return what the entries of an array are about."""
    if element == "string":
        words = (("topic", Kind.TOPIC), ("group", Kind.GROUP), ("transactional", Kind.TRANSACTION))
        return next((kind for word, kind in words if word in array), Kind.ENTRY)
    if isinstance(element, str):
        return _kind_of_name(array, "partition")
    kinds = [_kind_of_name(array, spelled(each.name)) for each in fields_of(element, version)]
    return next((each for each in kinds if each is not Kind.ENTRY), Kind.ENTRY)


def _kind_of_name(array: str, name: str) -> Kind:
    if name == "name":
        return Kind.TOPIC if "topic" in array else Kind.ENTRY
    if name == "partition" and "partition" not in array:
        return Kind.ENTRY
    return _KINDS.get(name, Kind.ENTRY)


_Path = tuple[tuple[str, Element], ...]


def _errors(struct: type[Struct], path: _Path, version: int) -> Iterator[tuple[_Path, str]]:
    fields = list(fields_of(struct, version))
    errors = [each.name for each in fields if each.name.endswith(ERROR)]
    if errors:
        yield path, ERROR if ERROR in errors else errors[0]
    for each in fields:
        if each.kind == "array" and not isinstance(each.element, str):
            yield from _errors(each.element, (*path, (each.name, each.element)), version)


def arrays(struct: type[Struct], version: int, path: _Path = ()) -> Iterator[_Path]:
    """Yield the way to each array of a message, also of arrays within arrays."""
    for each in fields_of(struct, version):
        if each.kind == "array" and not each.name.startswith("forgotten"):
            way = (*path, (each.name, each.element))
            yield way
            if not isinstance(each.element, str):
                yield from arrays(each.element, version, way)


def _aligned(path: _Path, api_key: int, version: int) -> tuple[Level, ...]:
    """Return the levels of a way in the answer, each with what it answers of the request."""
    ways = _answered(path, list(arrays(request_class(api_key), version)), version)
    levels = []
    for number, (name, element) in enumerate(path):
        assert not isinstance(element, str), path
        asked = tuple(dict.fromkeys(way[number][0] for way in ways))
        keys = ways[0][number][1] if ways else ()
        # The arrays of an answer may be called `responses`; those of the request tell their kind.
        kind = kind_of(" ".join((name, *(each for way in asked for each in way))), element, version)
        levels.append(Level(name, element, kind, asked, keys))
    return tuple(levels)


_Answered = tuple[tuple[tuple[str, ...], tuple[tuple[str, str], ...]], ...]


def _answered(path: _Path, asked: list[_Path], version: int) -> list[_Answered]:
    """Return what the levels of a way answer; more than one if several arrays fit equally well."""
    found: dict[tuple[int, int], list[_Answered]] = {}
    for way in asked:
        skipped = len(way) - len(path)
        if skipped < 0 or not path:
            continue
        keys = [
            _keys(array, path[number + 1 :], element, version)
            for number, (array, (_, element)) in enumerate(zip(path, way[skipped:], strict=True))
        ]
        if all(keys) or (len(way) == 1 and _has_no_name(path, version)):
            names = [name for name, _ in way]
            sources = [tuple(names[: skipped + 1]), *((name,) for name in names[skipped + 1 :])]
            score = (-skipped, sum(map(len, keys)))
            found.setdefault(score, []).append(tuple(zip(sources, keys, strict=True)))
    return found[max(found)] if found else []


def _keys(
    array: tuple[str, Element], below: _Path, asked: Element, version: int
) -> tuple[tuple[str, str], ...]:
    """Return the fields by which an entry of an answer repeats one of the request."""
    _, struct = array
    if isinstance(struct, str):
        return ()
    next_array = below[0][0] if below else ""
    here = [
        each
        for each in fields_of(struct, version)
        if each.name != next_array and (isinstance(asked, str) or spelled(each.name) in _NAMES)
    ]
    if isinstance(asked, str):
        fitting = (each for each in here if each.kind == asked and "error" not in each.name)
        return tuple((each.name, "") for each in fitting)[:1]
    there = {(spelled(each.name), each.kind): each.name for each in fields_of(asked, version)}
    return tuple(
        (each.name, there[key])
        for each in here
        if (key := (spelled(each.name), each.kind)) in there
    )


def _has_no_name(path: _Path, version: int) -> bool:
    """True if an entry repeats nothing: it belongs to the request's entry of the same number."""
    (_, struct), *rest = path
    return (
        not rest
        and not isinstance(struct, str)
        and all("error" in each.name or each.kind == "array" for each in fields_of(struct, version))
    )
