"""Decodes a frame, runs its handler, and encodes the answer.

A handler is given the request's context and the decoded message. It returns the response, or
`NO_RESPONSE` (Produce with acks=0). A handler that has to wait, or whose answer can be huge, is a
generator that returns the same (`later`). A handler is made at the first request of its API.

A frame of more than 64 KB is decoded in pieces, and an answer of a generator with more than
ENTRIES_AT_ONCE entries is encoded in pieces, so that no request blocks the loop.
"""

import logging
from bisect import bisect
from collections.abc import Callable, Generator
from enum import Enum
from functools import cache, partial
from typing import Any, NamedTuple, Protocol, cast

from broker.server.distribution import BOUNDS
from broker.server.network.connection import Connection
from broker.server.network.later import Making, Steps
from broker.server.network.request_times import (
    FOLLOWER_FETCH,
    UNCOUNTED,
    ApiTimes,
    RequestTimes,
    Timing,
    is_of_follower,
)
from broker.server.network.sending import Part
from broker.server.network.turns import Turns
from common.kafka.errors import KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import (
    DecodeError,
    RequestHeader,
    UnsupportedVersion,
    begin_request,
    encode_response,
    encode_response_in_pieces,
    response_class,
)
from common.kafka.protocol.message import Message, Struct

log = logging.getLogger("millstream.dispatch")

ENTRIES_AT_ONCE = 1_024
"""This many entries of an answer are encoded within one or two milliseconds."""


class NoResponse(Enum):
    """What a handler returns when the client wants no response."""

    NO_RESPONSE = "the client asked for no response"


NO_RESPONSE = NoResponse.NO_RESPONSE

Answer = Message | NoResponse


class RequestContext(NamedTuple):
    """One request that is being handled: its version, and the client that sent it."""

    connection: Connection
    header: RequestHeader
    api_version: int


Handler = Callable[[RequestContext, Any], Answer | Steps[Answer]]
OnFrame = Callable[[Connection, memoryview], list[Part] | Making | None]

Watch = Callable[[OnFrame, Connection, memoryview], list[Part] | Making | None]
"""Stands before the dispatcher: it calls the first argument, and sees the answer."""

OnCodes = Callable[[list[int]], None]


class Encode(Protocol):
    """Encodes an answer; the only file regions in a response are those of the log."""

    def __call__(
        self, header: RequestHeader, message: Message, on_codes: OnCodes = ...
    ) -> list[Part]:
        """Return the frame, after a call of `on_codes` if there are error codes in it."""
        ...


encode = cast(Encode, encode_response)


class Meter(Protocol):
    """Measures requests: it stands before the dispatcher and around every handler."""

    def on_frame(
        self, answer_frame: OnFrame, connection: Connection, frame: memoryview
    ) -> list[Part] | Making | None:
        """Return the answer of `answer_frame`."""
        ...

    def metered(self, api_key: int, handler: Handler) -> Handler:
        """Return the handler with its measurement."""
        ...


