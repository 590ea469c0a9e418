"""A request with more entries in an array than its limit is refused before anything is made."""

import tracemalloc
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.array_limits import DEFAULT_LIMIT, LIMITS
from common.kafka.protocol.framing import request_class, response_class
from common.kafka.protocol.layout import layout_of, parse_versions
from common.kafka.protocol.message import Struct
from common.kafka.protocol.structs import decode_struct, decoder_in_pieces, encode_struct
from common.kafka.protocol.wire import DecodeError
from tests.lib.protocol_messages import PLAIN_SAMPLES, sample


class Array(NamedTuple):
    """An array of a request, by the fields that lead to it, in the last version that has it."""

    api_key: ApiKey
    path: tuple[str, ...]
    version: int

    @property
    def limit(self) -> int:
        return LIMITS.get(self.api_key, {}).get(".".join(self.path), DEFAULT_LIMIT)

    def request(self, count: int) -> Any:
        """Make a request whose array has so many entries, in two parts if it is in an array."""
        counts = [count - count // 2, count // 2] if self._is_in_array else [count]
        request, *_ = self._made(request_class(self.api_key), self.path, counts)
        return request

    @property
    def _is_in_array(self) -> bool:
        struct: Any = request_class(self.api_key)
        for name in self.path[:-1]:
            field = struct.__fields__[name]
            if field.kind == "array":
                return True
            struct = field.element
        return False

    def _made(self, struct: type[Struct], path: tuple[str, ...], counts: list[int]) -> list[Any]:
        """Make structs whose array has the counts, or one that has them in it."""
        field = struct.__fields__[path[0]]
        if len(path) > 1:
            assert isinstance(field.element, type)
            inside = self._made(field.element, path[1:], counts)
            made = sample(struct, self.version, array_length=0)
            setattr(made, path[0], inside if field.kind == "array" else inside[0])
            return [made]
        made = [sample(struct, self.version, array_length=0) for _ in counts]
        for one, count in zip(made, counts, strict=True):
            entry = PLAIN_SAMPLES.get(str(field.element))
            if isinstance(field.element, type):
                entry = sample(field.element, self.version, array_length=0)
            setattr(one, path[0], [entry] * count)
        return made


def arrays_of(struct: type[Struct], version: int) -> Iterator[tuple[str, ...]]:
    layout = layout_of(struct, version)
    for field in (*layout.plain, *layout.tagged):
        if field.kind == "array":
            yield (field.name,)
        if isinstance(field.element, type):
            for path in arrays_of(field.element, version):
                yield (field.name, *path)


def arrays() -> Iterator[Array]:
    for api_key in API_VERSION_RANGES:
        found: dict[tuple[str, ...], int] = {}
        versions = parse_versions(request_class(api_key).__versions__)
        for version in range(versions.first, versions.last + 1):
            found.update(dict.fromkeys(arrays_of(request_class(api_key), version), version))
        for path, version in found.items():
            yield Array(api_key, path, version)


ARRAYS = list(arrays())


def name_of(array: Array) -> str:
    return f"{array.api_key.name}:{'.'.join(array.path)}"


@pytest.mark.parametrize("array", ARRAYS, ids=name_of)
def test_a_request_may_have_as_many_entries_as_the_limit_and_no_more(array: Array) -> None:
    message = request_class(array.api_key)
    decode_struct(message, array.version, encode_struct(array.request(array.limit), array.version))
    too_many = encode_struct(array.request(array.limit + 1), array.version)
    with pytest.raises(DecodeError, match=f"has more than {array.limit} entries"):
        decode_struct(message, array.version, too_many)
    with pytest.raises(DecodeError, match=f"has more than {array.limit} entries"):
        for _ in decoder_in_pieces(message, array.version)(too_many, 0, len(too_many)):
            pass


def test_every_listed_limit_is_for_an_array_that_there_is() -> None:
    there = {(array.api_key, ".".join(array.path)) for array in ARRAYS}
    listed = {(key, path) for key, limits in LIMITS.items() for path in limits}
    assert listed <= there


@pytest.mark.parametrize("limits", LIMITS.values(), ids=[key.name for key in LIMITS])
def test_a_listed_limit_is_not_the_default(limits: dict[str, int]) -> None:
    assert DEFAULT_LIMIT not in limits.values()


def test_nothing_is_made_of_a_request_that_is_refused() -> None:
    array = Array(ApiKey.FIND_COORDINATOR, ("coordinator_keys",), 6)
    frame = encode_struct(array.request(array.limit + 1), array.version)
    message = request_class(array.api_key)
    with pytest.raises(DecodeError):
        decode_struct(message, array.version, frame)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            decode_struct(message, array.version, frame)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < array.limit


def test_an_answer_may_be_of_any_size() -> None:
    message = response_class(ApiKey.METADATA)
    answer: Any = sample(message, 9)
    answer.brokers = answer.brokers[:1] * (DEFAULT_LIMIT + 1)
    assert decode_struct(message, 9, encode_struct(answer, 9)) == answer
