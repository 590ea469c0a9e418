"""Events as bytes and back, with the schema registry behind.

Schemas that are written are registered before the first record; schemas that are met are fetched by
id. A registry that is away raises, and `delivery` tries again: nothing is set aside for that.
"""

import json
from typing import Any

import aiohttp

from common.registry import loader
from common.registry.wire import EventReader, EventWriter, MalformedEventError, UnknownSchemaError
from streams.records import NEWEST_VERSION, Event

_TIMEOUT = aiohttp.ClientTimeout(total=10)
_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class RegistryAwayError(Exception):
    """The registry gave no answer, or one that it may take back."""


def _schema(name: str) -> dict[str, Any]:
    return loader.load(name, NEWEST_VERSION.get(name, 1))


class Codec:
    """Reads and writes events by the names of their schemas."""

    def __init__(self, registry_url: str) -> None:
        self._registry_url = registry_url.rstrip("/")
        self._readers: dict[str, EventReader] = {}
        self._writers: dict[tuple[str, str], EventWriter] = {}

    async def decode(self, name: str, value: bytes | None) -> Event:
        """Return the event; raise MalformedEventError or RegistryAwayError."""
        if name not in self._readers:
            self._readers[name] = EventReader(_schema(name))
        reader = self._readers[name]
        try:
            return reader.decode(value)
        except UnknownSchemaError as error:
            answer = await self._call("GET", f"/schemas/ids/{error.schema_id}")
            reader.learn(error.schema_id, json.loads(answer["schema"]))
        return reader.decode(value)

    async def encode(self, topic: str, name: str, event: Event) -> bytes:
        """Return the event as a value of this topic; raise RegistryAwayError."""
        if (topic, name) not in self._writers:
            schema = _schema(name)
            body = {"schema": json.dumps(schema)}
            answer = await self._call("POST", f"/subjects/{topic}-value/versions", body)
            self._writers[topic, name] = EventWriter(schema, int(answer["id"]))
        return self._writers[topic, name].encode(event)

    async def _call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        headers = {"Content-Type": _CONTENT_TYPE}
        data = None if body is None else json.dumps(body)
        url = self._registry_url + path
        try:
            # Once per schema and process, so a session of its own costs nothing.
            async with (
                aiohttp.ClientSession(timeout=_TIMEOUT, headers=headers) as session,
                session.request(method, url, data=data) as response,
            ):
                answer: dict[str, Any] = await response.json(content_type=None)
                status = response.status
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise RegistryAwayError(f"registry does not answer: {error!r}") from error
        if status == 404:
            raise MalformedEventError(f"the registry knows nothing at {path}")
        if status >= 400:
            raise RegistryAwayError(f"registry answered {status} {answer}")
        return answer
