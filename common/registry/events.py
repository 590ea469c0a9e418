"""Events as services see them: written and read by name, with the registry behind.

A service registers the schemas it writes when it starts. Schemas it meets in its input are
fetched by id when they are first met. A service waits for a registry that is away: without it no
event can be read.
"""

import logging
from typing import Any

from common.registry import loader
from common.registry.client import SchemaRegistryClient
from common.registry.wire import EventReader, EventWriter, UnknownSchemaError, projection

log = logging.getLogger(__name__)

Event = dict[str, Any]


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
