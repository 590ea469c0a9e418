"""Requests between workers: what only the leader or an owner can do is sent on, twice at most.

Users' requests go on as they came, with `forward` in the query. What workers ask each other by
themselves is signed with the session key of the cluster (KIP-507).
"""

import base64
import binascii
import hmac
import json
import logging
from typing import Any, Final

from aiohttp import ClientError, ClientTimeout, web
from yarl import URL

from connect.herder import requests
from connect.herder.names import RefusalError, bad_request
from connect.rest.bodies import answer, config_of
from connect.rest.desk import Desk
from connect.worker.distributed import ALGORITHM, ALGORITHM_HEADER, SIGNATURE, Cluster, signature

log = logging.getLogger(__name__)

_INTERNAL: Final = (("POST", "tasks"), ("PUT", "fence"))
_KEPT: Final = ("Location", "Content-Type")
_ASKING: Final = ClientTimeout(total=2)


def is_internal(request: web.Request) -> bool:
    """Say whether a request is one of a worker, which its signature tells and not its user."""
    parts = request.path.strip("/").split("/")
    return len(parts) == 3 and (request.method, parts[2]) in _INTERNAL


class ToOthers:
    """Sends requests on to another worker of the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def forward(self, request: web.Request, url: str | None) -> web.Response:
        hop = request.query.get("forward")
        if hop is not None and hop.lower() != "true":
            raise RefusalError(
                409,
                "Cannot complete request because of a conflicting operation (e.g. worker "
                "rebalance)",
            )
        if url is None:
            raise RefusalError(
                409,
                "Cannot complete request momentarily due to no known leader URL, likely because a "
                "rebalance was underway.",
            )
        is_first = "true" if hop is None else "false"
        path = request.rel_url.update_query(forward=is_first)
        target = URL(url.rstrip("/") + str(path), encoded=True)
        return await self._sent(request, target)

    async def ask(self, request: web.Request, worker_id: str, path: str) -> Any:
        """Ask another worker, in the name of who asks us; None when it does not answer."""
        session = self._cluster.session
        assert session is not None
        told = {"Accept": "application/json"}
        if "Authorization" in request.headers:
            told["Authorization"] = request.headers["Authorization"]
        try:
            async with session.get(
                f"http://{worker_id}{path}", headers=told, timeout=_ASKING
            ) as answered:
                return await answered.json() if answered.status == 200 else None
        except (ClientError, OSError, TimeoutError, ValueError):
            return None

    async def _sent(self, request: web.Request, target: URL) -> web.Response:
        session = self._cluster.session
        assert session is not None
        told = {"Content-Type": "application/json"}
        if "Authorization" in request.headers:
            told["Authorization"] = request.headers["Authorization"]
        body = await request.read()
        try:
            async with session.request(
                request.method, target, data=body or None, headers=told
            ) as answered:
                headers = {k: answered.headers[k] for k in _KEPT if k in answered.headers}
                data = await answered.read()
                return web.Response(body=data, status=answered.status, headers=headers)
        except (ClientError, OSError, TimeoutError) as error:
            log.warning("request cannot be forwarded url=%s error=%r", target, error)
            raise RefusalError(
                500, "IO Error trying to forward REST request: the other worker is not reached"
            ) from error


class Internal:
    """The resource that workers use among themselves."""

    def __init__(self, desk: Desk, cluster: Cluster) -> None:
        self._desk = desk
        self._cluster = cluster

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/connectors/{connector}/tasks", self.put_tasks),
            web.put("/connectors/{connector}/fence", self.fence),
        ]

    async def put_tasks(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self._require_signature(request, body)
        try:
            said = json.loads(body)
        except (ValueError, RecursionError):
            raise bad_request("The request's body is no JSON") from None
        if not isinstance(said, list):
            raise bad_request("Task configurations have to be a list")
        configs = [config_of(each) for each in said]
        name, herder = request.match_info["connector"], self._desk.herder
        await self._desk.worker.write(requests.put_tasks(herder, name, configs))
        return answer(None)

    async def fence(self, request: web.Request) -> web.StreamResponse:
        self._require_signature(request, await request.read())
        await self._cluster.fencing.fence(request.match_info["connector"])
        return answer(None)

    def _require_signature(self, request: web.Request, body: bytes) -> None:
        """Raises RefusalError, as Apache Kafka's worker does."""
        if not self._cluster.membership.is_sessioned:
            return
        given, algorithm = request.headers.get(SIGNATURE), request.headers.get(ALGORITHM_HEADER)
        if given is None or algorithm is None:
            raise bad_request("Internal request missing required signature")
        if algorithm != ALGORITHM:
            raise bad_request(
                "This worker does not support the key signing algorithm used by other workers. "
                f"This worker is currently configured to use: [{ALGORITHM}]."
            )
        key = self._desk.herder.config.session_key
        if key is None:
            raise RefusalError(
                503, "This worker is still starting up and has not been able to read a session key"
            )
        try:
            decoded = base64.b64decode(given, validate=True)
        except (binascii.Error, ValueError) as error:
            raise bad_request(str(error)) from error
        if not hmac.compare_digest(decoded, signature(key.key, body)):
            raise RefusalError(403, "Internal request contained invalid signature.")
