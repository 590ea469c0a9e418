"""A small web server without aiohttp, for pages that are made at once: the broker's, the stack's.

h11 parses HTTP; aiohttp would cost an idle process a fifth of a second and 20 MB. A page may take
milliseconds to make, and a client may ask for a thousand at once: one page is made in each turn of
the loop, and no page is made for a client that does not read the earlier ones. A page may also be
made later: then it is a coroutine, and its connection waits. Only a server that has `changes`
takes other methods than GET and HEAD, and reads bodies.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, cast

import h11

from common.http.accepting import Connection, Connections, ProtocolServer
from common.http.problem_document import PROBLEM_TYPE, problem_document
from common.http.security import OPEN, REALM, HttpSecurity
from common.http.site_guard import READING, SiteGuard, unreadable
from common.process.tasks import spawn

log = logging.getLogger("millstream.http")

MAX_REQUEST_BYTES: Final = 16 << 10
MAX_BODY_BYTES: Final = 64 << 10
MAX_CONNECTIONS: Final = 200
SILENT_SECONDS: Final = 30.0
"""A connection is closed when no whole request came, or no answer was read, in this time."""
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class Page(NamedTuple):
    """The answer to a request."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = _NO_HEADERS


class Asked(NamedTuple):
    """A request for a page: its path without a query, and its headers by names in lower case."""

    path: str
    headers: Mapping[str, str]
    method: str = "GET"
    query: str = ""
    body: bytes = b""

    @property
    def host(self) -> str:
        """The server's name as the client has it."""
        return self.headers.get("host", "")


MakePage = Callable[[Asked], Page | None]
"""Returns a page; None if there is none at this path, or none for this client."""
LaterPage = Coroutine[None, None, Page]
Change = Callable[[Asked], Page | LaterPage | None]
"""Answers any method; None if there is nothing at this path."""


def problem(status: int, detail: str, headers: Mapping[str, str] = _NO_HEADERS) -> Page:
    """Return an error page (RFC 9457)."""
    return Page(status, PROBLEM_TYPE, problem_document(status, detail), headers)


def text(body: str) -> Page:
    """Return a page of plain text."""
    return Page(200, "text/plain; charset=utf-8", body.encode())


class SmallServer:
    """Serves pages; it does not know their content."""

    def __init__(
        self,
        make_page: MakePage,
        *,
        site_guard: SiteGuard | None = None,
        security: HttpSecurity = OPEN,
        silent_seconds: float = SILENT_SECONDS,
        changes: Change | None = None,
    ) -> None:
        """`changes` is asked before `make_page`; pages of other origins may not ask it."""
        self._make_page = make_page
        self._changes = changes
        self._guard = site_guard or SiteGuard()
        self._security = security
        self._silent_seconds = silent_seconds
        self._server: ProtocolServer | None = None
        self._waiting: deque[_HttpConnection] = deque()
        self._is_scheduled = False

    def start(self, listening: socket.socket) -> int:
        """Begin to serve on a bound socket, and return its port."""
        self._server = ProtocolServer(
            lambda connections: _HttpConnection(self, connections, self._silent_seconds),
            [listening],
            limit=MAX_CONNECTIONS,
            tls=self._security.context,
        )
        self._server.start()
        return int(listening.getsockname()[1])

    def stop(self) -> None:
        """Stop listening, and close the connections."""
        if self._server is not None:
            self._server.close()
            self._server.connections.close_idle()

    @property
    def reads_bodies(self) -> bool:
        """True if requests may have bodies."""
        return self._changes is not None

    def answer(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes = b""
    ) -> Page | LaterPage:
        """Return the page that a request asks for, or an error page. Names are in lower case."""
        path, _, query = target.partition("?")
        asked = Asked(path, dict(headers), method, query, body)
        if method not in READING and self._changes is None:
            return problem(405, "Only GET and HEAD.", {"Allow": "GET, HEAD"})
        if refusal := unreadable(target, headers):
            return problem(refusal.status, refusal.detail)
        if not self._guard.is_own(asked.host):
            return problem(421, "The Host header is not this server's: see http.allowed.hosts")
        if not self._security.lets_in(asked.path, asked.headers.get("authorization", "")):
            return problem(401, "Unauthorized", {"WWW-Authenticate": f'Basic realm="{REALM}"'})
        if self._changes is None:
            return self._page(asked)
        origins = {
            name: asked.headers[name.lower()]
            for name in ("Host", "Origin", "Sec-Fetch-Site")
            if name.lower() in asked.headers
        }
        # A read is guarded as a change: it tells what the clients of the broker do.
        refusal = self._guard.refusal("POST", origins)
        if refusal is None:
            return self._changes(asked) or self._page(asked)
        made = self._make_page(asked) if method in READING else None
        return made or problem(refusal.status, refusal.detail)

    def _page(self, asked: Asked) -> Page:
        if asked.method not in READING:
            return problem(405, "Only GET and HEAD.", {"Allow": "GET, HEAD"})
        return self._make_page(asked) or problem(404, "There is no such page.")

    def wait(self, connection: "_HttpConnection") -> None:
        """Let a connection answer one request after all that wait have answered one."""
        self._waiting.append(connection)
        self._schedule()

    def _schedule(self) -> None:
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._is_scheduled = False
        self._waiting.popleft().answer_one()
        self._schedule()


