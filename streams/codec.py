"""Events as bytes and back, by the names of their schemas.

If the registry cannot be reached, these functions raise RegistryAwayError and `delivery` retries:
no record becomes a dead letter for that reason.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from common.registry import loader
from common.registry.client import SchemaRegistryClient
from common.registry.wire import EventReader, EventWriter, UnknownSchemaError
from streams.records import NEWEST_VERSION, Event


def _schema(name: str) -> dict[str, Any]:
    return loader.load(name, NEWEST_VERSION.get(name, 1))


class Codec:
    """Reads and writes events by the names of their schemas."""

    def __init__(
        self, registry_url: str, settings: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._registry = SchemaRegistryClient(registry_url, settings)
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
            reader.learn(error.schema_id, await self._registry.schema(error.schema_id))
        return reader.decode(value)

    async def encode(self, topic: str, name: str, event: Event) -> bytes:
        """Return the event as a value of this topic; raise RegistryAwayError."""
        if (topic, name) not in self._writers:
            schema = _schema(name)
            schema_id = await self._registry.register(f"{topic}-value", schema)
            self._writers[topic, name] = EventWriter(schema, schema_id)
        return self._writers[topic, name].encode(event)
