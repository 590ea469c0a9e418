"""Requests to one other node over one connection, which is opened for the first request.

If the other node's listener requires it, a new connection begins with a TLS handshake, and it
authenticates by SASL before the first request (`common/credentials/sasl_client.py`).

A connection begins with ApiVersions, as every Kafka client's does: the versions that the other node
serves decide the version of each request (KIP-35), so that nodes of two releases understand each
other while a cluster is upgraded. A request that the other node serves in no version fails like a
request whose connection broke.

Answers come in the order of the requests. With `lends_answers` the record batches of one are views
of the receive buffer, valid until `on_answer` returns or, when that has called `pause`, until
`resume`.

A request that is not answered in time breaks the connection, which may be half open: a new
connection reaches the node sooner. When a connection breaks, every request that waits on it fails.
The next request opens a new connection: at once the first time, later after a pause that begins at
the last failure and doubles up to MAX_BACKOFF_MS, so that a node that is down costs almost nothing.
A sign of life from the node (`wake`) ends the pause. A node that got no request for longer than the
pause is tried at once: it may be back, and the request may be for a vote.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.config.security_config import ClientSecurity
from broker.server.login.logins import LoginExchange
from broker.server.login.tls_contexts import TlsContexts
from broker.server.login.tls_socket import Shaken, TlsHandshake, TlsSocket
from broker.server.network.answer_buffer import AnswerBuffer, FrameSizeError
from broker.server.network.dialing import Dial, Dialled
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import DecodeError, decode_response, encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from common.kafka.protocol.wire import EncodeError

log = logging.getLogger("millstream.quorum.connection")

MAX_BACKOFF_MS = 500
GREETING_VERSION = 0
"""The version of ApiVersions: every node serves it, and its answer has all that is needed."""

Served = dict[int, tuple[int, int]]
"""The lowest and the highest version of each API."""
OnAnswer = Callable[[Message | None], None]
"""Gets the answer, or None when the connection broke before there was one."""


class ClientSettings(NamedTuple):
    """How a node connects to one listener of the others."""

    client_id: str
    max_frame_bytes: int
    connect_timeout_ms: int
    retry_backoff_ms: int
    security: ClientSecurity = ClientSecurity()
    tls: TlsContexts | None = None
    """Shared by all connections; None if `security` has no TLS."""
    traffic: "ChannelTraffic | None" = None
    """Where the requests and answers of these connections are counted, if they are."""


class ChannelTraffic:
    """Counts what was sent and received over connections to other nodes."""

    __slots__ = ("bytes_in", "bytes_out", "requests", "responses")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.requests = 0
        self.responses = 0


def client_settings(
    config: BrokerConfig, security: ClientSecurity, tls: TlsContexts | None = None
) -> ClientSettings:
    """Return the settings for one kind of listener."""
    return ClientSettings(
        f"millstream-node-{config.node_id}",
        config.max_frame_bytes,
        connect_timeout_ms=config.quorum.request_timeout_ms,
        retry_backoff_ms=config.quorum.retry_backoff_ms,
        security=security,
        tls=tls,
    )


class _Waiting:
    """A request that has no answer yet; `frame` is None once it was handed to the socket."""

    __slots__ = (
        "api_key",
        "api_version",
        "correlation_id",
        "frame",
        "on_answer",
        "request",
        "timer",
    )

    def __init__(self, request: Message, api_version: int, on_answer: OnAnswer) -> None:
        self.request = request
        self.api_key = request.__api_key__
        self.api_version = api_version
        self.on_answer = on_answer
        self.correlation_id = 0
        self.frame: bytes | None = None
        self.timer: asyncio.TimerHandle | None = None


class ClientConnection:
    """A connection to another node.

    At most one of `_dial`, `_handshake`, `_pause` and `_socket` is set.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: tuple[str, int],
        settings: ClientSettings,
        on_refused: Callable[[], None] = lambda: None,
        *,
        lends_answers: bool = False,
    ) -> None:
        self.address = address
        self._loop = loop
        self._settings = settings
        self._on_refused = on_refused
        self._lends_answers = lends_answers
        self._waiting: deque[_Waiting] = deque()
        self._dial: Dial | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._handshake: TlsHandshake | None = None
        self._login: LoginExchange | None = None
        self._socket: socket.socket | TlsSocket | None = None
        self._received = AnswerBuffer(settings.max_frame_bytes)
        self._is_paused = False
        self._is_writing = False
        self._unsent = bytearray()
        self._served: Served | None = None
        """The versions of each API that the other node serves; None until it has answered."""
        self._failure_count = 0
        self._failed_at_s = 0.0
        self._next_correlation_id = 0

    def ask(self, request: Message, api_version: int, timeout_ms: int, on_answer: OnAnswer) -> None:
        """Send a request, in this version or the highest below it that the other node serves.

        `on_answer` is called once, later, unless `close` is called first.
        """
        waiting = self._prepare(request, api_version, on_answer)
        waiting.timer = self._loop.call_later(timeout_ms / 1000, self._on_timeout)
        self._waiting.append(waiting)
        if self._served is not None:
            self._send_waiting()
        elif self._is_apart:
            self._connect_after_pause()

    @property
    def _is_apart(self) -> bool:
        """True if there is no connection, and none is being opened."""
        parts = (self._socket, self._dial, self._handshake, self._pause)
        return all(part is None for part in parts)

    def _prepare(self, request: Message, api_version: int, on_answer: OnAnswer) -> _Waiting:
        waiting = _Waiting(request, api_version, on_answer)
        waiting.correlation_id = self._next_correlation_id
        self._next_correlation_id = (self._next_correlation_id + 1) & 0x7FFFFFFF
        waiting.frame = self._encode(waiting)
        return waiting

    def _encode(self, waiting: _Waiting) -> bytes:
        return encode_request(
            waiting.api_key,
            waiting.api_version,
            waiting.correlation_id,
            self._settings.client_id,
            waiting.request,
        )

    def wake(self) -> None:
        """End the pause before the next attempt to connect: the other node is alive."""
        self._failure_count = 0
        if self._pause is not None:
            self._pause.cancel()
            self._connect()

    def close(self) -> None:
        """Drop the connection and all waiting requests; no callback is called."""
        self._disconnect()
        for waiting in self._waiting:
            _cancel(waiting.timer)
        self._waiting.clear()

    # Connecting.

    def _connect_after_pause(self) -> None:
        pause_ms = compute_pause_ms(
            self._failure_count,
            self._settings.retry_backoff_ms,
            since_failure_ms=int((self._loop.time() - self._failed_at_s) * 1000),
        )
        if pause_ms:
            self._pause = self._loop.call_later(pause_ms / 1000, self._connect)
        else:
            self._connect()

    def _connect(self) -> None:
        self._pause = None
        timeout_ms = self._settings.connect_timeout_ms
        self._dial = Dial(self._loop, self.address, timeout_ms, self._on_dialled)

    def _on_dialled(self, result: Dialled) -> None:
        self._dial = None
        if isinstance(result, OSError):
            self._fail_to_connect(result)
            return
        # Only an answer resets it: a port that accepts and closes is no better than a refusal.
        self._failure_count += 1
        if self._settings.tls is None:
            self._begin(result)
        else:
            wrapped = self._settings.tls.current().wrap_socket(
                result, server_hostname=self.address[0], do_handshake_on_connect=False
            )
            seconds = self._settings.connect_timeout_ms / 1000
            self._handshake = TlsHandshake(self._loop, wrapped, self._on_shaken, seconds)

    def _on_shaken(self, result: Shaken) -> None:
        self._handshake = None
        if isinstance(result, OSError):
            log.warning("no TLS connection to=%s:%d error=%s", *self.address, result)
            self._break()
        else:
            result.on_pending = self._on_readable
            self._begin(result)

    def _fail_to_connect(self, error: OSError) -> None:
        if self._failure_count == 0:
            log.info("no connection to=%s:%d error=%s", *self.address, error)
        self._failure_count += 1
        if isinstance(error, ConnectionRefusedError):
            self._on_refused()
        self._break()

    def _begin(self, connected: socket.socket | TlsSocket) -> None:
        self._socket = connected
        self._loop.add_reader(connected.fileno(), self._on_readable)
        self._greet()

    def _greet(self) -> None:
        """Send ApiVersions first; the time limits of the waiting requests apply to it too."""
        self._ask_first(ApiVersionsRequest(), GREETING_VERSION, self._on_greeted)

    def _ask_first(self, request: Message, api_version: int, on_answer: OnAnswer) -> None:
        """Send a request before all that wait."""
        first = self._prepare(request, api_version, on_answer)
        assert first.frame is not None
        self._put(first.frame)
        first.frame = None
        self._waiting.appendleft(first)
        self._flush()

    def _put(self, frame: bytes) -> None:
        self._unsent += frame
        traffic = self._settings.traffic
        if traffic is not None:
            traffic.requests += 1
            traffic.bytes_out += len(frame)

    def _on_greeted(self, answer: Message | None) -> None:
        if answer is None:
            return
        assert isinstance(answer, ApiVersionsResponse), answer
        if answer.error_code:
            self._damaged(f"ApiVersions error {answer.error_code}")
            return
        served = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
        if self._settings.security.protocol.uses_sasl:
            self._authenticate(served)
        else:
            self._serve(served)

    def _serve(self, served: Served) -> None:
        self._served = served
        self._send_waiting()

    def _authenticate(self, served: Served) -> None:
        """Authenticate with the other node, and then send the requests."""

        def on_end(failure: str) -> None:
            self._login = None
            if failure:
                self._damaged(failure)
            else:
                self._serve(served)

        self._login = LoginExchange(
            self._loop, self._settings.security, self.address[0], self._ask_first, on_end
        )
        self._login.begin()

    def _disconnect(self) -> None:
        _cancel(self._pause)
        self._pause = None
        if self._dial is not None:
            self._dial.cancel()
            self._dial = None
        if self._login is not None:
            self._login.cancel()
            self._login = None
        if self._handshake is not None:
            self._handshake.cancel()
            self._handshake = None
        if self._socket is not None:
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
            self._socket.close()
            self._socket = None
        self._is_writing = False
        self._served = None
        self._received.clear()
        self._is_paused = False
        self._unsent.clear()

    def _break(self) -> None:
        """Fail all waiting requests; a caller that asks again at once opens a new connection."""
        self._failed_at_s = self._loop.time()
        self._disconnect()
        failed, self._waiting = self._waiting, deque()
        for waiting in failed:
            _cancel(waiting.timer)
            waiting.on_answer(None)

    def _on_timeout(self) -> None:
        log.info("no answer in time from=%s:%d", *self.address)
        self._failure_count += 1
        self._break()

    # Sending.

    def _send_waiting(self) -> None:
        not_served = []
        for waiting in self._waiting:
            if waiting.frame is None:
                continue
            frame, waiting.frame = self._frame_as_served(waiting), None
            if frame is None:
                not_served.append(waiting)
            else:
                self._put(frame)
        for waiting in not_served:
            self._waiting.remove(waiting)
            _cancel(waiting.timer)
            name = ApiKey(waiting.api_key).name
            log.warning("not served there: request=%s to=%s:%d", name, *self.address)
            self._loop.call_soon(waiting.on_answer, None)
        self._flush()

    def _frame_as_served(self, waiting: _Waiting) -> bytes | None:
        """Return a request's bytes in a version that both nodes know; None when there is none."""
        assert self._served is not None
        lowest, highest = self._served.get(waiting.api_key, (0, -1))
        version = min(waiting.api_version, highest)
        if version < max(lowest, API_VERSION_RANGES[ApiKey(waiting.api_key)].advertised_min):
            return None
        if version == waiting.api_version:
            return waiting.frame
        waiting.api_version = version
        try:
            return self._encode(waiting)
        except EncodeError:
            # The request has a field that this version lacks.
            return None

    def _flush(self) -> None:
        assert self._socket is not None
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent)]
            self._write_later(False)
        except BlockingIOError:
            self._write_later(True)
        except OSError:
            # Not within `ask`: its caller does not expect a failure before `ask` returns.
            self._loop.call_soon(self._break_socket, self._socket)

    def _write_later(self, wanted: bool) -> None:
        # Only when it changes: each registration with the loop is a system call.
        if wanted == self._is_writing:
            return
        assert self._socket is not None
        self._is_writing = wanted
        if wanted:
            self._loop.add_writer(self._socket.fileno(), self._flush)
        else:
            self._loop.remove_writer(self._socket.fileno())

    def _break_socket(self, broken: socket.socket | TlsSocket) -> None:
        if self._socket is broken:
            self._break()

    # Receiving.

    def pause(self) -> None:
        """Stop receiving: the caller still reads the answer."""
        self._is_paused = True
        if self._socket is not None:
            self._loop.remove_reader(self._socket.fileno())

    def resume(self) -> None:
        """Go on after `pause`, first with the answers that are already received."""
        if not self._is_paused:
            return
        self._is_paused = False
        if self._socket is not None:
            self._loop.add_reader(self._socket.fileno(), self._on_readable)
            if isinstance(self._socket, TlsSocket):
                self._loop.call_soon(self._on_readable)
            self._take_frames()

    def _on_readable(self) -> None:
        if self._socket is None or self._is_paused:
            return  # A notice of bytes that TLS holds, after the socket was closed or paused.
        try:
            count = self._received.receive(self._socket)
        except BlockingIOError:
            return
        except FrameSizeError as error:
            self._damaged(str(error))
            return
        except OSError:
            count = 0
        if not count:
            self._break()
            return
        self._take_frames()

    def _take_frames(self) -> None:
        """Hand out every whole answer that was received."""
        receiving = self._socket
        try:
            while self._socket is receiving and not self._is_paused:
                frame = self._received.next_frame()
                if frame is None:
                    return
                self._take_answer(frame if self._lends_answers else bytes(frame))
        except (DecodeError, FrameSizeError) as error:
            self._damaged(str(error))

    def _take_answer(self, frame: memoryview | bytes) -> None:
        if not self._waiting:
            raise DecodeError("an answer to nothing")
        waiting = self._waiting[0]
        correlation_id, message = decode_response(waiting.api_key, waiting.api_version, frame)
        if correlation_id != waiting.correlation_id:
            raise DecodeError(f"answer {correlation_id} instead of {waiting.correlation_id}")
        self._failure_count = 0
        traffic = self._settings.traffic
        if traffic is not None:
            traffic.responses += 1
            traffic.bytes_in += 4 + len(frame)
        self._waiting.popleft()
        _cancel(waiting.timer)
        waiting.on_answer(message)

    def _damaged(self, why: str) -> None:
        log.warning("connection closed: %s from=%s:%d", why, *self.address)
        self._failure_count += 1
        self._break()


def compute_pause_ms(failure_count: int, retry_backoff_ms: int, *, since_failure_ms: int) -> int:
    """Return how long to wait before connecting, from the number and time of the last failures."""
    if failure_count == 0:
        return 0
    pause_ms = min(retry_backoff_ms << min(failure_count - 1, 16), MAX_BACKOFF_MS)
    return max(0, pause_ms - since_failure_ms)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
