"""Requests between workers.

A user's request that only the leader or the owner of a task can answer is forwarded unchanged, with
`forward` in the query, twice at most. The workers' own requests to each other are signed with the
cluster's session key (KIP-507).
"""

import asyncio
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

_TASKS: Final = "/connectors/{connector}/tasks"
_FENCE: Final = "/connectors/{connector}/fence"
_INTERNAL: Final = (("POST", _TASKS), ("PUT", _FENCE))
_KEPT: Final = ("Location", "Content-Type")
_ASKING: Final = ClientTimeout(total=2)
EVERYWHERE: Final = "scope=cluster"
"""Query parameter: answer for all workers of the group."""


def is_internal(request: web.Request) -> bool:
    """Return whether a request is for a resource of `Internal`, which checks signatures itself.

    The route decides and not the path's text, since another path may end with the same words.
    """
    resource = request.match_info.route.resource
    return resource is not None and (request.method, resource.canonical) in _INTERNAL


class ToOthers:
    """Forwards requests to another worker of the cluster."""

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

    async def ask_all(self, request: web.Request, path: str) -> list[Any]:
        """Ask the other workers with the user's credentials; leave out those that do not answer.

        The request carries a password, so it goes only to members of the group, at the URL in their
        metadata. Only the leader knows the members; other workers ask the leader for all of them.
        """
        herder, members = self._cluster.herder, self._cluster.membership
        if herder.is_leader:
            urls = sorted(members.other_urls)
        else:
            path = f"{path}?{EVERYWHERE}"
            urls = [herder.leader_url] if members.is_member and herder.leader_url else []
        said = await asyncio.gather(*(self._asked(request, url, path) for url in urls))
        return [each for each in said if each is not None]

    async def _asked(self, request: web.Request, url: str, path: str) -> Any:
        session = self._cluster.session
        assert session is not None
        told = {"Accept": "application/json"}
        if "Authorization" in request.headers:
            told["Authorization"] = request.headers["Authorization"]
        try:
            target = URL(str(URL(url).origin()) + path)
            async with session.get(
                target, headers=told, timeout=_ASKING, allow_redirects=False
            ) as answered:
                return await answered.json() if answered.status == 200 else None
        except (ClientError, OSError, TimeoutError, ValueError, RecursionError):
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
                request.method, target, data=body or None, headers=told, allow_redirects=False
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
    """The resource for requests of other workers."""

    def __init__(self, desk: Desk, cluster: Cluster) -> None:
        self._desk = desk
        self._cluster = cluster

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post(_TASKS, self.put_tasks),
            web.put(_FENCE, self.fence),
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
        """Raises RefusalError for a wrong signature, as Apache Kafka's worker does."""
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
