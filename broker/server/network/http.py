"""The broker's own small web server: /health/live, /health/ready, /metrics, and `/` for browsers.

h11 parses HTTP; aiohttp would cost an idle broker a fifth of a second and 20 MB. A page may take
milliseconds to make, and a client may ask for a thousand at once: each page is a turn (`turns`),
and no page is made for a client that does not read the earlier ones.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, cast

import h11

from broker.server.clock import monotonic_seconds
from broker.server.network.listener import bind
from broker.server.network.turns import Turns
from common.http.accepting import ProtocolServer
from common.http.security import OPEN, REALM, HttpSecurity
from common.http.site_guard import SiteGuard

log = logging.getLogger("millstream.http")

MAX_REQUEST_BYTES = 16 * 1024
MAX_CONNECTIONS = 200
SILENT_SECONDS = 30.0
"""A connection is closed when no whole request came, or no answer was read, in this time."""
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Page(NamedTuple):
    """The answer to a request."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = _NO_HEADERS


class Asked(NamedTuple):
    """The headers of a request for a page: accepted types, and the host as the client has it."""

    accept: str
    host: str
    authorization: str = ""


FrontPage = Callable[[Asked], Page | None]
"""Returns the page of `/`; None if there is no page for this client."""


def _no_front_page(_: Asked) -> None:
    return None


class HttpServer:
    """Serves pages by path; it does not know their content."""

    def __init__(
        self,
        pages: dict[str, Callable[[], Page]],
        front_page: FrontPage = _no_front_page,
        site_guard: SiteGuard | None = None,
        security: HttpSecurity = OPEN,
        silent_seconds: float = SILENT_SECONDS,
    ) -> None:
        self._pages = pages
        self._site_guard = site_guard or SiteGuard()
        self._security = security
        self._front_page = front_page
        self._silent_seconds = silent_seconds
        self._server: ProtocolServer | None = None
        self._connections: set[_HttpConnection] = set()

    def start(self, host: str, port: int) -> int:
        """Listen, and return the port; raises OSError when the address is taken."""
        loop = asyncio.get_running_loop()
        turns = Turns(loop, monotonic_seconds)
        listening = bind(host, port)
        self._server = ProtocolServer(
            lambda: _HttpConnection(self.answer, turns, self._connections, self._silent_seconds),
            [listening],
            count=lambda: len(self._connections),
            limit=MAX_CONNECTIONS,
            tls=self._security.context,
        )
        self._server.start()
        return int(listening.getsockname()[1])

    def answer(self, request: h11.Request) -> Page:
        """Return the page that a request asks for, or an error page."""
        if request.method not in {b"GET", b"HEAD"}:
            return problem(405, "Method Not Allowed", {"Allow": "GET, HEAD"})
        asked = _asked(request)
        if not self._site_guard.is_own(asked.host):
            return problem(421, "The Host header is not this server's: see http.allowed.hosts")
        path = request.target.partition(b"?")[0].decode("latin-1")
        if not self._security.lets_in(path, asked.authorization):
            return problem(401, "Unauthorized", {"WWW-Authenticate": f'Basic realm="{REALM}"'})
        if path == "/":
            page = self._front_page(asked)
            return problem(404, "Not Found") if page is None else page
        make = self._pages.get(path)
        return problem(404, "Not Found") if make is None else make()

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()


class _HttpConnection(asyncio.Protocol):
    """One connection: h11 in the middle, one page an answer."""

    def __init__(
        self,
        answer: Callable[[h11.Request], Page],
        turns: Turns,
        connections: "set[_HttpConnection]",
        silent_seconds: float,
    ) -> None:
        self._answer = answer
        self._connections = connections
        self._silent_seconds = silent_seconds
        self._silence: asyncio.TimerHandle | None = None
        self._turns = turns
        self._is_waiting = False  # for a turn
        self._is_unread = False  # pages that were sent wait to be read
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_REQUEST_BYTES)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No isinstance: uvloop's transports are not of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)
        self._wait_for_request()

    def connection_lost(self, _: Exception | None) -> None:
        self._connections.discard(self)
        if self._silence is not None:
            self._silence.cancel()

    def _wait_for_request(self) -> None:
        """Close the connection if no whole request comes; a part of one does not reset the time."""
        assert self._transport is not None
        if self._silence is not None:
            self._silence.cancel()
        # Not `close`, which waits until the client has read everything.
        give_up = self._transport.abort
        self._silence = asyncio.get_running_loop().call_later(self._silent_seconds, give_up)

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
        if not self._is_waiting and not self._is_unread:
            self._is_waiting = True
            self._turns.wait(self._on_turn)

    def _on_turn(self) -> None:
        self._is_waiting = False
        assert self._transport is not None
        if self._transport.is_closing():
            return
        is_asked = False
        try:
            is_asked = self._answer_one()
        except h11.RemoteProtocolError as error:
            self._refuse(error)
        if self._http.our_state in {h11.MUST_CLOSE, h11.ERROR, h11.CLOSED}:
            self._transport.close()
        elif is_asked:
            self._wait_for_turn()
        else:
            self._transport.resume_reading()

    def _answer_one(self) -> bool:
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
            if isinstance(event, h11.Request):
                page = self._answer(event)
                self._send(page._replace(body=b"") if event.method == b"HEAD" else page)
                self._wait_for_request()
                return True

    def _send(self, page: Page) -> None:
        assert self._transport is not None
        headers = [
            ("content-type", page.content_type),
            ("content-length", str(len(page.body))),
            ("cache-control", "no-store"),
            *page.headers.items(),
        ]
        for event in (
            h11.Response(status_code=page.status, headers=headers),
            h11.Data(data=page.body),
            h11.EndOfMessage(),
        ):
            self._transport.write(self._http.send(event) or b"")

    def _refuse(self, error: h11.RemoteProtocolError) -> None:
        if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._send(problem(error.error_status_hint, str(error)))


def _asked(request: h11.Request) -> Asked:
    headers = {name: value.decode("latin-1") for name, value in request.headers}
    asked = (headers.get(name, "") for name in (b"accept", b"host", b"authorization"))
    return Asked(*asked)


def problem(status: int, title: str, headers: Mapping[str, str] = _NO_HEADERS) -> Page:
    """Return an error page as application/problem+json (RFC 9457)."""
    body = json.dumps({"type": "about:blank", "title": title, "status": status}).encode()
    return Page(status, "application/problem+json", body, headers)


def text(body: str) -> Page:
    """Return a page of plain text."""
    return Page(200, "text/plain; charset=utf-8", body.encode())
