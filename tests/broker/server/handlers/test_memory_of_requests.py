"""What one frame may cost in memory, for every API that is served, on both listeners.

`python -m bench greedy` tells what it costs in time. Here the requests are degenerate ones: some
array of theirs holds one element, as small as it gets or not, thousands of times.
"""

import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from broker.protocol.api_keys import API_VERSION_RANGES, ApiKey
from broker.protocol.framing import encode_request, request_class
from broker.protocol.layout import layout_of
from broker.protocol.message import Message, Struct
from tests.fuzz.in_process import InProcessNode, in_process_node
from tests.fuzz.valid_requests import APIS, valid_requests
from tests.lib.protocol_messages import structs

MULTIPLE = 128
"""Times the bytes of request and answer: what a frame may cost while it is decoded and handled. The
worst has elements of three bytes, each an object with two empty lists: 170 bytes, and as much again
for whoever sorts them. A frame has at most a million elements (`decoding.MAX_ELEMENTS`), so that
beside its own bytes no frame costs more than some 300 MB, however large it is."""
FIXED_BYTES = 2 << 20
"""What any frame may cost: receive buffers of the broker, and a megabyte of the client here."""
FRAME_BYTES = 40_000
STEPS = 40

SERVED = [(listener, api_key) for listener in APIS for api_key in APIS[listener]]


@pytest.fixture(scope="module")
def node() -> Iterator[InProcessNode]:
    with in_process_node() as started:
        for request in valid_requests(started.world):  # every codec is written, all is imported
            started.send(request.listener, request.frame())
        yield started


def arrays_of(struct: Struct, version: int) -> Iterator[tuple[Struct, str, Any]]:
    """Give every array in a message: whose it is, its name, and an element for it."""
    for field in layout_of(type(struct), version).plain:
        value = getattr(struct, field.name)
        if field.kind == "array" and value:
            yield struct, field.name, value[0]
            if isinstance(value[0], Struct):
                yield from arrays_of(value[0], version)
        elif isinstance(value, Struct):
            yield from arrays_of(value, version)


@st.composite
def greedy_frames(draw: st.DrawFn, api_key: ApiKey) -> bytes:
    """Draw a request in which one element of an array is repeated until the frame is full."""
    versions = API_VERSION_RANGES[api_key]
    version = draw(st.integers(versions.served_min, versions.max))
    message: Message = draw(structs(request_class(api_key), version))
    arrays = list(arrays_of(message, version))
    if arrays:
        owner, name, element = draw(st.sampled_from(arrays))
        small = len(encoded(api_key, version, message))
        setattr(owner, name, [element] * 100)
        each = max(1, (len(encoded(api_key, version, message)) - small) // 100)
        setattr(owner, name, [element] * (FRAME_BYTES // each))
    return encoded(api_key, version, message)


def encoded(api_key: ApiKey, version: int, message: Message) -> bytes:
    return encode_request(api_key, version, 1, "test", message)[4:]


@pytest.mark.slow
@pytest.mark.parametrize(("listener", "api_key"), SERVED)
@settings(
    max_examples=2,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_a_frame_costs_no_more_than_a_small_multiple_of_it_and_of_its_answer(
    node: InProcessNode, listener: str, api_key: ApiKey, data: st.DataObject
) -> None:
    frame = data.draw(greedy_frames(api_key))
    tracemalloc.start()
    try:
        answers = node.send(listener, frame, steps=STEPS)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    answered = sum(map(len, answers))
    allowed = max(FIXED_BYTES, MULTIPLE * (len(frame) + answered))
    assert peak_bytes <= allowed, (len(frame), answered)
