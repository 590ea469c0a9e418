"""Requests that cannot be read: answered by a problem document, and logged as one line a minute.

aiohttp answers them in plain text, with what the client sent, and logs a stack trace for each. They
reach no middleware, so every server answers them alike, whatever its API's form of errors is.
"""

import asyncio
import logging
from typing import Any, Final

from aiohttp import hdrs, web, web_urldispatcher
from aiohttp.http_exceptions import ContentEncodingError, HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from common.http.accepting import Connection, Connections
from common.http.problem_document import PROBLEM_TYPE
from common.http.problems import Handler, ProblemError

QUIET_SECONDS: Final = 60.0
_SHOWN_CHARACTERS: Final = 100
_CODINGS: Final = ("gzip", "deflate")
_UNKNOWN_CODING: Final = "the server knows the content codings gzip and deflate"
_ACCEPTED: Final = {"Accept-Encoding": ", ".join(_CODINGS)}
_OF_CLIENTS: Final = (HttpProcessingError, RequestPayloadError)


class BrokenRequests(logging.Filter):
    """Lets through every record but those of broken requests; of these one a minute, as a line."""

    def __init__(self) -> None:
        super().__init__()
        self._said_at = -QUIET_SECONDS

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ConnectionError):
            return False  # that client is gone already
        if not isinstance(error, _OF_CLIENTS):
            return True
        if record.created - self._said_at < QUIET_SECONDS:
            return False
        self._said_at = record.created
        what = " ".join(str(error).split())[:_SHOWN_CHARACTERS]
        record.msg = "refused a request that cannot be read, as more may be: %s error=%s"
        record.args = (type(error).__name__, what)
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


def quiet_logger() -> logging.Logger:
    """Return the logger of aiohttp's server, with the filter."""
    logger = logging.getLogger("aiohttp.server")
    if not any(isinstance(each, BrokenRequests) for each in logger.filters):
        logger.addFilter(BrokenRequests())
    return logger


class HttpConnection(web.RequestHandler, Connection):
    """A client's connection, whose unreadable requests are answered by a problem document."""

    __slots__ = ("_connections",)

    def __init__(self, connections: Connections, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connections.made(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.lost(self)
        super().connection_lost(exc)

    def give_way(self) -> None:
        self.force_close()

    def begin(self) -> None:
        """A request is being answered."""
        self._connections.begin(self)

    async def finish_response(self, *arguments: Any) -> tuple[web.StreamResponse, bool]:
        """Write the answer; the connection is idle from then on."""
        finished = await super().finish_response(*arguments)
        self._connections.end(self)
        return finished

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer; raise ConnectionError if a part of an answer is sent already."""
        answer = super().handle_error(request, status, exc, message)
        if isinstance(exc, ContentEncodingError):
            answer = ProblemError(415, _UNKNOWN_CODING, headers=_ACCEPTED).response()
        elif isinstance(exc, HttpProcessingError):
            answer = ProblemError(status, _without_quotation(message or "")).response()
        answer.force_close()
        return answer


@web.middleware
async def telling_requests(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Tell the connection that a request of it is being answered; put it before all others."""
    if isinstance(request.protocol, HttpConnection):
        request.protocol.begin()
    return await handler(request)


def _without_quotation(message: str) -> str:
    """Return a parser's message without the bytes of the request that it quotes."""
    return " ".join(message.partition("\n\n")[0].partition(": b")[0].split()).rstrip(":")


@web.middleware
async def refusing_unknown_codings(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer 415 to a body in an unknown coding (RFC 9110, 8.4); aiohttp takes it for the text."""
    coding = request.headers.get(hdrs.CONTENT_ENCODING, "identity").strip().lower()
    # With a coding of an installed library, aiohttp has decoded the body.
    if coding in ("identity", "br", "zstd", *_CODINGS):
        return await handler(request)
    raise web.HTTPUnsupportedMediaType(text=_UNKNOWN_CODING, headers=_ACCEPTED)


class _UnknownExpectation(web.HTTPExpectationFailed):
    def __init__(self, *, text: str) -> None:
        # A header may have bytes that are no UTF-8.
        told = ProblemError(self.status_code, text.encode("utf-8", "backslashreplace").decode())
        super().__init__(text=told.response().text, content_type=PROBLEM_TYPE)


def answer_odd_expectations() -> None:
    """Have aiohttp answer 417 to every `Expect` that it does not know.

    Its default handler repeats the header in the answer, and ends in a UnicodeEncodeError (500,
    with a stack trace) if the header is no text. It runs before every middleware.
    """
    web_urldispatcher.HTTPExpectationFailed = _UnknownExpectation  # type: ignore[attr-defined, assignment]
