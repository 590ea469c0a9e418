"""One client connection: bytes in, frames to the dispatcher, responses out in request order.

Reading is a synchronous callback on the event loop: it takes what the socket has, hands whole
frames to the dispatcher for one turn (`turns`) and sends all answers with one write. A request
whose answer must wait (a Fetch at the end of the log, a JoinGroup) gets a slot in a queue; later
answers queue up behind it, because Kafka answers in request order. One whose answer is a long walk
is a generator that yields now and then: it goes on in the next turns, and no further request is
begun before it ends.

Invariants:
- responses leave in the order of their requests;
- a turn ends after TURN_SECONDS and the request, or the step of a walk, that was begun by then;
- at most MAX_REQUESTS_IN_FLIGHT requests wait for an answer; then the connection stops reading;
- while more than MAX_UNSENT_BYTES are waiting to be sent, the connection stops reading, so that a
  client that never reads its answers fills its own buffers and not ours;
- a client that is gone is noticed whether or not it is read from, and its answers go with it;
- the receive buffer grows with the bytes that arrive, never with the announced length.
"""

import logging
import os
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from broker.log.file_region import FileRegion
from broker.server.network.buffers import PartialFrame
from broker.server.network.shared import Shared
from broker.server.network.walks import Steps, Wait

log = logging.getLogger("millrace.connection")

MAX_REQUESTS_IN_FLIGHT = 256
MAX_UNSENT_BYTES = 4 * 1024 * 1024
MIN_FRAME_BYTES = 8  # api key, version, correlation id
MAX_PARTS_PER_SEND = 512  # below every system's IOV_MAX

Part = bytes | bytearray | memoryview | FileRegion
Walk = Steps[list[Part] | None]
"""The making of one answer in steps of at most a few milliseconds; None: the client wants none."""
_read_size = struct.Struct(">i").unpack_from


class Peer(NamedTuple):
    """Who is at the other end, and through which of our listeners it came."""

    host: str
    listener_name: str


class Slot:
    """The place of one answer in the queue of a connection."""

    __slots__ = ("connection", "is_done", "parts")

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self.parts: list[Part] = []
        self.is_done = False

    def complete(self, parts: list[Part]) -> None:
        """Fill in the answer; an empty list means that none is sent."""
        assert not self.is_done, "answered twice"
        self.parts = parts
        self.is_done = True
        self.connection.on_slot_done()


class FrameSink(Protocol):
    """Whoever takes the frames of a connection."""

    def on_frame(self, connection: "Connection", frame: memoryview) -> list[Part] | Slot | None:
        """Answer now (parts), later (a `Slot` of this connection) or never (None)."""
        ...

    def on_closed(self, connection: "Connection") -> None:
        """Learn that the connection is gone."""
        ...


