"""The front page and the accepting of connections, for the servers built on aiohttp."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

from aiohttp import web

from common.http.accepting import ProtocolServer, bound_to
from common.http.front import HTML, FrontPage, is_wanted, render, response_headers

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
State = Callable[[web.Request], Awaitable[tuple[Sequence[str], Mapping[str, str]]]]
"""Returns what a server waits for before it can work, and what there is to say of it now."""


class Site(web.BaseSite):
    """A `web.SockSite` that leaves the last file descriptors to the program."""

    def __init__(self, runner: web.BaseRunner, *listening: socket.socket) -> None:
        super().__init__(runner)
        assert runner.server is not None, "set up the runner first"
        self._serving = ProtocolServer(runner.server, listening)

    @property
    def name(self) -> str:
        return ", ".join(f"http://{host}:{port}" for host, port in self._addresses())

    def _addresses(self) -> list[tuple[str, int]]:
        return [each.getsockname()[:2] for each in self._serving.sockets]

    async def start(self) -> None:
        await super().start()
        # Of a server, a site only ever asks for its sockets, and that it be closed.
        self._server = cast("asyncio.AbstractServer", self._serving)
        self._serving.start(self._backlog)


async def serve_on(runner: web.BaseRunner, host: str, port: int) -> None:
    """Begin to serve on a host's addresses. Raises OSError when one is taken."""
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
