"""/connectors/{connector}/offsets: show, alter and reset offsets."""

import asyncio

from aiohttp import web

from connect.herder import requests
from connect.herder.names import RefusalError
from connect.herder.offsets import Offsets, read_offsets
from connect.rest.bodies import answer, json_body
from connect.rest.desk import Desk
from connect.worker.offsets.requests import change_offsets, shown_offsets
from millstream.connect.errors import ConnectException


class ConnectorOffsets:
    """The resource for a connector's offsets."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[web.RouteDef]:
        path = "/connectors/{connector}/offsets"
        return [
            web.get(path, self.show),
            web.patch(path, self.alter),
            web.delete(path, self.reset),
        ]

    async def show(self, request: web.Request) -> web.Response:
        name = request.match_info["connector"]
        config = requests.connector_config(self._desk.herder, name)
        environment = self._desk.worker.environment
        try:
            return answer(await asyncio.to_thread(shown_offsets, environment, name, config))
        except ConnectException as error:
            raise RefusalError(500, str(error)) from error

    async def alter(self, request: web.Request) -> web.StreamResponse:
        return await self._change(request, read_offsets(await json_body(request)))

    async def reset(self, request: web.Request) -> web.StreamResponse:
        return await self._change(request, None)

    async def _change(self, request: web.Request, offsets: Offsets | None) -> web.StreamResponse:
        name, herder = request.match_info["connector"], self._desk.herder
        elsewhere = await self._desk.here_or_there(
            request, lambda: requests.check_offsets_may_change(herder, name)
        )
        if elsewhere is not None:
            return elsewhere
        worker = self._desk.worker
        await worker.prepare_offsets_change(name)
        config = requests.connector_config(herder, name)
        try:
            message = await asyncio.to_thread(
                change_offsets, worker.environment, name, config, offsets
            )
        except ConnectException as error:
            raise RefusalError(500, str(error)) from error
        return answer({"message": message})
