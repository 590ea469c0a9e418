"""What an answer says about the addresses of brokers and the ids of topics. Pure.

The places are found in the tables of the messages. An address of a broker is a struct with a host,
a port and the id of a node: the brokers of Metadata and DescribeCluster, the coordinators, the
endpoints beside NOT_LEADER_OR_FOLLOWER (KIP-951). The endpoint of a Streams application has no id,
and stays.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.message import Message, Struct
from common.kafka.protocol.messages.api_versions import ApiVersionsResponse

Address = tuple[str, int]
_NODE_IDS: Final = {"node_id", "broker_id", "leader_id"}
_NAMES: Final = ("name", "topic", "topic_name")
Suits = Callable[[type[Struct]], bool]


def is_address(struct: type[Struct]) -> bool:
    """Return whether a struct is the address of a broker."""
    fields = struct.__fields__
    return {"host", "port"} <= fields.keys() and bool(_NODE_IDS & fields.keys())


def is_named_topic(struct: type[Struct]) -> bool:
    """Return whether a struct has a topic's id and its name."""
    return "topic_id" in struct.__fields__ and _name_field(struct) is not None


def _name_field(struct: type[Struct]) -> str | None:
    return next((name for name in _NAMES if name in struct.__fields__), None)


@cache
def ways(struct: type[Struct], suits: Suits) -> tuple[tuple[str, ...], ...]:
    """Return the ways through the fields of a struct to those below that suit; () is the top."""
    found: list[tuple[str, ...]] = [()] if suits(struct) else []
    for name, field in struct.__fields__.items():
        if field.kind in ("array", "struct") and not isinstance(field.element, str):
            found += [(name, *below) for below in ways(field.element, suits)]
    return tuple(found)


def _at(struct: Any, way: tuple[str, ...]) -> Iterator[Any]:
    if not way:
        yield struct
        return
    value = getattr(struct, way[0])
    for each in value if isinstance(value, list) else [value]:
        if each is not None:
            yield from _at(each, way[1:])


def moved(answer: Message, address_of: Callable[[Address], Address]) -> bool:
    """Give each broker in an answer its other address; return whether there was one."""
    found = False
    for way in ways(type(answer), is_address):
        for each in _at(answer, way):
            if each.host and each.port > 0:  # Without a host it says that there is no broker.
                each.host, each.port = address_of((each.host, each.port))
                found = True
    return found


def named_topics(answer: Message) -> Iterator[tuple[bytes, str]]:
    """Yield the topics that an answer gives both the id and the name of."""
    for way in ways(type(answer), is_named_topic):
        for each in _at(answer, way):
            name = getattr(each, str(_name_field(type(each))))
            if name and any(each.topic_id):
                yield bytes(each.topic_id), name


def limited(answer: Message) -> bool:
    """Take the versions out of an ApiVersions answer that are newer than the codec's tables.

    A client would use them, and nothing in its messages could be found. Return whether there were
    some.
    """
    if not isinstance(answer, ApiVersionsResponse):
        return False
    found = False
    for entry in answer.api_keys:
        known = API_VERSION_RANGES.get(ApiKey(entry.api_key)) if _is_known(entry.api_key) else None
        if known is not None and entry.min_version <= known.max < entry.max_version:
            entry.max_version = known.max
            found = True
    return found


def _is_known(api_key: int) -> bool:
    return api_key in {int(each) for each in API_VERSION_RANGES}
