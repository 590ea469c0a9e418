"""One client connection: bytes in, frames to the dispatcher, answers out in request order.

Reading is a synchronous callback of the event loop: it takes what the socket has, hands whole
frames to the sink for one turn (`turns`) and sends all answers with one write. An answer that is
not made at once is a generator (`later`): it gets a `Place`, and later answers queue up behind it,
because Kafka answers in request order.

The connection is in one of six states. "Making" is the place whose generator holds the connection;
"backlog" is the received bytes whose requests are not begun.

    state    making            backlog  continues with
    READING  none              none     bytes from the socket
    MAKING   can go on         any      the turn of its place
    HELD     waits             any      the Later that the place waits for
    BEHIND   none              some     the turn of the connection
    FULL     none              any      answers that become ready, or that the client reads
    CLOSED   none              none     nothing

`_settle` finds the state after every event from what the connection has. Every state but CLOSED may
follow every other, because one event may make answers, take requests from the backlog and fill the
buffers; nothing follows CLOSED. What the table says of each state is tested after every turn.

Invariants:
- answers leave in the order of their requests;
- a turn ends after TURN_SECONDS and the request, or the step of a generator, begun by then;
- at most MAX_REQUESTS_IN_FLIGHT requests wait for an answer, and while more than MAX_UNSENT_BYTES
  wait to be sent no request is begun: a client that never reads its answers fills its own buffers;
- a closed connection is noticed whether or not it is read from, and its answers are dropped;
- the receive buffer grows with the bytes that arrive, never with the announced length.
"""

import logging
import socket
import struct
from collections import deque
from enum import IntEnum, auto
from functools import partial
from typing import NamedTuple, Protocol

from broker.security.principal import ANONYMOUS
from broker.server.distribution import Distribution
from broker.server.login.tls_socket import TlsSocket
from broker.server.network.buffers import PartialFrame
from broker.server.network.later import Later, Making, Place, waiting
from broker.server.network.sending import Part, unsent_of
from broker.server.network.turns import TURN_SECONDS, Shared

log = logging.getLogger("millstream.connection")

MAX_REQUESTS_IN_FLIGHT = 256
MAX_UNSENT_BYTES = 4 * 1024 * 1024
MIN_FRAME_BYTES = 8  # api key, version, correlation id

_read_size = struct.Struct(">i").unpack_from


class State(IntEnum):
    """What comes next. An IntEnum, because the hash of another Enum is a Python call."""

    READING = auto()
    MAKING = auto()
    HELD = auto()
    BEHIND = auto()
    FULL = auto()
    CLOSED = auto()


class Peer(NamedTuple):
    """The principal and address of the other end, and the listener that accepted it."""

    host: str
    listener_name: str
    principal: str = ANONYMOUS
    is_by_token: bool = False
    """True if a delegation token stands for the principal."""
    software_name: str = "unknown"
    """The name of the client's library, if its ApiVersions request has one (KIP-511)."""
    software_version: str = "unknown"


class FrameSink(Protocol):
    """The receiver of the frames of a connection."""

    def on_frame(self, connection: "Connection", frame: memoryview) -> list[Part] | Making | None:
        """Return the answer, or the generator that makes it; None if the client wants none."""
        ...

    def on_closed(self, connection: "Connection") -> None:
        """Handle the end of the connection."""
        ...


