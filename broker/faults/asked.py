"""What a request is about: topics, partitions, groups, transactions; from the messages' tables."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from broker.faults.places import Kind, arrays, kind_of
from common.kafka.protocol.framing import request_class
from common.kafka.protocol.message import Message, Struct

NameOf = Callable[[bytes], str | None]
"""Returns the name of the topic that has an id."""
MAX_PARTITIONS: Final = 1_000
"""No more partitions of a request are looked at: a request may have a million."""
_FIELDS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.TOPIC: ("name", "topic", "topic_name"),
    Kind.PARTITION: ("partition_index", "partition", "index", "partition_id"),
    Kind.GROUP: ("group_id",),
    Kind.MEMBER: ("member_id",),
    Kind.TRANSACTION: ("transactional_id",),
}
_COORDINATOR_KINDS: Final = (Kind.GROUP, Kind.TRANSACTION)
"""What the key of a FindCoordinator request is, by its `key_type`."""


class Asked(NamedTuple):
    """What one request is about."""

    topics: Mapping[str, list[int]]
    """The partitions by topic; none for a request that names topics alone."""
    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    is_about_all: bool = False
    """True if the request names no topics, because it means all."""

    def concerns(self, topic: str | None, partition: int | None) -> bool:
        """Return whether the request is about a topic and a partition; None stands for any."""
        if topic is None and partition is None:
            return True
        named = self.topics.values() if topic is None else [self.topics.get(topic)]
        return self.is_about_all or any(
            each is not None and (partition is None or not each or partition in each)
            for each in named
        )


class _TopicArray(NamedTuple):
    way: tuple[str, ...]
    partitions: str
    """The array of partitions in each entry; "" if there is none."""


def asked_by(request: Message, version: int, name_of: NameOf) -> Asked:
    """Return what a request is about."""
    api_key = request.__api_key__
    topics: dict[str, list[int]] = {}
    is_about_all = False
    left = MAX_PARTITIONS
    for array in _topic_arrays(api_key, version):
        for entries in _ends(request, array.way):
            is_about_all = is_about_all or entries is None
            for entry in entries or ():
                name = str(value_of(Kind.TOPIC, entry, name_of))
                named = (getattr(entry, array.partitions) if array.partitions else None) or ()
                partitions = topics.setdefault(name, [])
                partitions += [value_of(Kind.PARTITION, each, name_of) for each in named[:left]]
                left = max(0, left - max(1, len(named)))
                if not left:
                    break
    return Asked(
        topics,
        _named(request, version, Kind.GROUP, name_of),
        _named(request, version, Kind.TRANSACTION, name_of),
        is_about_all,
    )


def names_topics(api_key: int, version: int) -> bool:
    """Return whether requests of an API name topics."""
    return bool(_topic_arrays(api_key, version))


def names(api_key: int, version: int, kind: Kind) -> bool:
    """Return whether requests of an API name a group, a transaction or a member."""
    declared = request_class(api_key).__fields__
    return (
        any(name in declared for name in _FIELDS[kind])
        or bool(_arrays_of(api_key, version, kind))
        or ("key_type" in declared and kind in _COORDINATOR_KINDS)
    )


def value_of(kind: Kind, entry: Any, name_of: NameOf) -> Any:
    """Return what an entry of this kind is about: the topic's name, the number of the partition."""
    if not isinstance(entry, Struct):
        return entry
    fields = entry.__fields__
    found = next((getattr(entry, name) for name in _FIELDS.get(kind, ()) if name in fields), None)
    if kind is Kind.TOPIC and not found and "topic_id" in fields:
        topic_id: bytes = entry.topic_id  # type: ignore[attr-defined]
        return name_of(topic_id) or topic_id.hex()
    return found


def _named(request: Message, version: int, kind: Kind, name_of: NameOf) -> tuple[str, ...]:
    fields = request.__fields__
    found = [getattr(request, name) for name in _FIELDS[kind] if name in fields]
    for way in _arrays_of(request.__api_key__, version, kind):
        for entries in _ends(request, way):
            found += [value_of(kind, each, name_of) for each in (entries or ())[:MAX_PARTITIONS]]
    if "key_type" in fields and dict(enumerate(_COORDINATOR_KINDS)).get(request.key_type) is kind:  # type: ignore[attr-defined]
        found += [request.key, *request.coordinator_keys]  # type: ignore[attr-defined]
    return tuple(dict.fromkeys(each for each in found if each))


@cache
def _topic_arrays(api_key: int, version: int) -> tuple[_TopicArray, ...]:
    found = []
    for way in arrays(request_class(api_key), version):
        name, element = way[-1]
        if kind_of(name, element, version) is Kind.TOPIC:
            partitions = (
                ()
                if isinstance(element, str)
                else (
                    each
                    for (each, inner), *below in arrays(element, version)
                    if not below
                    and "partition" in each
                    and (inner == "int32" or kind_of(each, inner, version) is Kind.PARTITION)
                )
            )
            found.append(_TopicArray(tuple(each for each, _ in way), next(iter(partitions), "")))
    return tuple(found)


@cache
def _arrays_of(api_key: int, version: int, kind: Kind) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(name for name, _ in way)
        for way in arrays(request_class(api_key), version)
        if kind_of(*way[-1], version) is kind
    )


def _ends(struct: Struct, way: tuple[str, ...]) -> Iterator[list[Any] | None]:
    """Yield the arrays at the end of a way through arrays; a message of old APIs may have none."""
    array = getattr(struct, way[0])
    if len(way) == 1:
        yield array
    else:
        for entry in array or ():
            yield from _ends(entry, way[1:])
