"""The registry's REST interface, as far as serializers and deserializers need it.

Paths, bodies, content type and error codes are Confluent's (docs.confluent.io, "Schema Registry
API reference"). Not here yet: deletion, compatibility checks (so /config says NONE), modes.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiokafka.errors import KafkaError
from fastavro import parse_schema

from schemas.registry.domain import SchemaVersion, compact_json
from schemas.registry.topic import SchemaTopic

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
TOPIC_KEY = web.AppKey("topic", SchemaTopic)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RegistryError(Exception):
    """A refusal: an error code whose first three digits are the HTTP status."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code

    def response(self) -> web.Response:
        status = self.error_code if self.error_code < 1000 else self.error_code // 100
        return _answer({"error_code": self.error_code, "message": str(self)}, status)


def _answer(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=compact_json(body).encode(), status=status, content_type=CONTENT_TYPE)


@web.middleware
async def registry_errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Turn every error into Confluent's error body."""
    try:
        return await handler(request)
    except RegistryError as error:
        return error.response()
    except web.HTTPException as error:
        return RegistryError(error.status, f"HTTP {error.status} {error.reason}").response()
    except (KafkaError, TimeoutError) as error:
        return RegistryError(50001, f"Error in the backend data store: {error}").response()


def canonical_schema(body: Any) -> str:
    """Return the schema of a request body without white space; refuse what is no Avro schema."""
    if not isinstance(body, dict) or not isinstance(body.get("schema"), str):
        raise RegistryError(42201, "Empty schema")
    if body.get("schemaType", "AVRO") != "AVRO":
        raise RegistryError(42201, f"Invalid schema type {body['schemaType']}, known: AVRO")
    try:
        schema = json.loads(body["schema"])
        parse_schema(schema)
    # fastavro raises its own errors, and KeyError or TypeError for odd shapes.
    except Exception as error:
        raise RegistryError(42201, f"Invalid schema: {error!r}") from error
    return compact_json(schema)


async def _read_schema(request: web.Request) -> str:
    try:
        body = await request.json()
    except (ValueError, UnicodeDecodeError) as error:
        raise RegistryError(42201, f"Malformed JSON: {error}") from error
    return canonical_schema(body)


def _named_version(topic: SchemaTopic, subject: str, text: str) -> SchemaVersion:
    if not topic.registry.versions(subject):
        raise RegistryError(40401, f"Subject '{subject}' not found.")
    if text in ("latest", "-1"):
        entry = topic.registry.latest(subject)
    elif text.isascii() and text.isdigit() and 1 <= int(text) < 2**31:
        entry = topic.registry.version(subject, int(text))
    else:
        raise RegistryError(
            42202,
            f"The specified version '{text}' is not a valid version id. "
            'Allowed values are between [1, 2^31-1] and the string "latest"',
        )
    if entry is None:
        raise RegistryError(40402, f"Version {text} not found.")
    return entry


def _entry_body(entry: SchemaVersion) -> dict[str, Any]:
    return {
        "subject": entry.subject,
        "version": entry.version,
        "id": entry.schema_id,
        "schema": entry.schema,
    }


async def get_subjects(request: web.Request) -> web.Response:
    return _answer(request.app[TOPIC_KEY].registry.subjects())


async def get_versions(request: web.Request) -> web.Response:
    subject = request.match_info["subject"]
    versions = request.app[TOPIC_KEY].registry.versions(subject)
    if not versions:
        raise RegistryError(40401, f"Subject '{subject}' not found.")
    return _answer(versions)


async def get_version(request: web.Request) -> web.Response:
    names = request.match_info
    entry = _named_version(request.app[TOPIC_KEY], names["subject"], names["version"])
    return _answer(_entry_body(entry))


async def get_version_schema(request: web.Request) -> web.Response:
    names = request.match_info
    entry = _named_version(request.app[TOPIC_KEY], names["subject"], names["version"])
    return web.Response(body=entry.schema.encode(), content_type=CONTENT_TYPE)


async def register(request: web.Request) -> web.Response:
    schema = await _read_schema(request)
    entry = await request.app[TOPIC_KEY].register(request.match_info["subject"], schema)
    return _answer({"id": entry.schema_id})


async def look_up(request: web.Request) -> web.Response:
    subject = request.match_info["subject"]
    registry = request.app[TOPIC_KEY].registry
    if not registry.versions(subject):
        raise RegistryError(40401, f"Subject '{subject}' not found.")
    entry = registry.find(subject, await _read_schema(request))
    if entry is None:
        raise RegistryError(40403, "Schema not found")
    return _answer(_entry_body(entry))


def _entries_with_id(request: web.Request) -> list[SchemaVersion]:
    text = request.match_info["schema_id"]
    entries = request.app[TOPIC_KEY].registry.with_id(int(text)) if text.isdigit() else []
    if not entries:
        raise RegistryError(40403, f"Schema {text} not found")
    return entries


async def get_schema(request: web.Request) -> web.Response:
    return _answer({"schema": _entries_with_id(request)[0].schema})


async def get_schema_text(request: web.Request) -> web.Response:
    entry = _entries_with_id(request)[0]
    return web.Response(body=entry.schema.encode(), content_type=CONTENT_TYPE)


async def get_schema_versions(request: web.Request) -> web.Response:
    entries = _entries_with_id(request)
    return _answer([{"subject": entry.subject, "version": entry.version} for entry in entries])


async def get_types(request: web.Request) -> web.Response:
    return _answer(["AVRO"])


async def get_config(request: web.Request) -> web.Response:
    return _answer({"compatibilityLevel": "NONE"})


async def get_subject_config(request: web.Request) -> web.Response:
    subject = request.match_info["subject"]
    if request.query.get("defaultToGlobal", "false").lower() == "true":
        return await get_config(request)
    raise RegistryError(
        40408, f"Subject '{subject}' does not have subject-level compatibility configured"
    )


async def get_live(request: web.Request) -> web.Response:
    return _answer({"status": "live"})


async def get_ready(request: web.Request) -> web.Response:
    is_ready = request.app[TOPIC_KEY].is_loaded
    return _answer({"status": "ready" if is_ready else "starting"}, 200 if is_ready else 503)


ROUTES = [
    web.get("/subjects", get_subjects),
    web.get("/subjects/{subject}/versions", get_versions),
    web.get("/subjects/{subject}/versions/{version}", get_version),
    web.get("/subjects/{subject}/versions/{version}/schema", get_version_schema),
    web.post("/subjects/{subject}/versions", register),
    web.post("/subjects/{subject}", look_up),
    web.get("/schemas/types", get_types),
    web.get("/schemas/ids/{schema_id}", get_schema),
    web.get("/schemas/ids/{schema_id}/schema", get_schema_text),
    web.get("/schemas/ids/{schema_id}/versions", get_schema_versions),
    web.get("/config", get_config),
    web.get("/config/{subject}", get_subject_config),
    web.get("/", get_live),
    web.get("/health/live", get_live),
    web.get("/health/ready", get_ready),
]
