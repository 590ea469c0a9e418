"""A client of the schema registry: the calls that programs of the pipeline need.

Each schema is asked for once in a process, so each call has a connection of its own and there is
nothing to close.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import aiohttp

from common.credentials.registry import registry_access
from common.registry.wire import MalformedEventError

log = logging.getLogger(__name__)

_RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)
_REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=10)
_HEADERS = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


class RegistryAwayError(Exception):
    """The registry gave no answer, or an error that a later request may not get."""


class SchemaRegistryClient:
    """Registers schemas and finds them by their ids.

    Each call raises RegistryAwayError, or, with `waits`, is repeated until it is answered.
    """

    def __init__(
        self,
        registry_url: str,
        settings: Mapping[str, str] = MappingProxyType({}),
        *,
        waits: bool = False,
    ) -> None:
        """`settings` are those of a secured registry; raises ClientSettingsError."""
        self._access = registry_access(settings)
        self._registry_url = registry_url.rstrip("/")
        self._waits = waits

    async def register(self, subject: str, schema: dict[str, Any]) -> int:
        """Return the id of this schema under this subject."""
        body = json.dumps({"schema": json.dumps(schema)})
        answer = await self._call("POST", f"/subjects/{subject}/versions", body)
        return int(answer["id"])

    async def schema(self, schema_id: int) -> dict[str, Any]:
        """Return the schema with this id, or raise MalformedEventError if there is none."""
        answer = await self._call("GET", f"/schemas/ids/{schema_id}", None)
        schema: dict[str, Any] = json.loads(answer["schema"])
        return schema

    async def _call(self, method: str, path: str, body: str | None) -> dict[str, Any]:
        attempt = 0
        while True:
            try:
                return await self._call_once(method, path, body)
            except RegistryAwayError as error:
                if not self._waits:
                    raise
                if attempt == 0:
                    log.warning("registry does not answer, waiting for it error=%s", error)
            await asyncio.sleep(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
            attempt += 1

    def _session(self) -> aiohttp.ClientSession:
        context, user = self._access
        return aiohttp.ClientSession(
            connector=None if context is None else aiohttp.TCPConnector(ssl=context),
            auth=None if user is None else aiohttp.BasicAuth(*user, encoding="utf-8"),
            timeout=_REQUEST_TIMEOUT,
            headers=_HEADERS,
        )

    async def _call_once(self, method: str, path: str, body: str | None) -> dict[str, Any]:
        url = self._registry_url + path
        try:
            async with (
                self._session() as session,
                session.request(method, url, data=body) as response,
            ):
                status = response.status
                if status == 404:
                    raise MalformedEventError(f"the registry knows nothing at {path}")
                answer: dict[str, Any] = await response.json(content_type=None)
        except MalformedEventError:
            raise
        # ValueError: an answer that is no JSON, or a text that is no UTF-8.
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise RegistryAwayError(f"no answer from {self._registry_url}: {reason}") from error
        if status >= 400:
            raise RegistryAwayError(f"registry answered {status} {answer}")
        return answer
