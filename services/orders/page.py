"""The orders page at `/`, for people: place an order, watch it, find others.

The page uses the REST interface like any client. It is shown only to requests that ask for HTML.
"""

from importlib.resources import files
from pathlib import Path

from aiohttp import web

from common.http.application import Readiness
from common.http.front import HTML, badge, is_wanted
from common.http.neighbours import LOOK, navigation, parse_neighbours
from common.http.problems import ProblemError

_PAGE = Path(str(files(__package__))) / "page"
_ASSETS = {
    "look.css": "text/css",
    "orders.css": "text/css",
    "orders.js": "text/javascript",
    "favicon.svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
    "Vary": "Accept",
}


def add_page(app: web.Application, neighbours: str, readiness: Readiness) -> None:
    """Add the page and what it loads to the application of the orders service."""
    links = navigation(parse_neighbours(neighbours), "orders")

    async def get_page(request: web.Request) -> web.Response:
        if not is_wanted(request.headers.get("Accept")):
            raise ProblemError(404, "there is nothing here for programs: see /openapi.json")
        text = (_PAGE / "index.html").read_text(encoding="utf-8")
        text = text.replace("<!-- navigation -->", links)
        text = text.replace("<!-- badge -->", badge(await readiness()))
        return web.Response(text=text, content_type=HTML, headers=_HEADERS)

    app.add_routes([web.get("/", get_page), web.get("/page/{name}", get_asset)])


async def get_asset(request: web.Request) -> web.FileResponse:
    """Serve one of the files that the page loads."""
    name = request.match_info["name"]
    if name not in _ASSETS:
        raise ProblemError(404, f"there is no {name}")
    headers = {**_HEADERS, "Content-Type": _ASSETS[name]}
    return web.FileResponse(LOOK if name == LOOK.name else _PAGE / name, headers=headers)
