"""The page: one document for every address, and the files that it loads.

Every view is an address (`/topics/orders`), and the script decides from it what to show. The
document is the same for all, so a name in an address never becomes HTML. The script builds the page
of texts only (`textContent`); the policy forbids scripts within the document.
"""

from pathlib import Path
from typing import Final

from aiohttp import web

from common.http.front import HTML, is_wanted
from common.http.neighbours import LOOK, navigation, parse_neighbours
from common.http.problems import ProblemError

_FILES: Final = Path(__file__).parent / "files"
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
    "Vary": "Accept",
}


def add_page(app: web.Application, neighbours: str) -> None:
    """Add the page and its files to the application, after all other routes."""
    assets = {each.name: each for each in _FILES.iterdir() if each.suffix in _TYPES}
    assets[LOOK.name] = LOOK
    document = (_FILES / "index.html").read_text(encoding="utf-8")
    links = navigation(parse_neighbours(neighbours), "console")
    document = document.replace("<!-- navigation -->", links)

    async def get_file(request: web.Request) -> web.FileResponse:
        found = assets.get(request.match_info["name"])
        if found is None:
            raise ProblemError(404, "There is no such file.")
        headers = {**_HEADERS, "Content-Type": _TYPES[found.suffix]}
        return web.FileResponse(found, headers=headers)

    async def get_page(request: web.Request) -> web.Response:
        path = request.match_info["path"]
        if path.startswith("api/") or not is_wanted(request.headers.get("Accept")):
            raise ProblemError(404, "There is nothing here. The addresses begin with /api/.")
        return web.Response(text=document, content_type=HTML, headers=_HEADERS)

    app.add_routes([web.get("/page/{name}", get_file), web.get("/{path:.*}", get_page)])
