"""From a frame to its handler and back to bytes.

A handler takes the request's context and the decoded message, and returns the response, `LATER`
when the context will be answered later, or `NO_RESPONSE` (Produce with acks=0). One that walks
through what may be very much is a generator: it yields every so often, returns the same, and its
answer is encoded in pieces too, so that no request keeps the loop from the others; then both the
answer and the request are let go of step by step (`letting_go`). A handler is made at the first
request of its API.
"""

import logging
from collections import Counter
from collections.abc import Callable, Generator
from enum import Enum
from typing import Any, cast

from broker.errors import KafkaError
from broker.protocol.api_keys import ApiKey
from broker.protocol.framing import (
    DecodeError,
    RequestHeader,
    UnsupportedVersion,
    begin_request,
    encode_response,
    encode_response_in_pieces,
    response_class,
)
from broker.protocol.message import Message
from broker.protocol.wire import EncodeError
from broker.server.network.connection import Connection, Part, Slot, Walk
from broker.server.network.letting_go import has_more_than, let_go, let_go_of_begun
from broker.server.network.walks import ITEMS_PER_STEP, Steps

log = logging.getLogger("millrace.dispatch")


class Deferred(Enum):
    """What a handler returns when it has no response to hand back."""

    LATER = "the context will be answered later"
    NO_RESPONSE = "the client asked for no response"


STEPS_OF_A_SHORT_WALK = 8
LARGE_BYTES = 64 * 1024
"""What a message of fewer was made of is freed within a step."""

LATER = Deferred.LATER
NO_RESPONSE = Deferred.NO_RESPONSE

Answer = Message | Deferred
AnswerWalk = Steps[Answer]
Handler = Callable[["RequestContext", Any], Answer | AnswerWalk]


encode = cast(Callable[[RequestHeader, Message], list[Part]], encode_response)
"""Encodes an answer; the only regions a response ever holds are the log's."""


class RequestContext:
    """One request on its way: whom to answer, and in which version."""

    __slots__ = ("_slot", "connection", "header")

    def __init__(self, connection: Connection, header: RequestHeader) -> None:
        self.connection = connection
        self.header = header
        self._slot: Slot | None = None

    @property
    def api_version(self) -> int:
        """The version the client speaks."""
        return self.header.api_version

    def defer(self) -> Deferred:
        """Take the place of this answer in the connection's order and answer later."""
        self._slot = self.connection.new_slot()
        return LATER

    def reply(self, answer: Message | AnswerWalk) -> None:
        """Answer a deferred request. A client that is gone is no error.

        An answer that its version cannot say is a bug, and costs this client its connection: who
        replies answers others too, and goes on.
        """
        assert self._slot is not None, "only a deferred request is answered by reply()"
        if self.connection.is_closed:
            return
        if isinstance(answer, Message):
            try:
                parts = encode(self.header, answer)
            except EncodeError:
                log.exception("no answer client_host=%s", self.connection.peer.host)
                self.connection.close()
            else:
                self._slot.complete(parts)
        else:
            walk = _answered(self.header, answer, is_large=True)
            self.connection.complete_in_turns(self._slot, walk)

    def reply_in_turns(self, answer: Message) -> None:
        """Answer a deferred request with what may be very much, and is encoded in pieces then."""
        if has_more_than(ITEMS_PER_STEP, answer):
            assert self._slot is not None, "only a deferred request is answered by a reply"
            if not self.connection.is_closed:
                self.connection.complete_in_turns(self._slot, _encode(self.header, answer))
        else:
            self.reply(answer)


class Later:
    """An answer that may come at once or later: whoever has it calls `reply`, in any order.

    The handler returns `answer()`: the response when it is there already, else the promise of one.
    """

    __slots__ = ("_context", "_is_deferred", "_response")

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._response: Message | AnswerWalk | None = None
        self._is_deferred = False

    def reply(self, response: Message | AnswerWalk) -> None:
        """Give the answer; once."""
        assert self._response is None, "a request is answered once"
        self._response = response
        if not self._is_deferred:
            return
        if isinstance(response, Message):
            self._context.reply_in_turns(response)
        else:
            self._context.reply(response)

    def answer(self) -> Answer | AnswerWalk:
        """Return what the handler returns."""
        if self._response is not None:
            return self._response
        self._is_deferred = True
        return self._context.defer()


