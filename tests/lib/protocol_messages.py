"""Every declared message, and values for it that follow from the declarations.

`structs` makes a Hypothesis strategy; `random_struct` draws from a seeded source, at a fraction of
the cost, for tests of every version; `sample` makes the one instance with every field set.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from random import Random
from typing import Any

from hypothesis import strategies as st

from common.kafka.protocol.api_keys import API_VERSION_RANGES
from common.kafka.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from common.kafka.protocol.framing import request_class, response_class
from common.kafka.protocol.layout import is_nullable, layout_of, parse_versions
from common.kafka.protocol.message import Field, Message, Struct
from common.kafka.protocol.records.metadata import METADATA_RECORDS

INTEGER_RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
PLAIN_STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    **{kind: st.integers(*bounds) for kind, bounds in INTEGER_RANGES.items()},
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": st.text(max_size=6),
    "bytes": st.binary(max_size=6),
    "records": st.binary(max_size=6),
}
MAX_ARRAY_LENGTH = 2

LAST_ERROR_CODE = 130
MODEST_RANGES = INTEGER_RANGES | {"int32": (0, 2**31 - 1), "int64": (0, 2**41)}
"""Values that fit into whatever another codec makes of them, such as a date or a set of bits."""

CHARACTERS = "a0 \0\x7f\xe9\u20ac\uffff\U0001f600"
"""Those of each length in UTF-8, and those at the ends of them."""
FLOATS = (0.0, -0.0, 1.5, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"))

API_MESSAGES: list[type[Message]] = [
    make_class(key) for key in API_VERSION_RANGES for make_class in (request_class, response_class)
]
GROUP_RECORDS: list[type[Message]] = [
    getattr(import_module("common.kafka.protocol.records.group"), name)
    for name in ("OffsetCommitKey", "OffsetCommitValue", "GroupMetadataKey", "GroupMetadataValue")
]
NEWER_RECORDS: list[type[Message]] = [
    message
    for name in ("share_group", "share_state", "streams_group")
    for message in vars(import_module(f"common.kafka.protocol.records.{name}")).values()
    if isinstance(message, type) and issubclass(message, Message) and message is not Message
]
ALL_MESSAGES: list[type[Message]] = [
    *API_MESSAGES,
    *GROUP_RECORDS,
    *NEWER_RECORDS,
    *METADATA_RECORDS.values(),
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
]


def versions_of(message: type[Message]) -> range:
    """Return all versions of a message."""
    first, last = parse_versions(message.__versions__)
    return range(first, last + 1)


def name_of(value: object) -> str:
    """Name a test's parameter."""
    return value.__name__ if isinstance(value, type) else f"v{value}"


@cache
def fields_of(struct: type[Struct], version: int) -> tuple[Field, ...]:
    """Give what the version can say of a struct; asked for every value, so sorted once."""
    layout = layout_of(struct, version)
    return (*layout.plain, *layout.tagged)


@cache
def structs(struct: type[Struct], version: int) -> st.SearchStrategy[Any]:
    """Make instances that set what the version can say and leave the rest at its default."""
    fields = {field.name: _values(field, version) for field in fields_of(struct, version)}
    return st.builds(struct, **fields)


def _values(field: Field, version: int) -> st.SearchStrategy[Any]:
    values = _elements(field.element or field.kind, version)
    if field.kind == "array":
        values = st.lists(values, max_size=MAX_ARRAY_LENGTH)
    return st.none() | values if is_nullable(field, version) else values


def _elements(element: str | type[Struct], version: int) -> st.SearchStrategy[Any]:
    return PLAIN_STRATEGIES[element] if isinstance(element, str) else structs(element, version)


def sample(struct: type[Struct], version: int, *, array_length: int = 2) -> Any:
    """Make the one instance in which every field is set, for tests that need no variety."""
    fields = fields_of(struct, version)
    return struct(**{field.name: _sample(field, version, array_length) for field in fields})


PLAIN_SAMPLES: dict[str, Any] = {
    "int8": 17,
    "int16": 1717,
    "uint16": 51717,
    "int32": 17171717,
    "uint32": 3171717171,
    "int64": 1717171717171,
    "bool": True,
    "float64": 1.75,
    "uuid": bytes(range(16)),
    "string": "grün",
    "bytes": b"\x00\xff",
    "records": b"records",
}


def _sample(field: Field, version: int, array_length: int) -> Any:
    if field.name.endswith("error_code"):
        return 41
    element = field.element or field.kind
    if isinstance(element, str):
        value = PLAIN_SAMPLES[element]
    else:
        value = sample(element, version, array_length=array_length)
    return [value] * array_length if field.kind == "array" else value


def random_struct(
    struct: type[Struct], version: int, random: Random, *, modest: bool = False
) -> Any:
    """Make an instance whose fields are drawn one by one, the ends of their ranges most often."""
    fields = fields_of(struct, version)
    return struct(**{field.name: _random_value(field, version, random, modest) for field in fields})


def _random_value(field: Field, version: int, random: Random, modest: bool) -> Any:
    if modest and field.name.endswith("error_code"):
        return random.randint(0, LAST_ERROR_CODE)
    if is_nullable(field, version) and random.random() < 0.3:
        return None
    element = field.element or field.kind
    if field.kind != "array":
        return _random_element(element, version, random, modest)
    length = random.randint(0, MAX_ARRAY_LENGTH)
    return [_random_element(element, version, random, modest) for _ in range(length)]


def _random_element(element: str | type[Struct], version: int, random: Random, modest: bool) -> Any:
    if not isinstance(element, str):
        return random_struct(element, version, random, modest=modest)
    ranges = MODEST_RANGES if modest else INTEGER_RANGES
    if element in ranges:
        low, high = ranges[element]
        ends = (low, high, low + 1, high - 1, *(near for near in (-1, 0, 1) if low <= near))
        return random.choice(ends) if random.random() < 0.5 else random.randint(low, high)
    return _RANDOM_VALUES[element](random)


def _random_text(random: Random) -> str:
    return "".join(random.choices(CHARACTERS, k=random.randint(0, 6)))


def _random_bytes(random: Random) -> bytes:
    return random.randbytes(random.randint(0, 6))


def _random_float(random: Random) -> float:
    return random.choice([*FLOATS, random.uniform(-1e9, 1e9)])


_RANDOM_VALUES: dict[str, Callable[[Random], Any]] = {
    "bool": lambda random: random.random() < 0.5,
    "float64": _random_float,
    "uuid": lambda random: random.choice([bytes(16), random.randbytes(16)]),
    "string": _random_text,
    "bytes": _random_bytes,
    "records": _random_bytes,
}
