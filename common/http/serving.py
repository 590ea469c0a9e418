"""The front page and the accepting of connections, for the servers built on aiohttp."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, cast

from aiohttp import web

from common.http.accepting import Connections, ProtocolServer, bound_to
from common.http.broken_requests import (
    HttpConnection,
    answer_odd_expectations,
    quiet_logger,
    refusing_unknown_codings,
    telling_requests,
)
from common.http.front import HTML, FrontPage, is_wanted, render, response_headers
from common.http.guarding import authenticating
from common.http.security import OPEN, HttpSecurity

SILENT_SECONDS: Final = 30.0
"""A connection is closed when no whole head of a request came in so long. Jetty, of which Kafka's
Connect and Confluent's programs are made, waits 30 s too."""
LINGERING_SECONDS: Final = 5.0
"""The rest of a body that was refused may take so long, so that the client reads the refusal."""
MAX_CONNECTIONS: Final = 1000
SECURITY_KEY: Final = web.AppKey("security", HttpSecurity)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
State = Callable[[web.Request], Awaitable[tuple[Sequence[str], Mapping[str, str]]]]
"""Returns what a server waits for before it can work, and what there is to say of it now."""


def runner_of(
    app: web.Application, shutdown_seconds: float = 60.0, security: HttpSecurity = OPEN
) -> web.AppRunner:
    """Return what serves an application to whom `security` lets in, and gives up silent clients."""
    answer_odd_expectations()
    app[SECURITY_KEY] = security
    app.middlewares[:0] = [telling_requests, authenticating(security)]
    app.middlewares.append(refusing_unknown_codings)
    return web.AppRunner(app, shutdown_timeout=shutdown_seconds)


def _connection(server: web.Server, connections: Connections) -> HttpConnection:
    return HttpConnection(
        connections,
        server,
        loop=asyncio.get_running_loop(),
        access_log=None,  # as AppRunner takes it
        keepalive_timeout=SILENT_SECONDS,
        lingering_time=LINGERING_SECONDS,
        logger=quiet_logger(),
    )


class Site(web.BaseSite):
    """A `web.SockSite` that leaves the last file descriptors to the program, and has a limit."""

    def __init__(
        self, runner: web.BaseRunner, *listening: socket.socket, limit: int | None = None
    ) -> None:
        super().__init__(runner)
        assert runner.server is not None, "set up the runner first"
        assert isinstance(runner, web.AppRunner), "made by `runner_of`"
        self._security = runner.app[SECURITY_KEY]
        server = runner.server
        self._serving = ProtocolServer(
            partial(_connection, server),
            listening,
            limit=limit or MAX_CONNECTIONS,
            tls=self._security.context,
        )

    @property
    def name(self) -> str:
        scheme = self._security.scheme
        return ", ".join(f"{scheme}://{host}:{port}" for host, port in self._addresses())

    def _addresses(self) -> list[tuple[str, int]]:
        return [each.getsockname()[:2] for each in self._serving.sockets]

    async def start(self) -> None:
        await super().start()
        # Of a server, a site only ever asks for its sockets, and that it be closed.
        self._server = cast("asyncio.AbstractServer", self._serving)
        self._serving.start(self._backlog)


async def serve_on(runner: web.BaseRunner, host: str, port: int) -> None:
    """Begin to serve on a host's addresses; raise CannotListenError."""
    await Site(runner, *await bound_to(host, port)).start()


async def _nothing_here(_: web.Request) -> web.StreamResponse:
    raise web.HTTPNotFound


def front_page_handler(
    page: FrontPage, state: State, otherwise: Handler = _nothing_here
) -> Handler:
    """Return what answers `/`: with the page to browsers, to all others as `otherwise` does."""

    async def get_front_page(request: web.Request) -> web.StreamResponse:
        if not is_wanted(request.headers.get("Accept")):
            return await otherwise(request)
        missing, facts = await state(request)
        origin = str(request.url.origin())
        text = render(page, origin=origin, missing=missing, facts=facts)
        return web.Response(text=text, content_type=HTML, headers=response_headers())

    return get_front_page