class Dispatcher:
    """The frame sink of every client connection of a broker."""

    def __init__(
        self,
        make_handler: Callable[[int], Handler | None],
        *,
        request_counts: Counter[int],
        on_queued: Callable[[Connection], None],
        on_closed: Callable[[Connection], None],
    ) -> None:
        self._make_handler = make_handler
        self._request_counts = request_counts
        self._on_queued = on_queued
        self._on_closed = on_closed
        self._handlers: dict[int, Handler] = {}

    def on_frame(  # noqa: PLR0911 - one for each kind of answer; a call more would show
        self, connection: Connection, frame: memoryview
    ) -> list[Part] | Slot | None:
        """Decode one request, run its handler, encode its answer."""
        try:
            header, message = begin_request(frame)
        except UnsupportedVersion as refused:
            return self._answer_unsupported(connection, refused.header)
        except DecodeError as error:
            close_malformed(connection, error)
            return None
        handler = self._handlers.get(header.api_key) or self._find_handler(header.api_key)
        context = RequestContext(connection, header)
        if handler is None:
            return self._answer_unsupported(connection, header)
        self._request_counts[header.api_key] += 1
        if header.api_key != ApiKey.FETCH and not connection.is_idle:
            self._on_queued(connection)
        if not isinstance(message, Message):
            walk = decoded(connection, message, lambda whole: self._walk(handler, context, whole))
            return connection.walk(walk, held=frame)
        try:
            answer = handler(context, message)
        except KafkaError as error:
            answer = error_response(header, error)
        if isinstance(answer, Message):
            return encode(header, answer)
        if isinstance(answer, Deferred):
            return None
        request = message if len(frame) > LARGE_BYTES else None
        return connection.walk(_answered(header, answer, request), held=frame)

    def _walk(self, handler: Handler, context: RequestContext, message: Message) -> Walk:
        """Go on with a large request, now that it is whole."""
        try:
            answer = handler(context, message)
        except KafkaError as error:
            answer = error_response(context.header, error)
        if isinstance(answer, Message | Deferred):
            answer = _at_once(answer)
        return (yield from _answered(context.header, answer, message, is_large=True))

    def on_closed(self, connection: Connection) -> None:
        """Forget everything that waits on a connection that is gone."""
        self._on_closed(connection)

    def _find_handler(self, api_key: int) -> Handler | None:
        handler = self._make_handler(api_key)
        if handler is not None:
            self._handlers[api_key] = handler
        return handler

    def _answer_unsupported(
        self, connection: Connection, header: RequestHeader
    ) -> list[Part] | None:
        """ApiVersions answers in version 0 with error 35 (KIP-511); others lose the connection."""
        if header.api_key != ApiKey.API_VERSIONS:
            log.warning(
                "closed: unsupported request api_key=%d api_version=%d client=%s",
                header.api_key,
                header.api_version,
                connection.peer.host,
            )
            connection.close()
            return None
        handler = self._find_handler(ApiKey.API_VERSIONS)
        assert handler is not None
        old = RequestHeader(header.api_key, 0, header.correlation_id, header.client_id)
        context = RequestContext(connection, old)
        response = handler(context, None)
        assert isinstance(response, Message)
        return encode(old, response)


def decoded(
    connection: Connection,
    pieces: Generator[None, None, Message],
    handle: Callable[[Message], Walk],
) -> Walk:
    """Decode a large request in pieces, then go on with it."""
    try:
        message = yield from pieces
    except DecodeError as error:
        refused = error
    else:
        return (yield from handle(message))
    yield from let_go_of_begun(refused)
    close_malformed(connection, refused)
    return None


def _answered(
    header: RequestHeader,
    walk: AnswerWalk,
    request: Message | None = None,
    *,
    is_large: bool = False,
) -> Walk:
    """Go through a handler's walk, then encode its answer, in pieces after a long one."""
    steps = 0
    answer: Answer
    try:
        while True:
            wait = next(walk)
            steps += 1
            yield wait
    except StopIteration as done:
        answer = done.value
    except KafkaError as error:
        answer = error_response(header, error)
    if answer is LATER:
        return None  # The request may be needed until then.
    is_large = is_large or steps > STEPS_OF_A_SHORT_WALK
    parts: list[Part] | None = None
    if isinstance(answer, Message):
        parts = (yield from _encode(header, answer)) if is_large else encode(header, answer)
    if is_large and request is not None:
        yield from let_go(request)
    return parts


def _at_once(answer: Answer) -> AnswerWalk:
    """Walk through nothing."""
    yield from ()
    return answer


def _encode(header: RequestHeader, response: Message) -> Walk:
    """Encode an answer that may be long in pieces, and let go of it."""
    parts = cast("list[Part]", (yield from encode_response_in_pieces(header, response)))
    if sum(map(len, parts)) > LARGE_BYTES:
        yield from let_go(response)
    return parts


def close_malformed(connection: Connection, error: DecodeError) -> None:
    """Close the connection of a client whose bytes are no request."""
    log.warning("closed: malformed request client=%s %s", connection.peer.host, error)
    connection.close()


def error_response(header: RequestHeader, error: KafkaError) -> Message:
    """Build the answer that carries a refusal at its top level.

    Only for APIs whose response has one; the others put errors beside each topic or resource
    themselves.
    """
    response: Any = response_class(header.api_key)()
    if not hasattr(response, "error_code"):
        raise AssertionError(f"api {header.api_key} has no top-level error for {error}") from error
    response.error_code = int(error.code)
    if hasattr(response, "error_message"):
        response.error_message = error.message
    assert isinstance(response, Message)
    return response
