"""`GET /v1/orders?...`: queries are passed on to the search service.

The search index follows topic `orders` with a short delay. A client that has just posted an order
asks for that order by its id.
"""

from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from common.http.guarding import peer_session
from common.http.problems import ProblemError, unavailable
from common.http.security import OPEN, HttpSecurity
from services.orders.settings import OrdersSettings

_TIMEOUT = aiohttp.ClientTimeout(total=10)
_KEPT_HEADERS = ("Content-Type", "Retry-After")


def add_search(app: web.Application, settings: OrdersSettings) -> None:
    """Add the route to the application of the orders service."""
    search = Search(settings.search_url, settings.http_security)
    app.router.add_get("/v1/orders", search.find_orders)
    app.cleanup_ctx.append(search.session)


class Search:
    """A client of the search service."""

    def __init__(self, url: str, security: HttpSecurity = OPEN) -> None:
        self._security = security
        self._url = url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def session(self, _: web.Application) -> Any:
        """Keep one client session open while the application runs."""
        async with peer_session(self._security) as self._session:
            yield

    async def find_orders(self, request: web.Request) -> web.Response:
        if not self._url:
            raise ProblemError(501, "this service was not told of a search service (--search-url)")
        assert self._session is not None
        try:
            # As it came: what is wrong with it is for the search service to say.
            url = URL(self._url + request.path_qs, encoded=True)
            async with self._session.get(url, timeout=_TIMEOUT) as answer:
                headers = {
                    name: answer.headers[name] for name in _KEPT_HEADERS if name in answer.headers
                }
                return web.Response(body=await answer.read(), status=answer.status, headers=headers)
        except (aiohttp.ClientError, TimeoutError):
            raise unavailable("the search service does not answer") from None