class Dispatcher:
    """The frame sink of every client connection of a broker."""

    def __init__(
        self,
        make_handler: Callable[[int], Handler | None],
        *,
        times: RequestTimes,
        turns: Turns,
        on_queued: Callable[[Connection], None],
        on_closed: Callable[[Connection], None],
    ) -> None:
        self._make_handler = make_handler
        self.times = times
        self._turns = turns
        self._on_queued = on_queued
        self._on_closed = on_closed
        self._made: dict[int, Handler] = {}
        self._handlers: dict[int, Handler] = {}
        """The handlers made so far, each with its measurement if there is one."""
        self._meter: Meter | None = None
        self._watch: Watch | None = None
        self.on_frame: OnFrame = self._answer_frame
        """Answers a request. An attribute, so that it costs nothing while nothing is measured."""

    def meter_with(self, meter: Meter | None) -> None:
        """Measure requests from now on, or no longer."""
        self._meter = meter
        self._handlers.clear()
        self._compose()

    def watch_with(self, watch: "Watch") -> None:
        """Have every request watched from now on."""
        self._watch = watch
        self._compose()

    def _compose(self) -> None:
        meter, watch = self._meter, self._watch
        metered = (
            self._answer_frame if meter is None else partial(meter.on_frame, self._answer_frame)
        )
        self.on_frame = metered if watch is None else partial(watch, metered)

    def _answer_frame(
        self, connection: Connection, frame: memoryview
    ) -> list[Part] | Making | None:
        """Decode one request, run its handler, encode its answer."""
        try:
            header, message = begin_request(frame)
        except UnsupportedVersion as refused:
            return self._answer_unsupported(connection, refused.header)
        except DecodeError as error:
            close_malformed(connection, error)
            return None
        api_key = header.api_key
        handler = self._handlers.get(api_key) or self._find_handler(api_key)
        if handler is None:
            return self._answer_unsupported(connection, header)
        times = self.times[api_key]
        times.versions[header.api_version] += 1
        if connection.places and api_key != ApiKey.FETCH:
            self._on_queued(connection)
        # `tuple.__new__` saves the call of the named tuple's own constructor.
        context = tuple.__new__(RequestContext, (connection, header, header.api_version))
        turns = self._turns
        began = turns.mark
        if not isinstance(message, Message):
            turns.timing = Timing(times, connection.last_active, began)
            return decoded_in_pieces(context, message, handler, times)
        if api_key == ApiKey.FETCH and is_of_follower(message):
            times = self.times[FOLLOWER_FETCH]
        try:
            answer = handler(context, message)
        except KafkaError as error:
            answer = error_response(header, error)
        if not isinstance(answer, Message) and answer is not NO_RESPONSE:
            turns.timing = Timing(times, connection.last_active, began)
            return making(header, answer, times)
        times.answers += 1
        parts = encode(header, answer, times.note_codes) if isinstance(answer, Message) else None
        turns.mark = ready = turns.now()
        turns.sends = times.sends
        if began == connection.last_active:
            times.at_once.counts[bisect(BOUNDS, ready - began)] += 1
        else:
            times.note_queued(connection.last_active, began, ready)
        return parts

    def on_closed(self, connection: Connection) -> None:
        """Drop everything that belongs to a closed connection."""
        self._on_closed(connection)

    def _find_handler(self, api_key: int) -> Handler | None:
        handler = self._made.get(api_key) or self._make_handler(api_key)
        if handler is None:
            return None
        self._made[api_key] = handler
        meter = self._meter
        served = handler if meter is None else meter.metered(api_key, handler)
        self._handlers[api_key] = served
        return served

    def _answer_unsupported(
        self, connection: Connection, header: RequestHeader
    ) -> list[Part] | None:
        """Answer ApiVersions in version 0 with error 35 (KIP-511); close for any other API."""
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
        response = handler(RequestContext(connection, old, 0), None)
        assert isinstance(response, Message)
        times = self.times[ApiKey.API_VERSIONS]
        times.answers += 1
        return encode(old, response, times.note_codes)


def making(header: RequestHeader, steps: Steps[Answer], times: ApiTimes = UNCOUNTED) -> Making:
    """Run a handler's generator until it returns the answer, and encode that."""
    try:
        answer = yield from steps
    except KafkaError as error:
        answer = error_response(header, error)
    return (yield from _encoded(header, answer, times))


def decoded_in_pieces(
    context: RequestContext,
    pieces: Generator[None, None, Message],
    handler: Handler,
    times: ApiTimes = UNCOUNTED,
) -> Making:
    """Decode a large request in pieces, then run its handler."""
    try:
        message = yield from pieces
    except DecodeError as error:
        close_malformed(context.connection, error)
        return None
    try:
        answer = handler(context, message)
        if isinstance(answer, Generator):
            answer = yield from answer
    except KafkaError as error:
        answer = error_response(context.header, error)
    return (yield from _encoded(context.header, answer, times))


def _encoded(header: RequestHeader, answer: Answer, times: ApiTimes) -> Making:
    if not isinstance(answer, Message):
        times.answers += 1
        return None
    if has_more_than(ENTRIES_AT_ONCE, answer):
        pieces = encode_response_in_pieces(header, answer, times.note_codes)
        parts = cast("list[Part]", (yield from pieces))
    else:
        parts = encode(header, answer, times.note_codes)
    times.answers += 1
    return parts


def has_more_than(count: int, message: Message) -> bool:
    """Return whether all arrays of a message have more entries together than the limit."""
    left: list[Struct] = [message]
    while left:
        struct = left.pop()
        for name, has_arrays in _arrays_of(type(struct)):
            entries = getattr(struct, name)
            if entries:
                count -= len(entries)
                if count < 0:
                    return True
                if has_arrays:
                    left += entries
    return False


@cache
def _arrays_of(struct: type[Struct]) -> tuple[tuple[str, bool], ...]:
    """Return the names of the arrays of a struct, each with whether its entries have arrays."""
    return tuple(
        (name, isinstance(field.element, type) and bool(_arrays_of(field.element)))
        for name, field in struct.__fields__.items()
        if field.kind == "array"
    )


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
