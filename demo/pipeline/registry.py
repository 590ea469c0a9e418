"""Encode and decode events for the demo, with schemas from the registry and never from a file.

The format is Confluent's: byte 0, schema id (4 bytes big endian), Avro binary.
"""

import asyncio
import json
import struct
from http import HTTPStatus
from io import BytesIO
from typing import Any

import aiohttp
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from common.credentials.access import KafkaAccess
from common.credentials.registry import registry_access

_HEADER = struct.Struct(">BI")
_HEADER_BYTES = 5
_AWAY_SECONDS = 60.0
_RETRY_SECONDS = 0.1

Schema = dict[str, Any]


def secured_session(kafka: KafkaAccess, *, limit: int = 100) -> aiohttp.ClientSession:
    """Return a session for the registry, as the file of client settings says how to reach it."""
    context, user = registry_access(kafka.registry)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit, ssl=True if context is None else context),
        auth=None if user is None else aiohttp.BasicAuth(*user, encoding="utf-8"),
    )


class RegistryReader:
    """Fetches schemas and caches them."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session
        self._schemas: dict[int, Schema] = {}
        self._projections: dict[tuple[int, tuple[str, ...]], Any] = {}

    async def latest(self, subject: str) -> tuple[int, Schema]:
        """Return the id and schema of the latest version of a subject."""
        answer = await self._get(f"/subjects/{subject}/versions/latest")
        return int(answer["id"]), json.loads(answer["schema"])

    async def decode(self, value: bytes, *field_names: str) -> dict[str, Any]:
        """Return the named fields of an event; the decoder skips all others."""
        _, schema_id = _HEADER.unpack_from(value)
        schema = self._schemas.get(schema_id)
        if schema is None:
            answer = await self._get(f"/schemas/ids/{schema_id}")
            schema = self._schemas[schema_id] = json.loads(answer["schema"])
        projection = self._projections.get((schema_id, field_names))
        if projection is None:
            fields = [field for field in schema["fields"] if field["name"] in field_names]
            projection = parse_schema({**schema, "fields": fields})
            self._projections[schema_id, field_names] = projection
        buffer = BytesIO(value)
        buffer.seek(_HEADER_BYTES)
        event = schemaless_reader(buffer, schema, projection)
        assert isinstance(event, dict)
        return event

    async def _get(self, path: str) -> Any:
        """Retry while the registry restarts after a kill. Raise aiohttp.ClientError."""
        async with asyncio.timeout(_AWAY_SECONDS):
            while True:
                try:
                    async with self._session.get(self._url + path) as response:
                        response.raise_for_status()
                        return await response.json(content_type=None)
                except aiohttp.ClientConnectionError:
                    await asyncio.sleep(_RETRY_SECONDS)
                except aiohttp.ClientResponseError as error:
                    if error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                        raise
                    await asyncio.sleep(_RETRY_SECONDS)


def encoder(schema_id: int, schema: Schema) -> Any:
    """Return the function that encodes an event."""
    parsed = parse_schema(schema)
    header = _HEADER.pack(0, schema_id)

    def encode(event: dict[str, Any]) -> bytes:
        buffer = BytesIO()
        buffer.write(header)
        schemaless_writer(buffer, parsed, event)
        return buffer.getvalue()

    return encode
