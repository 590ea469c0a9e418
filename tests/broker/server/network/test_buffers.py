"""A frame that arrives in parts: in a buffer that grows with it."""

import mmap
import random

import pytest

from broker.server.network.buffers import (
    FIRST_BYTES,
    MOVED_BYTES_MAX,
    SPARE_BYTES_MAX,
    PartialFrame,
    ReceiveBuffers,
)


def received(buffers: ReceiveBuffers, frame: bytes, part_bytes: int) -> PartialFrame:
    """Receive a frame in parts of so many bytes."""
    partial = PartialFrame(buffers, memoryview(frame[:part_bytes]), len(frame))
    while partial.filled_bytes < len(frame):
        with partial.writable(buffers) as target:
            part = frame[partial.filled_bytes :][: min(part_bytes, len(target))]
            target[: len(part)] = part
        partial.filled_bytes += len(part)
    return partial


@pytest.mark.parametrize("size_bytes", [5, FIRST_BYTES + 1, SPARE_BYTES_MAX, MOVED_BYTES_MAX + 1])
def test_what_arrives_in_parts_is_whole(size_bytes: int) -> None:
    frame = random.Random(size_bytes).randbytes(size_bytes)
    partial = received(ReceiveBuffers(), frame, part_bytes=max(4, size_bytes // 7))
    assert bytes(memoryview(partial.buffer)[: partial.total_bytes]) == frame


def test_a_large_frame_is_moved_no_more_once_it_is_mapped() -> None:
    buffers, total_bytes = ReceiveBuffers(), 3 * MOVED_BYTES_MAX
    partial = PartialFrame(buffers, memoryview(b"\0\0\0\0"), total_bytes)
    sizes = {}
    while partial.filled_bytes < total_bytes:
        with partial.writable(buffers) as target:
            partial.filled_bytes += min(len(target), FIRST_BYTES)
        sizes[len(partial.buffer)] = isinstance(partial.buffer, mmap.mmap)
    *moved, mapped = sizes
    assert max(moved) <= MOVED_BYTES_MAX
    assert mapped == total_bytes
    assert [size for size, is_mapped in sizes.items() if is_mapped] == [mapped]


def test_what_is_announced_costs_nothing_before_it_arrives() -> None:
    partial = PartialFrame(ReceiveBuffers(), memoryview(b"\0\0\0\0"), 100_000_000)
    assert len(partial.buffer) == FIRST_BYTES


def test_a_mapped_buffer_is_not_kept() -> None:
    buffers = ReceiveBuffers()
    mapped = mmap.mmap(-1, 4096)
    buffers.give_back(mapped)
    assert buffers.take(1) is not mapped


def test_the_next_frame_of_about_the_same_size_is_not_moved_at_all() -> None:
    buffers = ReceiveBuffers()
    buffers.give_back(received(buffers, bytes(1_000_000), FIRST_BYTES).buffer)
    partial = PartialFrame(buffers, memoryview(bytes(FIRST_BYTES)), 1_000_100)
    assert len(partial.buffer) >= partial.total_bytes
    another = PartialFrame(buffers, memoryview(b"\0\0\0\0"), 1_000_100)
    assert len(another.buffer) < another.total_bytes, "there was one spare of that size"


def test_the_largest_spares_are_kept() -> None:
    buffers = ReceiveBuffers()
    for size_bytes in (1000, 4000, 2000, 3000, 5000, SPARE_BYTES_MAX + 1):
        buffers.give_back(bytearray(size_bytes))
    assert sorted(len(buffers.begin(size)) for size in (2000, 3000, 4000, 5000)) == [
        2000,
        3000,
        4000,
        5000,
    ]
    assert len(buffers.begin(1000)) == FIRST_BYTES


def test_a_shared_buffer_that_is_held_is_left_alone() -> None:
    buffers = ReceiveBuffers()
    frame = buffers.shared[:4]
    frame[:] = b"held"
    buffers.replace_shared()
    buffers.shared[:4] = b"next"
    assert bytes(frame) == b"held"