class Connection:
    """Owns one accepted socket until it is closed."""

    __slots__ = (
        "_backlog",
        "_buffers",
        "_hang_ups",
        "_is_in_turn",
        "_is_queued",
        "_is_reading",
        "_is_watched",
        "_is_writing",
        "_loop",
        "_making",
        "_partial",
        "_sink",
        "_stalled",
        "_turns",
        "_unsent",
        "last_active",
        "max_frame_bytes",
        "min_frame_bytes",
        "peer",
        "places",
        "socket",
        "state",
    )

    def __init__(
        self,
        shared: Shared,
        accepted: socket.socket | TlsSocket,
        *,
        sink: FrameSink,
        max_frame_bytes: int,
        peer: Peer,
    ) -> None:
        self._turns, self._buffers, self._hang_ups = shared
        self._loop = self._turns.loop
        self.socket = accepted
        self._sink = sink
        self.max_frame_bytes = max_frame_bytes
        self.min_frame_bytes = MIN_FRAME_BYTES  # less while frames are no requests
        self._partial: PartialFrame | None = None
        self._backlog: memoryview | None = None
        self._making: Place | None = None
        self.places: deque[Place] = deque()
        """The places of answers that are not sent, except those at the front, in `_unsent`."""
        self._unsent = unsent_of(accepted)
        self._is_in_turn = False
        self._is_queued = False  # for a turn
        self._is_reading = False
        self._is_watched = False
        self._is_writing = False
        self._stalled: tuple[Distribution | None, float] = None, 0.0  # the write under way
        self.last_active = self._turns.now()
        self.peer = peer
        self.state = State.READING
        if isinstance(accepted, TlsSocket):
            accepted.on_pending = self.on_readable
        self._read(True)

    @property
    def is_closed(self) -> bool:
        """True if either side has closed the connection."""
        return self.state is State.CLOSED

    def peer_port(self) -> int:
        """Return the port of the other end; 0 if it has just closed the connection."""
        try:
            return int(self.socket.getpeername()[1])
        except OSError:
            return 0

    @property
    def is_idle(self) -> bool:
        """True if no answer is owed: only such a connection may be closed for being idle."""
        return not self.places and not self._unsent.parts

    # --- reading ---

    def on_readable(self) -> None:
        """Answer the requests that the socket has, for one turn."""
        if self.state is not State.READING:
            self._read(False)
            # While the connection is held, only this shows that the client has closed it.
            self._watch(self.state is State.HELD)
            return
        self.last_active = self._turns.mark = now = self._turns.now()
        self._turns.ends = now + TURN_SECONDS
        self._is_in_turn = True
        try:
            if self._partial is None:
                self._receive()
            else:
                self._receive_partial(self._partial)
        except Exception as error:  # noqa: BLE001 - the outermost edge of a request
            self._fail(error)
        self._is_in_turn = False
        if self._unsent.parts:
            self._flush()
        if self.places or self._unsent.parts or self._backlog is not None:
            self._settle()

    def _fail(self, error: Exception) -> None:
        """Close the connection after a bug in the code; the node goes on."""
        log.error("request failed client_host=%s", self.peer.host, exc_info=error)
        self.close()

    def _receive(self) -> None:
        """Read once into the shared buffer, and handle the bytes."""
        shared = self._buffers.shared
        try:
            count = self.socket.recv_into(shared)
        except BlockingIOError:
            return
        except OSError:  # reset, or lost: keep-alives are not answered
            count = 0
        size = count - 4
        if self.min_frame_bytes <= size <= self.max_frame_bytes and size == _read_size(shared)[0]:
            self._begin(shared[4:count])  # The most frequent case: one whole request.
        elif count:
            self._consume(shared[:count])
        else:
            self.close()

    def _receive_partial(self, partial: PartialFrame) -> None:
        """Read more of an unfinished frame; when it is whole, and time is left, read on."""
        with partial.writable(self._buffers) as target:
            try:
                count = self.socket.recv_into(target)
            except BlockingIOError:
                return
            except OSError:
                count = 0
        if not count:
            self.close()
            return
        partial.filled_bytes += count
        if partial.total_bytes == 0 and partial.filled_bytes >= 4:
            size = _read_size(partial.buffer)[0]
            if not self._is_size_allowed(size):
                return
            partial.total_bytes = 4 + size
        if partial.filled_bytes != partial.total_bytes:
            return
        self._partial = None
        self._begin(memoryview(partial.buffer)[4 : partial.total_bytes])
        if self._making is None:
            self._buffers.give_back(partial.buffer)
            if not (self.is_closed or self._is_full() or self._turns.is_over()):
                self._receive()

    def _consume(self, received: memoryview) -> None:
        """Handle whole frames; keep the rest as a partial frame, or as backlog for another turn."""
        position, count = 0, len(received)
        while count - position >= 4:
            size = _read_size(received, position)[0]
            if not self._is_size_allowed(size):
                return
            end = position + 4 + size
            if end > count:
                break
            self._begin(received[position + 4 : end])
            position = end
            if self.is_closed:
                return
            if position < count and (
                self._making is not None or self._is_full() or self._turns.is_over()
            ):
                self._set_aside(received[position:])
                return
        if position < count:
            rest = received[position:]
            total = 4 + _read_size(rest)[0] if len(rest) >= 4 else 0
            self._partial = PartialFrame(self._buffers, rest, total)

    def _set_aside(self, rest: memoryview) -> None:
        """Copy what is read and not begun; other connections need the shared buffer."""
        self._backlog = memoryview(bytes(rest)) if rest.obj is self._buffers.shared.obj else rest

    def _is_size_allowed(self, size: int) -> bool:
        if self.min_frame_bytes <= size <= self.max_frame_bytes:
            return True
        log.warning("closed: frame size out of range size=%d client=%s", size, self.peer.host)
        self.close()
        return False

    # --- making answers ---

    def _begin(self, frame: memoryview) -> None:
        """Answer one request, or begin to."""
        answer = self._sink.on_frame(self, frame)
        if answer is None:
            return
        if not isinstance(answer, list):
            self._make(answer, frame)
        elif self.places:
            place = Place(None)
            place.parts, place.is_done = answer, True
            self.places.append(place)
        else:
            self._unsent.add(answer)

    def _make(self, steps: Making, frame: memoryview) -> None:
        """Begin with an answer that may take more than this turn."""
        place = Place(steps, self._turns.take_timing())
        self.places.append(place)
        self._run(place)
        if not place.is_done and self.state is not State.CLOSED and place.holds:
            self._making = place
            if frame.obj is self._buffers.shared.obj:
                self._buffers.replace_shared()

    def _run(self, place: Place) -> None:
        """Run the generator of a place until it is done, waits, or its turn is over."""
        steps, turns = place.steps, self._turns
        assert steps is not None
        awaited, place.awaited = place.awaited, None
        value = None if awaited is None else awaited.value
        try:
            while True:
                awaited = steps.send(value)
                value = None
                if self.state is State.CLOSED:  # The handler closed it, and its answer is not sent.
                    if awaited is not None:
                        awaited.abandon()
                    return
                if awaited is None:
                    if turns.is_over():
                        turns.wait(partial(self._take_turn, place))
                        return
                elif awaited.is_done:
                    value = awaited.value
                else:
                    place.awaited = awaited
                    place.note_wait(turns.now)
                    awaited.when_done(partial(self._go_on, place))
                    return
        except StopIteration as done:
            place.finish(done.value or [], turns.now)
        if self.places and self.places[0] is place:
            self._take_answers()

    def mute(self, until: Later) -> None:
        """Begin no request before `until`, which holds; the answers made so far are sent."""
        if self.state is State.CLOSED:
            until.abandon()
            return
        place = Place(waiting(until))
        self.places.append(place)
        self._run(place)
        self._making = self._making or place

    def _take_turn(self, place: Place) -> None:
        """Go on with a place in a turn of its own."""
        self._turns.begin()
        self._go_on(place)

    def _go_on(self, place: Place) -> None:
        """Go on with a place: its turn has come, or the event it waited for has happened."""
        if self.state is State.CLOSED:
            return
        try:
            self._run(place)
        except Exception as error:  # noqa: BLE001 - the outermost edge of a request
            self._fail(error)
        if place is self._making and (place.is_done or not place.holds):
            held = (each for each in self.places if each.awaited is not None and each.holds)
            self._making = next(held, None)
        if not self._is_in_turn:
            self._settle()

    def _take_answers(self) -> None:
        """Send every answer whose turn has come."""
        places = self.places
        while places and places[0].is_done:
            place = places.popleft()
            self._unsent.add(place.parts)
            self._turns.end(place.timing)

    def _on_turn(self) -> None:
        """Begin the requests of the backlog."""
        self._is_queued = False
        if self.state is State.BEHIND:
            self._turns.begin()
            assert self._backlog is not None
            backlog, self._backlog = self._backlog, None
            self._is_in_turn = True
            try:
                self._consume(backlog)
            except Exception as error:  # noqa: BLE001 - the outermost edge of a request
                self._fail(error)
            self._is_in_turn = False
            self._settle()

    # --- the state ---

    def _is_full(self) -> bool:
        """Return True if too many answers are owed; send some first, which may close it."""
        if self._unsent.size_bytes > MAX_UNSENT_BYTES:
            self._flush()
        return (
            self._unsent.size_bytes > MAX_UNSENT_BYTES or len(self.places) >= MAX_REQUESTS_IN_FLIGHT
        )

    def _settle(self) -> None:
        """Send the answers that are made, and find the state that follows."""
        unsent = self._unsent
        if unsent.parts:
            self._flush()
        if self.state is State.CLOSED:
            return
        making = self._making
        if making is not None:
            state = State.MAKING if making.awaited is None else State.HELD
        elif unsent.size_bytes > MAX_UNSENT_BYTES or len(self.places) >= MAX_REQUESTS_IN_FLIGHT:
            state = State.FULL
        else:
            state = State.READING if self._backlog is None else State.BEHIND
        if state is not self.state:
            self._enter(state)
        if state is State.BEHIND and not self._is_queued:
            self._is_queued = True
            self._turns.wait(self._on_turn)
        elif state is State.FULL:
            # While answers wait to be sent, writing shows that the client has closed.
            self._watch(len(self.places) >= MAX_REQUESTS_IN_FLIGHT)

    def _enter(self, state: State) -> None:
        assert self.state is not State.CLOSED, state
        self.state = state
        if state is State.READING:
            self._read(True)
        elif state is State.FULL:
            self._read(False)
        # While it is held and not read from, only this shows that the client has closed.
        self._watch(state is State.HELD and not self._is_reading)

    def _read(self, wanted: bool) -> None:
        if wanted != self._is_reading:
            self._is_reading = wanted
            if wanted:
                self._loop.add_reader(self.socket.fileno(), self.on_readable)
                if isinstance(self.socket, TlsSocket):
                    self.socket.look_for_pending()
            else:
                self._loop.remove_reader(self.socket.fileno())

    def _watch(self, wanted: bool) -> None:
        """Begin to watch for the client's end instead of reading, or stop that."""
        if wanted != self._is_watched:
            self._is_watched = wanted
            if wanted:
                self._hang_ups.watch(self.socket.fileno(), self.close)
            else:
                self._hang_ups.unwatch(self.socket.fileno())

    # --- sending ---

    def _flush(self) -> None:
        """Send what is there, unless earlier bytes still wait for the socket."""
        if not self._is_writing:
            try:
                if not self._unsent.send():
                    self._is_writing = True
                    self._stalled = self._turns.sends, self._turns.mark
                    self._loop.add_writer(self.socket.fileno(), self._on_writable)
            except OSError:
                self.close()

    def _on_writable(self) -> None:
        self.last_active = self._turns.now()
        try:
            if self._unsent.send():
                self._is_writing = False
                self._loop.remove_writer(self.socket.fileno())
                self._turns.count_write(*self._stalled)
        except OSError:
            self.close()
        self._settle()

    def close(self) -> None:
        """Close the socket and drop every answer that is owed."""
        if self.is_closed:
            return
        descriptor = self.socket.fileno()
        self._loop.remove_reader(descriptor)
        self._loop.remove_writer(descriptor)
        self._watch(False)
        self.state = State.CLOSED
        self.socket.close()
        self._unsent.clear()
        self._partial = None
        self._backlog = None
        self._making = None
        places, self.places = self.places, deque()
        for place in places:
            if place.awaited is not None:
                place.awaited.abandon()
            place.steps = None
        self._sink.on_closed(self)
