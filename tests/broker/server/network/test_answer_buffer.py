"""Answers of another node come whole, into a buffer that grows with what arrives."""

import os
import random
import socket
from collections.abc import Iterator

import pytest

from broker.server.network.answer_buffer import FIRST_BYTES, AnswerBuffer, FrameSizeError

MAX_BYTES = 8 * 1024 * 1024


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def receive_all(
    buffer: AnswerBuffer, ours: socket.socket, theirs: socket.socket, data: bytes, step: int
) -> list[bytes]:
    """Send in steps, and take every frame as it becomes whole."""
    found = []
    for start in range(0, len(data), step):
        theirs.sendall(data[start : start + step])
        while True:
            try:
                buffer.receive(ours)
            except BlockingIOError:
                break
            while (whole := buffer.next_frame()) is not None:
                found.append(bytes(whole))
    return found


@pytest.mark.parametrize("step", [1, 3, 5, 1_000])
def test_small_frames_come_whole_however_they_arrive(ends, step):
    bodies = [b"%04d" % number * (number % 7 + 1) for number in range(60)]
    data = b"".join(map(frame, bodies))
    assert receive_all(AnswerBuffer(MAX_BYTES), *ends, data, step) == bodies


def test_large_and_small_frames_follow_each_other(ends):
    source = random.Random(3)
    sizes = [source.choice([10, 70_000, 300_000, 3_000_000]) for _ in range(12)]
    bodies = [os.urandom(size) for size in sizes]
    data = b"".join(map(frame, bodies))
    assert receive_all(AnswerBuffer(MAX_BYTES), *ends, data, 50_000) == bodies


def test_an_announced_size_takes_no_memory(ends):
    ours, theirs = ends
    buffer = AnswerBuffer(MAX_BYTES)
    theirs.sendall((MAX_BYTES - 1).to_bytes(4, "big") + b"some")
    buffer.receive(ours)
    assert buffer.next_frame() is None
    theirs.sendall(b"more")
    buffer.receive(ours)
    assert len(buffer._buffer) == FIRST_BYTES


@pytest.mark.parametrize("size", [-1, 0, 3, MAX_BYTES + 1])
def test_a_size_that_no_answer_has_is_refused(ends, size):
    ours, theirs = ends
    buffer = AnswerBuffer(MAX_BYTES)
    theirs.sendall(size.to_bytes(4, "big", signed=True))
    buffer.receive(ours)
    with pytest.raises(FrameSizeError):
        buffer.next_frame()


def test_the_end_of_the_stream_is_told(ends):
    ours, theirs = ends
    theirs.close()
    assert AnswerBuffer(MAX_BYTES).receive(ours) == 0
