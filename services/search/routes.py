"""The REST interface of search; the orders service passes the queries of clients on to it."""

from aiohttp import web

from common.http.problems import ProblemError, unavailable
from common.processing.service import Running
from services.search.app import SearchService
from services.search.domain import IndexAwayError, WrongQuestionError, answer, read_question
from services.search.index import OrderIndex
from services.search.settings import SearchSettings


def add_routes(
    app: web.Application, settings: SearchSettings, running: Running[SearchService]
) -> None:
    """Add the calls that search the index."""
    routes = SearchRoutes(running)
    app.add_routes(
        [web.get("/v1/orders", routes.find_orders), web.get("/v1/index", routes.describe_index)]
    )
    app.on_cleanup.append(routes.close)


class SearchRoutes:
    """The handlers, with what they need."""

    def __init__(self, running: Running[SearchService]) -> None:
        self._running = running

    @property
    def _index(self) -> OrderIndex:
        service = self._running.service
        if service is None:
            raise unavailable("the service is starting")
        return service.index

    async def close(self, _: web.Application) -> None:
        if self._running.service is not None:
            await self._index.close()

    async def find_orders(self, request: web.Request) -> web.Response:
        try:
            question = read_question(request.query.items())
        except WrongQuestionError as error:
            raise ProblemError(400, str(error)) from None
        try:
            found = await self._index.find(question)
        except IndexAwayError:
            raise unavailable("the index does not answer") from None
        return web.json_response(answer(question, found))

    async def describe_index(self, _: web.Request) -> web.Response:
        try:
            return web.json_response({"documents": await self._index.count()})
        except IndexAwayError:
            raise unavailable("the index does not answer") from None