class Connection:
    """Owns one accepted socket until it is closed."""

    __slots__ = (
        "_backlog",
        "_buffers",
        "_hang_ups",
        "_is_held",
        "_is_reading",
        "_is_waiting",
        "_is_watched",
        "_is_writing",
        "_loop",
        "_max_frame_bytes",
        "_out",
        "_partial",
        "_sink",
        "_slots",
        "_socket",
        "_turns",
        "_unsent_bytes",
        "_walk",
        "is_closed",
        "last_active",
        "peer",
    )

    def __init__(
        self,
        shared: Shared,
        accepted: socket.socket,
        *,
        sink: FrameSink,
        max_frame_bytes: int,
        peer: Peer,
    ) -> None:
        self._turns, self._buffers, self._hang_ups = shared
        self._loop = self._turns.loop
        self._socket = accepted
        self._sink = sink
        self._max_frame_bytes = max_frame_bytes
        self._partial: PartialFrame | None = None
        self._backlog: memoryview | None = None
        self._walk: tuple[Slot, Walk] | None = None
        self._slots: deque[Slot] = deque()
        self._out: deque[Part] = deque()
        self._unsent_bytes = 0
        self._is_held = False  # by what its walk waits for
        self._is_reading = False
        self._is_waiting = False  # for a turn
        self._is_writing = False
        self.is_closed = False
        self._is_watched = False
        self.last_active = self._turns.now()
        self.peer = peer
        self._read(True)

    # --- reading ---

    def _read(self, wanted: bool) -> None:
        if wanted != self._is_reading and not self.is_closed:
            self._is_reading = wanted
            if wanted:
                self._loop.add_reader(self._socket.fileno(), self.on_readable)
            else:
                self._loop.remove_reader(self._socket.fileno())

    def on_readable(self) -> None:
        """Answer what the socket has, for one turn; behind what is not done, stop reading."""
        if self._walk is not None or self._backlog is not None:
            self._read(False)
            return
        self.last_active = self._turns.begin()
        self._guarded(self._receive_or_close)

    def _receive_or_close(self) -> None:
        if not self._receive():
            self.close()

    def _guarded(self, work: Callable[[], None]) -> None:
        """Run `work`, then send what it answered. A bug costs the client its connection."""
        try:
            work()
        except Exception:
            # The connection's outermost edge: the node lives on.
            log.exception("request failed client_host=%s", self.peer.host)
            self.close()
        self._flush()
        self._throttle()

    def _receive(self) -> bool:
        """Read once, or twice when the first read finished a frame. False at the end of stream."""
        if self._partial is not None:
            if not self._receive_partial(self._partial):
                return False
            is_done = self._partial is None and not self.is_closed
            if not is_done or self._must_pause() or self._turns.is_over():
                return True
        shared = self._buffers.shared
        try:
            count = self._socket.recv_into(shared)
        except BlockingIOError:
            return True
        except OSError:  # reset, or lost: not even keep-alives are answered
            return False
        if count == 0:
            return False
        self._consume(shared[:count])
        return True

    def _consume(self, received: memoryview) -> None:
        """Handle whole frames; keep the rest as a partial frame, or as backlog for another turn."""
        position, count = 0, len(received)
        while count - position >= 4:
            size = _read_size(received, position)[0]
            if not MIN_FRAME_BYTES <= size <= self._max_frame_bytes:
                self._refuse_size(size)
                return
            end = position + 4 + size
            if end > count:
                break
            self._on_frame(received[position + 4 : end])
            position = end
            if self.is_closed:
                return
            if position < count and (self._must_pause() or self._turns.is_over()):
                self._set_aside(received[position:])
                return
        if position < count:
            rest = received[position:]
            total = 4 + _read_size(rest)[0] if len(rest) >= 4 else 0
            self._partial = PartialFrame(self._buffers, rest, total)

    def _set_aside(self, rest: memoryview) -> None:
        """Keep what is read and not begun; the shared buffer itself is needed by others."""
        self._backlog = memoryview(bytes(rest)) if rest.obj is self._buffers.shared.obj else rest

    def _must_pause(self) -> bool:
        """Whether no request is begun: one is not done, or too many answers are still to come."""
        if self._unsent_bytes > MAX_UNSENT_BYTES:
            self._flush()
        return (
            self._walk is not None
            or self._unsent_bytes > MAX_UNSENT_BYTES
            or len(self._slots) >= MAX_REQUESTS_IN_FLIGHT
        )

    def _wait_for_turn(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._turns.wait(self._on_turn)

    def _on_turn(self) -> None:
        self._is_waiting = False
        if not self.is_closed:
            self._turns.begin()
            self._guarded(self._go_on)

    def _go_on(self) -> None:
        """Go on with the walk that was interrupted, then with the requests behind it."""
        if self._walk is not None and not self._is_held:
            self._step()
        if self._backlog is not None and not self._must_pause():
            backlog, self._backlog = self._backlog, None
            self._consume(backlog)

    def _receive_partial(self, partial: PartialFrame) -> bool:
        with partial.writable(self._buffers) as target:
            try:
                count = self._socket.recv_into(target)
            except BlockingIOError:
                return True
            except OSError:
                return False
        if count == 0:
            return False
        partial.filled_bytes += count
        if partial.total_bytes == 0 and partial.filled_bytes >= 4:
            size = _read_size(partial.buffer)[0]
            if not MIN_FRAME_BYTES <= size <= self._max_frame_bytes:
                self._refuse_size(size)
                return True
            partial.total_bytes = 4 + size
        if partial.filled_bytes == partial.total_bytes:
            self._partial = None
            self._on_frame(memoryview(partial.buffer)[4 : partial.total_bytes])
            if self._walk is None:
                self._buffers.give_back(partial.buffer)
        return True

    def _refuse_size(self, size: int) -> None:
        log.warning("closed: frame size out of range size=%d client=%s", size, self.peer.host)
        self.close()

    def _on_frame(self, frame: memoryview) -> None:
        answer = self._sink.on_frame(self, frame)
        if answer is None:
            return
        if isinstance(answer, Slot):
            # Its place was taken by `new_slot`; it may even be done already.
            return
        if self._slots:
            self.new_slot().complete(answer)
        else:
            self._queue(answer)

    def walk(self, steps: Walk, held: memoryview) -> Slot | list[Part] | None:
        """Make an answer step by step: return it if this turn is enough, else its place.

        The walk may refer to `held`, its request: nobody else will write there.
        """
        try:
            while True:
                wait = next(steps)
                if wait is not None or self._turns.is_over():
                    break
        except StopIteration as done:
            answer: list[Part] | None = done.value
            return answer
        slot = self.new_slot()
        self._walk = slot, steps
        if held.obj is self._buffers.shared.obj:
            self._buffers.replace_shared()
        if wait is not None:
            self._hold(wait)
        return slot

    def _hold(self, wait: Wait) -> None:
        """Take no turn before the walk can go on."""

        def go_on() -> None:
            self._is_held = False
            self._throttle()

        self._is_held = True
        wait(go_on)

    def _step(self) -> None:
        assert self._walk is not None
        slot, steps = self._walk
        try:
            while True:
                wait = next(steps)
                if wait is not None:
                    self._hold(wait)
                    return
                if self.is_closed or self._turns.is_over():
                    return
        except StopIteration as done:
            self._walk = None
            slot.complete(done.value or [])

    def complete_in_turns(self, slot: Slot, steps: Walk) -> None:
        """Make an answer that was deferred step by step; other requests may go on meanwhile."""

        def step() -> None:
            if self.is_closed:
                return
            self._turns.begin()
            self._guarded(go_on)

        def go_on() -> None:
            try:
                while True:
                    wait = next(steps)
                    if wait is not None:
                        wait(lambda: self._turns.wait(step))
                        return
                    if self._turns.is_over():
                        self._turns.wait(step)
                        return
            except StopIteration as done:
                slot.complete(done.value or [])

        self._turns.wait(step)

    # --- answering ---

    def new_slot(self) -> Slot:
        """Take the next place in the order of answers, to be completed later."""
        slot = Slot(self)
        self._slots.append(slot)
        return slot

    def on_slot_done(self) -> None:
        """Send every answer whose turn has come."""
        if self.is_closed:
            return
        slots = self._slots
        if not slots[0].is_done:
            return
        while slots and slots[0].is_done:
            self._queue(slots.popleft().parts)
        self._flush()
        self._throttle()

    def _queue(self, parts: list[Part]) -> None:
        for part in parts:
            self._out.append(part)
            self._unsent_bytes += len(part)

    def _throttle(self) -> None:
        """Read on, or stop reading while this client is behind with its answers."""
        if self.is_closed:
            return
        if self._is_reading and not self._slots and not self._out and self._backlog is None:
            return  # Most often: all is answered and sent.
        if self._walk is not None or (self._backlog is not None and not self._must_pause()):
            self._watch(False)
            if not self._is_held:
                self._wait_for_turn()
        else:
            is_paused = self._must_pause()
            self._read(not is_paused)
            if is_paused or self._is_watched:
                # A client that owes us its reading is noticed by the writing.
                self._watch(len(self._slots) >= MAX_REQUESTS_IN_FLIGHT)

    def _watch(self, wanted: bool) -> None:
        """Watch for the client's end in the place of reading, or no longer."""
        if wanted != self._is_watched:
            self._is_watched = wanted
            if wanted:
                self._hang_ups.watch(self._socket.fileno(), self.close)
            else:
                self._hang_ups.unwatch(self._socket.fileno())

    def _flush(self) -> None:
        if self.is_closed or not self._out or self._is_writing:
            return
        self._write(self._on_first_write_blocked)

    def _on_first_write_blocked(self) -> None:
        self._is_writing = True
        self._loop.add_writer(self._socket.fileno(), self._on_writable)

    def _on_writable(self) -> None:
        self.last_active = self._turns.now()
        self._write(lambda: None)
        if not self._out and self._is_writing and not self.is_closed:
            self._is_writing = False
            self._loop.remove_writer(self._socket.fileno())
        self._throttle()

    def _write(self, on_blocked: Callable[[], None]) -> None:
        """Send until everything is out or the socket takes no more."""
        out = self._out
        try:
            while out:
                first = out[0]
                if isinstance(first, FileRegion):
                    sent = self._send_region(first)
                elif len(out) == 1:
                    sent = self._socket.send(first)
                else:
                    sent = self._socket.sendmsg(self._next_buffers())
                self._drop_sent(sent)
        except BlockingIOError:
            on_blocked()
        except OSError:
            self.close()

    def _next_buffers(self) -> list[bytes | bytearray | memoryview]:
        buffers: list[bytes | bytearray | memoryview] = []
        for part in self._out:
            if isinstance(part, FileRegion) or len(buffers) == MAX_PARTS_PER_SEND:
                break
            buffers.append(part)
        return buffers

    def _send_region(self, region: FileRegion) -> int:
        sent = os.sendfile(self._socket.fileno(), region.fileno(), region.position, region.length)
        if sent == 0:
            # The file was truncated under the answer: the frame cannot be completed.
            raise ConnectionAbortedError("the log was truncated while it was being sent")
        return sent

    def _drop_sent(self, sent: int) -> None:
        self._unsent_bytes -= sent
        out = self._out
        while sent > 0:
            first = out[0]
            length = len(first)
            if sent >= length:
                out.popleft()
                sent -= length
            else:
                out[0] = _without_start(first, sent)
                return

    def close(self) -> None:
        """Close the socket and forget every answer that was still to come."""
        if self.is_closed:
            return
        descriptor = self._socket.fileno()
        self._loop.remove_reader(descriptor)
        self._loop.remove_writer(descriptor)
        self._watch(False)
        self.is_closed = True
        self._socket.close()
        self._out.clear()
        self._slots.clear()
        self._partial = None
        self._backlog = None
        self._walk = None
        self._sink.on_closed(self)

    @property
    def is_idle(self) -> bool:
        """Whether no answer is owed: only such a connection may be closed for being idle."""
        return not self._slots and not self._out


def _without_start(part: Part, sent: int) -> Part:
    """Return what is left of a part of which `sent` bytes are gone."""
    if isinstance(part, FileRegion):
        return FileRegion(part.file, part.position + sent, part.length - sent)
    return memoryview(part)[sent:]
