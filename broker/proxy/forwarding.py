"""Takes the requests of clients at one listening port, and gives them to a broker behind."""

import asyncio
import logging
import ssl
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from broker.faults.calls import CallLog
from broker.faults.rule_book import RuleBook
from broker.proxy.answers import Address, limited, moved, named_topics
from broker.proxy.sessions import Sessions
from broker.proxy.upstream import SIZE_BYTES, Upstream
from broker.server.clock import monotonic_seconds
from broker.server.network.connection import Connection
from broker.server.network.dispatch import NO_RESPONSE, Answer, RequestContext, encode
from broker.server.network.later import Making, Steps
from broker.server.network.sending import Part
from broker.server.testing.faulty_handlers import FaultyHandlers, Surroundings
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import (
    DecodeError,
    RequestHeader,
    UnsupportedVersion,
    decode_request,
    decode_response,
    encode_request,
)
from common.kafka.protocol.message import Message
from common.process.bounded_cache import BoundedCache

log = logging.getLogger("millstream.faults")

MAX_NAME_BYTES: Final = 16 << 20
_NAME_BYTES: Final = 200


class Names:
    """The names of topics by their ids, as answers have told them."""

    def __init__(self) -> None:
        self._known: BoundedCache[bytes, str] = BoundedCache(MAX_NAME_BYTES)

    def of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic; None if no answer has told it so far."""
        return self._known.get(bytes(topic_id))

    def note(self, answer: Message) -> None:
        """Keep what an answer tells."""
        for topic_id, name in named_topics(answer):
            self._known.put(topic_id, name, _NAME_BYTES + len(name))


@dataclass(slots=True)
class Counts:
    """What is counted for the metrics."""

    requests: int = 0
    unknown_requests: int = 0
    """Those that were passed on without a look at rules."""
    lost_connections: int = 0


@dataclass(frozen=True, slots=True)
class Common:
    """What all listening ports share."""

    rules: RuleBook
    calls: CallLog
    names: Names
    counts: Counts
    tls: ssl.SSLContext | None
    timestamp_ms: Callable[[], int]
    address_of: Callable[[Connection, Address], Address]
    """Returns where clients reach the proxy for a broker behind."""


class _Exchange:
    """One request and its answer."""

    __slots__ = ("answer", "frame", "header", "listed", "raw", "upstream")

    def __init__(self, header: RequestHeader, frame: bytes, upstream: Upstream) -> None:
        self.header = header
        self.frame = frame
        self.upstream = upstream
        self.listed: Message | None = None
        self.answer: Answer = NO_RESPONSE
        self.raw: bytes | None = None
        """The bytes of `answer`, with their size; None if the client gets none."""


class Forwarding:
    """The frame sink of the connections to one listening port."""

    def __init__(self, common: Common, addresses: Sequence[Address]) -> None:
        """Connections go to the first of the addresses that answers."""
        self._common = common
        self._addresses = addresses
        self._sessions = Sessions()
        self._upstreams: dict[Connection, Upstream] = {}
        around = Surroundings(
            asyncio.get_running_loop(),
            common.timestamp_ms,
            monotonic_seconds,
            common.names.of,
            self._sessions.listed,
            lambda _context, _request: False,
        )
        self._faulty = FaultyHandlers(common.rules, common.calls, around)

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._upstreams)

    def begin(self, connection: Connection) -> None:
        """Open the connection to the broker behind."""
        self._upstreams[connection] = Upstream(
            self._addresses, self._common.tls, partial(self._on_lost, connection)
        )

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._upstreams):
            connection.close()

    def on_frame(self, connection: Connection, frame: memoryview) -> list[Part] | Making | None:
        """Return what makes the answer."""
        self._common.counts.requests += 1
        return self._answer(connection, bytes(frame))

    def on_closed(self, connection: Connection) -> None:
        """Close the connection to the broker behind."""
        self._upstreams.pop(connection).close()

    def _on_lost(self, connection: Connection, error: Exception | None) -> None:
        self._common.counts.lost_connections += 1
        connection.close()

    # --- one request ---

    def _answer(self, connection: Connection, frame: bytes) -> Making:
        upstream = self._upstreams[connection]
        try:
            header, request = decode_request(frame)
        except (UnsupportedVersion, DecodeError):
            self._common.counts.unknown_requests += 1
            yield upstream.room()
            raw = yield upstream.send(frame)
            return [_sized(raw)]
        if header.api_key == ApiKey.SASL_HANDSHAKE and header.api_version == 0:
            # What follows has no header: it cannot be told from requests (KIP-152).
            log.warning("closed: SaslHandshake version 0 of client %s", header.client_id)
            connection.close()
            return None
        exchange = _Exchange(header, frame, upstream)
        exchange.listed = self._sessions.listed(request)
        context = RequestContext(connection, header, header.api_version)
        answer: Any = self._faulty.around(partial(self._forward, exchange))(context, request)
        if isinstance(answer, Generator):
            answer = yield from answer
        if answer is exchange.answer:
            return None if exchange.raw is None else [exchange.raw]
        return encode(header, answer) if isinstance(answer, Message) else None

    def _forward(
        self, exchange: _Exchange, context: RequestContext, request: Message
    ) -> Steps[Answer]:
        """Do the work: the broker behind does it."""
        header = exchange.header
        frame = self._frame(exchange, request)
        has_answer = getattr(request, "acks", None) != 0
        yield exchange.upstream.room()
        raw = yield exchange.upstream.send(frame, has_answer=has_answer)
        if not has_answer:
            return NO_RESPONSE
        exchange.raw = _sized(raw)
        try:
            _, answer = decode_response(header.api_key, header.api_version, raw)
        except DecodeError:  # As ApiVersions in a version that the broker behind does not know.
            return NO_RESPONSE
        exchange.answer = answer
        self._common.names.note(answer)
        self._sessions.note(request, exchange.listed, answer)
        address_of = partial(self._common.address_of, context.connection)
        if limited(answer) or moved(answer, address_of):
            exchange.raw = b"".join(map(bytes, encode(header, answer)))  # type: ignore[arg-type]
        return answer

    def _frame(self, exchange: _Exchange, request: Message) -> bytes:
        """Return the bytes of a request: those that came, unless a rule has taken from it."""
        if self._common.rules.is_empty or decode_request(exchange.frame)[1] == request:
            return exchange.frame
        header = exchange.header
        return encode_request(*header, request)[SIZE_BYTES:]


def _sized(raw: bytes) -> bytes:
    return len(raw).to_bytes(SIZE_BYTES, "big") + raw
