"""Events as services see them: written and read by name, with the registry behind.

A service registers the schemas it writes when it starts. Schemas it meets in its input are
fetched by id when they are first met. A registry that is away is waited for: without it no
event can be read, so there is nothing better to do.
"""

import asyncio
import json
import logging
from types import TracebackType
from typing import Any, Self

import aiohttp

from schemas import loader
from schemas.wire import (
    EventReader,
    EventWriter,
    MalformedEventError,
    UnknownSchemaError,
    projection,
)

log = logging.getLogger(__name__)

_RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)
_REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=10)
_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"

Event = dict[str, Any]


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


class Events:
    """Writers and readers of events, bound to one registry."""

    def __init__(self, registry: SchemaRegistryClient) -> None:
        self._registry = registry
        self._readers: list[EventReader] = []

    async def writer(self, topic: str, schema_name: str, version: int = 1) -> EventWriter:
        """Register the schema for the values of `topic` and return its writer."""
        schema = loader.load(schema_name, version)
        return EventWriter(schema, await self._registry.register(f"{topic}-value", schema))

    def reader(self, schema_name: str, *field_names: str) -> EventReader:
        """Return a reader of these fields of an event, of all fields if none is named."""
        schema = loader.load(schema_name)
        reader = EventReader(projection(schema, *field_names) if field_names else schema)
        self._readers.append(reader)
        return reader

    async def decode(self, reader: EventReader, value: bytes | None) -> Event:
        """Return the event, or raise MalformedEventError."""
        try:
            return reader.decode(value)
        except UnknownSchemaError as error:
            await self._learn(error.schema_id)
        return reader.decode(value)

    async def _learn(self, schema_id: int) -> None:
        schema = await self._registry.schema(schema_id)
        for reader in self._readers:
            reader.learn(schema_id, schema)
