"""A client of the schema registry: the calls that programs of the pipeline need."""

import asyncio
import json
import logging
from types import TracebackType
from typing import Any, Self

import aiohttp

from common.registry.wire import MalformedEventError

log = logging.getLogger(__name__)

_RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)
_REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=10)
_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class SchemaRegistryClient:
    """The three calls of the registry that services need; retries until it is answered."""

    def __init__(self, registry_url: str) -> None:
        self._registry_url = registry_url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=_REQUEST_TIMEOUT)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._session is not None
        await self._session.close()

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
            except (aiohttp.ClientError, TimeoutError) as error:
                if attempt == 0:
                    log.warning("registry does not answer, waiting for it error=%r", error)
            await asyncio.sleep(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
            attempt += 1

    async def _call_once(self, method: str, path: str, body: str | None) -> dict[str, Any]:
        assert self._session is not None, "used before `async with`"
        url = self._registry_url + path
        headers = {"Content-Type": _CONTENT_TYPE}
        async with self._session.request(method, url, data=body, headers=headers) as response:
            answer: dict[str, Any] = await response.json(content_type=None)
            if response.status == 404:
                raise MalformedEventError(f"the registry knows nothing at {path}")
            if response.status >= 400:
                text = f"{response.status} {answer}"
                raise aiohttp.ClientPayloadError(f"registry answered {text}")
            return answer
