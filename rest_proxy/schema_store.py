"""The schemas of a registry: each is requested once, and made into a codec.

The REST interface is that of Confluent's Schema Registry. A schema with an id never changes and is
kept; the newest version of a subject is requested again after a second. References are resolved,
including nested ones. If the registry cannot be reached or lacks the schema, the refusal says so.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeVar
from urllib.parse import quote

import aiohttp

from common.credentials.registry import registry_access
from common.process.bounded_cache import BoundedCache
from rest_proxy.formats import OF_REGISTRY_TYPE, Codec, ExpensiveError, Format, FormatError
from rest_proxy.formats.avro import AvroCodec
from rest_proxy.formats.wire import framed
from rest_proxy.refusals import RestError, bad_schema, not_registered, registry_failed

T = TypeVar("T")

_TIMEOUT: Final = aiohttp.ClientTimeout(total=10)
_CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_MAX_CACHED_BYTES: Final = 8 << 20
"""The limit for the texts of schemas. A codec takes about ten times its text."""
_ENTRY_BYTES: Final = 500
_MAX_ANSWER_BYTES: Final = 8 << 20
_MAX_REFERENCES: Final = 100
_FRESH_SECONDS: Final = 1.0
_SLOW: Final = ThreadPoolExecutor(4, "schemas")
"""Runs what a stranger's schema makes long, so that others are served meanwhile. It ends: a codec
counts its steps."""


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """A schema with its id; subject and version where they are known."""

    schema_id: int
    kind: Format
    codec: Codec
    subject: str | None = None
    version: int | None = None

    async def encode(self, data: Any) -> bytes:
        """Return the bytes of a value behind the schema's id; raises FormatError."""
        try:
            body = self.codec.encode(data)
        except ExpensiveError:
            body = await _slowly(self.codec.encode_slowly, data)
        return framed(self.schema_id, body)


@dataclass(frozen=True, slots=True)
class _Text:
    """A schema as the registry answers it."""

    kind: Format
    text: str
    references: tuple[tuple[str, str, int], ...]


