"""The broker's own small web server: /health/live, /health/ready and /metrics.

HTTP itself is h11's; aiohttp would cost an idle broker a fifth of a second and 20 MB.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import cast

import h11

log = logging.getLogger("millrace.http")

MAX_REQUEST_BYTES = 16 * 1024
Page = tuple[int, str, bytes]  # status, content type, body


class HttpServer:
    """Serves pages by path; knows nothing of what is on them."""

    def __init__(self, pages: dict[str, Callable[[], Page]]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port; raises OSError when the address is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _HttpConnection(self._pages), host, port)
        return int(self._server.sockets[0].getsockname()[1])

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()


class _HttpConnection(asyncio.Protocol):
    """One connection: h11 in the middle, one page an answer."""

    def __init__(self, pages: dict[str, Callable[[], Page]]) -> None:
        self._pages = pages
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_REQUEST_BYTES)
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No isinstance: uvloop's transports are not of asyncio's classes.
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._http.receive_data(data)
        try:
            self._answer_all()
        except h11.RemoteProtocolError as error:
            self._refuse(error)
        if self._http.our_state in {h11.MUST_CLOSE, h11.ERROR, h11.CLOSED}:
            self._transport.close()

    def _answer_all(self) -> None:
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA or isinstance(event, h11.ConnectionClosed):
                return
            if event is h11.PAUSED:
                self._http.start_next_cycle()
            if isinstance(event, h11.Request):
                path = event.target.partition(b"?")[0].decode("latin-1")
                status, content_type, body = self._page(event.method, path)
                self._send(status, content_type, b"" if event.method == b"HEAD" else body)

    def _page(self, method: bytes, path: str) -> Page:
        if method not in {b"GET", b"HEAD"}:
            return problem(405, "Method Not Allowed")
        page = self._pages.get(path)
        return problem(404, "Not Found") if page is None else page()

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        assert self._transport is not None
        headers = [
            ("content-type", content_type),
            ("content-length", str(len(body))),
            ("cache-control", "no-store"),
        ]
        for event in (
            h11.Response(status_code=status, headers=headers),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self._transport.write(self._http.send(event) or b"")

    def _refuse(self, error: h11.RemoteProtocolError) -> None:
        if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._send(*problem(error.error_status_hint, str(error)))


def problem(status: int, title: str) -> Page:
    """Return an error page as application/problem+json (RFC 9457)."""
    body = json.dumps({"type": "about:blank", "title": title, "status": status}).encode()
    return status, "application/problem+json", body


def text(body: str) -> Page:
    """Return a page of plain text."""
    return 200, "text/plain; charset=utf-8", body.encode()
