"""The front page as the servers built on aiohttp serve it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from aiohttp import web

from pages.front import HTML, FrontPage, is_wanted, render, response_headers

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
State = Callable[[web.Request], Awaitable[tuple[Sequence[str], Mapping[str, str]]]]
"""Returns what a server waits for before it can work, and what there is to say of it now."""


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