class SchemaStore:
    """Owns the connections to the registry and the cache of its schemas."""

    def __init__(
        self,
        url: str,
        now_seconds: Callable[[], float],
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`settings` are those of a secured registry; raises ClientSettingsError."""
        self._access = registry_access(settings)
        self._url = url.rstrip("/")
        self._now_seconds = now_seconds
        self._session: aiohttp.ClientSession | None = None
        self._codecs: BoundedCache[int, tuple[Format, Codec]] = BoundedCache(_MAX_CACHED_BYTES)
        self._registered: BoundedCache[tuple[str, str, str], int] = BoundedCache(_MAX_CACHED_BYTES)
        self._versions: BoundedCache[tuple[int, str], int] = BoundedCache(_MAX_CACHED_BYTES)
        self._newest: BoundedCache[str, tuple[float, KnownSchema]] = BoundedCache(_MAX_CACHED_BYTES)

    @property
    def url(self) -> str:
        return self._url

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def with_id(self, schema_id: int) -> KnownSchema:
        """Return the schema of an id; raises RestError."""
        found = self._codecs.get(schema_id)
        if found is None:
            answer = await self._ask("GET", f"/schemas/ids/{schema_id}")
            told = _text_of(answer)
            codec, weight = await self._codec(told, f"/schemas/ids/{schema_id}")
            found = (told.kind, codec)
            self._codecs.put(schema_id, found, weight)
        return KnownSchema(schema_id, *found)

    async def registered(self, subject: str, text: str, kind: Format) -> KnownSchema:
        """Return a schema, after registering it if necessary; raises RestError."""
        key = (subject, kind, text)
        schema_id = self._registered.get(key)
        if schema_id is None:
            body: dict[str, Any] = {"schema": text}
            if kind is not Format.AVRO:
                body["schemaType"] = kind.registry_type
            path = f"/subjects/{quote(subject, safe='')}/versions"
            schema_id = _whole(await self._ask("POST", path, body), "id")
            self._registered.put(key, schema_id, len(text) + len(subject) + _ENTRY_BYTES)
        known = await self.with_id(schema_id)
        return KnownSchema(schema_id, known.kind, known.codec, subject)

    async def of_version(self, subject: str, version: int | None) -> KnownSchema:
        """Return one version of a subject, the newest for None; raises RestError."""
        fresh = None if version is not None else self._newest.get(subject)
        if fresh is not None and self._now_seconds() - fresh[0] < _FRESH_SECONDS:
            return fresh[1]
        name = "latest" if version is None else str(version)
        answer = await self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/{name}")
        schema_id = _whole(answer, "id")
        known = await self.with_id(schema_id)
        found = KnownSchema(schema_id, known.kind, known.codec, subject, _whole(answer, "version"))
        if version is None:
            self._newest.put(subject, (self._now_seconds(), found), len(subject) + _ENTRY_BYTES)
        return found

    async def record_name(self, text: str, kind: Format) -> str | None:
        """Return the name of the record that a schema describes; raises RestError.

        For a Protobuf file only the registry knows it; callers have to give such a subject.
        """
        if kind is Format.PROTOBUF:
            raise bad_schema(
                "the subject of a Protobuf schema that is not registered must be given"
            )
        try:
            if kind is Format.AVRO:
                codec: Codec = await _slowly(AvroCodec, text)
            else:
                codec = await _slowly(_json_schema_codec, text)
        except FormatError as error:
            raise bad_schema(str(error)) from None
        return codec.record_name

    async def version_of(self, schema_id: int, subject: str) -> int | None:
        """Return the version that a schema has in a subject, None if it has none."""
        known = self._versions.get((schema_id, subject))
        if known is not None:
            return known
        places = await self._ask("GET", f"/schemas/ids/{schema_id}/versions")
        for place in places if isinstance(places, list) else ():
            if isinstance(place, dict) and place.get("subject") == subject:
                version = _whole(place, "version")
                self._versions.put((schema_id, subject), version, len(subject) + _ENTRY_BYTES)
                return version
        return None

    async def _codec(self, told: _Text, path: str) -> tuple[Codec, int]:
        references: dict[str, str] = {}
        await self._resolve(told, references)
        try:
            match told.kind:
                case Format.AVRO:
                    codec: Codec = await _slowly(AvroCodec, told.text, list(references.values()))
                case Format.JSONSCHEMA:
                    codec = await _slowly(_json_schema_codec, told.text, references)
                case _:
                    # Its library is loaded for the first such schema.
                    from rest_proxy.formats.protobuf import ProtobufCodec

                    answer = await self._ask("GET", f"{path}?format=serialized")
                    codec = await _slowly(ProtobufCodec, _text_of(answer).text, references)
        except FormatError as error:
            raise bad_schema(str(error)) from None
        weight = len(told.text) + sum(map(len, references.values())) + _ENTRY_BYTES
        return codec, weight

    async def _resolve(self, told: _Text, found: dict[str, str]) -> None:
        """Return the texts of all references of a schema, each after its own references."""
        for name, subject, version in told.references:
            if name in found:
                continue
            if len(found) >= _MAX_REFERENCES:
                raise bad_schema(f"it refers to more than {_MAX_REFERENCES} others")
            path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
            inner = _text_of(await self._ask("GET", path))
            await self._resolve(inner, found)
            if inner.kind is Format.PROTOBUF:
                inner = _text_of(await self._ask("GET", f"{path}?format=serialized"))
            found[name] = inner.text

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        if not self._url:
            raise registry_failed("none is configured (schema.registry.url)")
        if self._session is None:
            context, user = self._access
            self._session = aiohttp.ClientSession(
                timeout=_TIMEOUT,
                connector=None if context is None else aiohttp.TCPConnector(ssl=context),
                auth=None if user is None else aiohttp.BasicAuth(*user, encoding="utf-8"),
            )
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": _CONTENT_TYPE, "Accept": _CONTENT_TYPE}
        try:
            async with self._session.request(
                method, self._url + path, data=data, headers=headers
            ) as response:
                raw = await _read(response.content)
                status = response.status
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise registry_failed(f"{self._url} does not answer: {reason}") from None
        answer = _json_of(raw)
        if status >= 400:
            raise _refused(status, answer)
        return answer


async def _slowly(function: Callable[..., T], *arguments: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(_SLOW, function, *arguments)


def _json_schema_codec(text: str, references: Mapping[str, str] = MappingProxyType({})) -> Codec:
    # Its library is loaded for the first such schema.
    from rest_proxy.formats.json_schema import JsonSchemaCodec

    return JsonSchemaCodec(text, references)


async def _read(content: aiohttp.StreamReader) -> bytes:
    raw = bytearray()
    async for chunk in content.iter_any():
        raw += chunk
        if len(raw) > _MAX_ANSWER_BYTES:
            raise ValueError(f"the answer is larger than {_MAX_ANSWER_BYTES} bytes")
    return bytes(raw)


def _json_of(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _refused(status: int, answer: Any) -> RestError:
    message = answer.get("message") if isinstance(answer, dict) else None
    reason = str(message or f"HTTP {status}")
    if status == 409:
        return not_registered(reason)
    if status == 422:
        return bad_schema(reason)
    return registry_failed(reason)


def _text_of(answer: Any) -> _Text:
    if not isinstance(answer, dict) or not isinstance(answer.get("schema"), str):
        raise registry_failed("it answered without a schema")
    kind = OF_REGISTRY_TYPE.get(answer.get("schemaType") or "AVRO")
    if kind is None:
        raise registry_failed(f"its schemas of type {answer.get('schemaType')} are not known here")
    references: Mapping[str, Any]
    named = []
    for references in answer.get("references") or ():
        if not isinstance(references, dict):
            raise registry_failed("it answered with a reference that is none")
        named.append(
            (str(references.get("name")), str(references.get("subject")),
             _whole(references, "version"))
        )  # fmt: skip
    return _Text(kind, answer["schema"], tuple(named))


def _whole(answer: Any, name: str) -> int:
    found = answer.get(name) if isinstance(answer, dict) else None
    if isinstance(found, bool) or not isinstance(found, int):
        raise registry_failed(f"it answered without {name}")
    return found
