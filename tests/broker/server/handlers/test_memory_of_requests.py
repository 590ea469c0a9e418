"""What one frame may cost in memory, for every array of every API that either listener serves.

`python -m bench greedy` tells what it costs in time. Here the requests are degenerate ones: an
array of theirs holds one element, as a client would send it or as small as it gets, thousands of
times. Of versions in which an array's elements are the same on the wire the last stands for all.
"""

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import response_class
from common.kafka.protocol.layout import is_nullable, layout_of
from common.kafka.protocol.message import Field, Struct
from common.kafka.protocol.structs import decoder, encoder, encoder_in_pieces
from tests.fuzz.in_process import InProcessNode, in_process_node
from tests.fuzz.mutations import copied
from tests.fuzz.valid_requests import APIS, Recorded, valid_requests
from tests.lib.protocol_messages import PLAIN_SAMPLES, sample
from tests.lib.traced_codecs import codecs_without_lines

MULTIPLE = 140
"""Times the bytes of request and answer: what a frame may cost while it is decoded and handled. The
worst costs 130 times its bytes: its elements have three, and each becomes an object with two empty
lists, 170 bytes, and as much again for whoever sorts them. The rest is what the node does
meanwhile. Every array has a limit (`common.kafka.protocol.array_limits`), so that beside its own
bytes no frame costs more than some 100 MB, however large it is."""
FIXED_BYTES = 1 << 20
"""What any frame may cost: receive buffers of the broker, and of the client here."""
LARGE_BYTES = FIXED_BYTES // MULTIPLE
"""Of a frame of more the multiple decides; a larger one shows the same and takes longer."""
FRAME_BYTES = 10_000
STEPS = 100

SERVED = [(listener, api_key) for listener in APIS for api_key in APIS[listener]]


@pytest.fixture(scope="module")
def node() -> Iterator[InProcessNode]:
    with in_process_node() as started:
        yield started


@pytest.fixture(scope="module")
def requests(node: InProcessNode) -> Iterator[list[Recorded]]:
    requests = list(valid_requests(node.world))
    for request in requests:  # every codec is written, all is imported
        node.send(request.listener, request.frame())
    with codecs_without_lines(codec for request in requests for codec in codecs_of(request)):
        yield requests


def codecs_of(request: Recorded) -> Iterator[Callable[..., Any]]:
    yield decoder(type(request.message), request.version)
    yield encoder(response_class(request.api_key), request.version)
    yield encoder_in_pieces(response_class(request.api_key), request.version)


class Array(NamedTuple):
    """An array of a message: the fields that lead to it, and it."""

    path: tuple[str, ...]
    field: Field


def arrays_of(struct: type[Struct], version: int, path: tuple[str, ...] = ()) -> Iterator[Array]:
    """Give every array, however deep."""
    layout = layout_of(struct, version)
    for field in (*layout.plain, *layout.tagged):
        if field.kind == "array":
            yield Array(path, field)
        if isinstance(field.element, type):
            yield from arrays_of(field.element, version, (*path, field.name))


def form_of(element: Any, version: int) -> Any:
    """Tell what an element is on the wire."""
    if not isinstance(element, type):
        return element
    layout = layout_of(element, version)
    fields = (*layout.plain, *layout.tagged)
    return tuple((field.name, field.kind, form_of(field.element, version)) for field in fields)


def smallest(element: Any, version: int) -> Any:
    """Make an element with nothing in it."""
    if not isinstance(element, type):
        return bytes(16) if element == "uuid" else type(PLAIN_SAMPLES[element])()
    fields = layout_of(element, version).plain
    return element(**{field.name: _nothing(field, version) for field in fields})


def _nothing(field: Field, version: int) -> Any:
    if is_nullable(field, version):
        return None
    return [] if field.kind == "array" else smallest(field.element or field.kind, version)


def usual(element: Any, version: int) -> Any:
    """Make an element with something in every field."""
    return sample(element, version) if isinstance(element, type) else PLAIN_SAMPLES[element]


def owner_of(array: Array, message: Struct, version: int) -> Struct:
    """Find the first struct that has the array; what is missing on the way is made."""
    struct: Any = message
    for name in array.path:
        value = getattr(struct, name)
        if not value:
            field = type(struct).__fields__[name]
            one = usual(field.element, version)
            value = [one] if field.kind == "array" else one
            setattr(struct, name, value)
        struct = value[0] if isinstance(value, list) else value
    return struct  # type: ignore[no-any-return]


def greedy_frames(recorded: Recorded, array: Array) -> Iterator[bytes]:
    """Fill an array with what is in it, and with what is smallest, until the frame is large."""
    name, element, version = array.field.name, array.field.element, recorded.version
    for kind in ("as sent", "smallest"):
        request = recorded._replace(message=copied(recorded.message))
        owner = owner_of(array, request.message, version)
        there = getattr(owner, name) or [usual(element, version)]
        one = there[0] if kind == "as sent" else smallest(element, version)
        setattr(owner, name, [])
        empty_bytes = len(request.frame())
        setattr(owner, name, [one] * 100)
        each_bytes = max(1, (len(request.frame()) - empty_bytes) // 100)
        setattr(owner, name, [one] * -(-FRAME_BYTES // each_bytes))
        yield request.frame()


def all_greedy(
    requests: list[Recorded], listener: str, api_key: ApiKey
) -> Iterator[tuple[Any, bytes]]:
    """Give the frames of an API, and what each is about."""
    last: dict[Any, tuple[Recorded, Array]] = {}
    for recorded in requests:
        if (recorded.listener, recorded.api_key) == (listener, api_key):
            version = recorded.version
            for array in arrays_of(type(recorded.message), version):
                key = array.path, array.field.name, form_of(array.field.element, version)
                last[key] = recorded, array
    for (path, name, _), (recorded, array) in last.items():
        for frame in greedy_frames(recorded, array):
            yield (recorded.version, *path, name), frame


@pytest.mark.slow
@pytest.mark.parametrize(("listener", "api_key"), SERVED)
def test_a_frame_costs_no_more_than_a_small_multiple_of_it_and_of_its_answer(
    node: InProcessNode, requests: list[Recorded], listener: str, api_key: ApiKey
) -> None:
    for where, frame in all_greedy(requests, listener, api_key):
        assert len(frame) > LARGE_BYTES, where
        tracemalloc.start()
        try:
            answers = node.send(listener, frame, steps=STEPS)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        answered = sum(map(len, answers))
        allowed = max(FIXED_BYTES, MULTIPLE * (len(frame) + answered))
        assert peak_bytes <= allowed, (where, len(frame), answered, peak_bytes)
