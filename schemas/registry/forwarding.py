"""Writing requests: the leader decides them, the other instances forward them to the leader."""

import asyncio
from typing import Any, Final

import aiohttp
from aiohttp import web

from common.http.guarding import peer_session
from common.http.security import OPEN, HttpSecurity
from schemas.registry.leader import Leadership
from schemas.registry.refusals import forwarding_failed, unknown_leader
from schemas.registry.topic import Decide, SchemaTopic

_FORWARDED: Final = "X-Forward"
_PASSED_ON: Final = ("Content-Type", "Accept")
_LEADER_TIMEOUT_SECONDS: Final = 10.0
_FORWARD_TIMEOUT_SECONDS: Final = 40.0


class ForwardedAnswer(Exception):  # noqa: N818  # Not an error: the answer of the leader.
    """Ends a handler with the answer of the leader."""

    def __init__(self, response: web.Response) -> None:
        super().__init__(response.status)
        self.response = response


class Writes:
    """Decides or forwards every writing request of one instance."""

    def __init__(
        self, topic: SchemaTopic, leadership: Leadership, security: HttpSecurity = OPEN
    ) -> None:
        self.leadership = leadership
        self._topic = topic
        self._security = security
        self._session: aiohttp.ClientSession | None = None

    async def write(self, request: web.Request, decide: Decide) -> Any:
        """Return the answer of the decision.

        Raises RegistryError, KafkaError, and ForwardedAnswer when the leader has answered.
        """
        await self._wait_for_a_leader()
        if self.leadership.is_leader:
            return await self._topic.write(decide)
        if _FORWARDED in request.headers:
            # The sender expects this instance to be the leader; it must not be forwarded again.
            raise unknown_leader()
        answer = await self._forward(request)
        # The client's next read from this instance finds its own write.
        await self._topic.catch_up()
        raise ForwardedAnswer(answer)

    async def close(self) -> None:
        """Close the connections to leaders."""
        if self._session is not None:
            await self._session.close()

    async def _wait_for_a_leader(self) -> None:
        """Wait for the end of an election, which follows a change of the instances."""
        try:
            async with asyncio.timeout(_LEADER_TIMEOUT_SECONDS):
                await self.leadership.wait_until_known()
        except TimeoutError as error:
            raise unknown_leader() from error

    async def _forward(self, request: web.Request) -> web.Response:
        leader = self.leadership.leader
        if leader is None:
            raise unknown_leader()
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=_FORWARD_TIMEOUT_SECONDS)
            self._session = peer_session(self._security, timeout=timeout)
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        try:
            async with self._session.request(
                request.method,
                leader.url + request.raw_path,
                data=await request.read(),
                headers={**headers, _FORWARDED: "true"},
            ) as answer:
                body = await answer.read()
                return web.Response(
                    body=body, status=answer.status, content_type=answer.content_type
                )
        except (aiohttp.ClientError, TimeoutError) as error:
            raise forwarding_failed(f"{leader.url}: {error!r}") from error