class _HttpConnection(Connection):
    """One connection: h11 in the middle, one page an answer."""

    __slots__ = (
        *("_asked", "_body", "_connections", "_http", "_is_unread", "_is_waiting", "_making"),
        *("_server", "_silence", "_silent_seconds", "_transport"),
    )

    def __init__(
        self, server: SmallServer, connections: Connections, silent_seconds: float
    ) -> None:
        self._server = server
        self._connections = connections
        self._silent_seconds = silent_seconds
        self._silence: asyncio.TimerHandle | None = None
        self._is_waiting = False  # for a turn
        self._is_unread = False  # pages that were sent wait to be read
        self._asked: h11.Request | None = None  # while its body is read
        self._body = bytearray()
        self._making: asyncio.Task[None] | None = None  # a page that is made later
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_REQUEST_BYTES)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No isinstance: uvloop's transports are not of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)
        self._connections.made(self)
        self._wait_for_request()

    def connection_lost(self, _: Exception | None) -> None:
        self._connections.lost(self)
        if self._silence is not None:
            self._silence.cancel()
        if self._making is not None:
            self._making.cancel()

    def give_way(self) -> None:
        assert self._transport is not None
        # Not `close`, which waits until the client has read everything.
        self._transport.abort()

    def _wait_for_request(self) -> None:
        """Close the connection if no whole request comes; a part of one does not reset the time."""
        if self._silence is not None:
            self._silence.cancel()
        loop = asyncio.get_running_loop()
        self._silence = loop.call_later(self._silent_seconds, self.give_way)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._http.receive_data(data)
        self._transport.pause_reading()
        self._wait_for_turn()

    def eof_received(self) -> bool:
        self._http.receive_data(b"")
        self._wait_for_turn()
        return True  # what was asked for is answered first

    def pause_writing(self) -> None:
        self._is_unread = True

    def resume_writing(self) -> None:
        self._is_unread = False
        self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        if not self._is_waiting and not self._is_unread and self._making is None:
            self._is_waiting = True
            self._server.wait(self)

    def answer_one(self) -> None:
        """Answer the next request that is here whole; then read on, or wait for the next turn."""
        self._is_waiting = False
        assert self._transport is not None
        if self._transport.is_closing():
            return
        is_asked = False
        try:
            is_asked = self._next_request()
        except h11.RemoteProtocolError as error:
            self._refuse(error)
            self._transport.close()  # What follows may be the rest of what is refused.
            return
        if self._http.our_state in {h11.MUST_CLOSE, h11.ERROR, h11.CLOSED}:
            self._transport.close()
        elif is_asked:
            self._wait_for_turn()
        else:
            self._transport.resume_reading()

    def _next_request(self) -> bool:
        """Answer the next request; return whether there was one."""
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.ConnectionClosed):
                self._http.send(h11.ConnectionClosed())
                return False
            if event is h11.NEED_DATA:
                return False
            if event is h11.PAUSED:
                self._http.start_next_cycle()
            asked = self._whole_request(event)
            if asked is not None:
                self._answer(asked)
                return True

    def _whole_request(self, event: object) -> h11.Request | None:
        """Take a part of a request; return the request when all of it is here."""
        if isinstance(event, h11.Request):
            if not self._server.reads_bodies:
                return event
            self._asked = event
            self._body.clear()
            if self._http.they_are_waiting_for_100_continue:
                self._write(h11.InformationalResponse(status_code=100, headers=[]))
        elif isinstance(event, h11.Data) and self._asked is not None:
            self._body += event.data
            if len(self._body) > MAX_BODY_BYTES:
                raise h11.RemoteProtocolError("The body is too long.", 413)
        elif isinstance(event, h11.EndOfMessage) and self._asked is not None:
            asked, self._asked = self._asked, None
            return asked
        return None

    def _answer(self, asked: h11.Request) -> None:
        # As aiohttp has it: bytes that are no UTF-8 become halves, and are refused.
        parts = ((each.decode("utf-8", "surrogateescape") for each in pair)
                 for pair in asked.headers)  # fmt: skip
        headers = [(name, value) for name, value in parts]
        method, target = asked.method.decode("latin-1"), asked.target.decode("latin-1")
        page = self._server.answer(method, target, headers, bytes(self._body))
        self._body.clear()
        if isinstance(page, Page):
            self._send_page(method, page)
        else:
            self._making = spawn(self._send_later(method, page))

    async def _send_later(self, method: str, making: LaterPage) -> None:
        try:
            page = await making
        except Exception:
            log.exception("a page could not be made")
            page = problem(500, "The page could not be made: the log says why.")
        self._making = None
        self._send_page(method, page)
        self._wait_for_turn()

    def _send_page(self, method: str, page: Page) -> None:
        self._send(page._replace(body=b"") if method == "HEAD" else page, len(page.body))
        # An idle connection goes to the end of those that are closed first.
        self._connections.begin(self)
        self._connections.end(self)
        self._wait_for_request()

    def _send(self, page: Page, length: int) -> None:
        headers = [
            ("content-type", page.content_type),
            ("content-length", str(length)),
            ("cache-control", "no-store"),
            *((name, value) for name, value in page.headers.items() if name != "Cache-Control"),
        ]
        for event in (
            h11.Response(status_code=page.status, headers=headers),
            h11.Data(data=page.body),
            h11.EndOfMessage(),
        ):
            self._write(event)

    def _write(self, event: h11.Event) -> None:
        assert self._transport is not None
        self._transport.write(self._http.send(event) or b"")

    def _refuse(self, error: h11.RemoteProtocolError) -> None:
        if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            page = problem(error.error_status_hint, str(error))
            self._send(page, len(page.body))
