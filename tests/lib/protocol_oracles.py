"""Two other codecs of the protocol, kio and kafka-python, to compare Millstream's codec with.

Each oracle decodes bytes that Millstream encoded, and encodes the decoded values again. Values are
compared in a plain form: a dict for each struct, by Millstream's field names, with the fields of
the version.
"""

import dataclasses
import io
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from typing import Any

import kafka.protocol.admin
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer
import kafka.protocol.sasl
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from common.kafka.protocol.layout import layout_of
from common.kafka.protocol.message import Field, Message, Struct
from common.kafka.protocol.wire import ZERO_UUID

KAFKA_PYTHON_MODULES = (
    kafka.protocol.admin,
    kafka.protocol.consumer,
    kafka.protocol.metadata,
    kafka.protocol.producer,
    kafka.protocol.sasl,
)


@cache
def fields_of(struct: type[Struct], version: int) -> list[Field]:
    """Return the fields of a version, in the order of their declaration."""
    absent = layout_of(struct, version).absent
    return [field for field in struct.__fields__.values() if field not in absent]


def plain(value: Any, version: int) -> Any:
    """Return the plain form of one of Millstream's values."""
    if isinstance(value, Struct):
        return {
            field.name: plain(getattr(value, field.name), version)
            for field in fields_of(type(value), version)
        }
    if isinstance(value, list):
        return [plain(element, version) for element in value]
    return bytes(value) if isinstance(value, memoryview) else value


class KafkaPython:
    """kafka-python's codec, which has the versions that Kafka 4 has removed."""

    name = "kafka-python"

    def __init__(self, message: type[Message], version: int) -> None:
        self._message = message
        self._version = version
        self._oracle: Any = next(
            getattr(module, message.__name__)
            for module in KAFKA_PYTHON_MODULES
            if hasattr(module, message.__name__)
        )

    @classmethod
    def knows(cls, message: type[Message], version: int) -> bool:
        """Return whether the oracle can judge a version."""
        for module in KAFKA_PYTHON_MODULES:
            oracle = getattr(module, message.__name__, None)
            if oracle is not None and hasattr(oracle, "max_version"):
                return bool(version <= oracle.max_version)
        return False

    def judge(self, encoded: bytes) -> tuple[Any, bytes]:
        """Return what the oracle sees, and what it would have written."""
        decoded = self._oracle.decode(encoded, version=self._version, header=False)
        seen = self._plain(decoded, self._message)
        decoded._header = None
        return seen, bytes(decoded.encode(version=self._version, header=False))

    def _plain(self, value: Any, struct: type[Struct]) -> Any:
        found = {}
        for field in fields_of(struct, self._version):
            # The library drops the prefix of `topic_authorized_operations` and similar names.
            name = field.name if hasattr(value, field.name) else "authorized_operations"
            found[field.name] = self._plain_field(getattr(value, name), field)
        return found

    def _plain_field(self, value: Any, field: Field) -> Any:
        if isinstance(value, set):
            return sum(1 << bit for bit in value)
        if value is None and field.name.endswith("authorized_operations"):
            return -(2**31)
        if field.kind == "uuid":
            return _plain_number(value, "uuid")
        if isinstance(value, list) and isinstance(field.element, type):
            return [self._plain(element, field.element) for element in value]
        if isinstance(value, list) and field.element == "uuid":
            return [_plain_number(element, "uuid") for element in value]
        if isinstance(field.element, type) and value is not None:
            return self._plain(value, field.element)
        return bytes(value) if isinstance(value, memoryview | bytearray) else value


class Kio:
    """kio's codec, which has every API from the oldest versions of Kafka 4."""

    name = "kio"

    def __init__(self, message: type[Message], version: int) -> None:
        self._message = message
        self._version = version
        module, _, class_name = (self._location(message, version) or "").partition(":")
        self._oracle: Any = getattr(import_module(module), class_name)

    @classmethod
    def knows(cls, message: type[Message], version: int) -> bool:
        """Return whether the oracle can judge a version."""
        return cls._location(message, version) is not None

    @staticmethod
    def _location(message: type[Message], version: int) -> str | None:
        """Return the module of a class without importing it, because there are hundreds."""
        name = message.__name__
        kind, schema = EntityType.data, name
        for ending in (EntityType.request, EntityType.response):
            if name.endswith(ending.name.title()):
                kind, schema = ending, name.removesuffix(ending.name.title())
        words = "".join(f"_{c.lower()}" if c.isupper() else c for c in schema).lstrip("_")
        return schema_name_map.get(words, {}).get(version, {}).get(kind)

    def judge(self, encoded: bytes) -> tuple[Any, bytes]:
        """Return what the oracle sees, and what it would have written."""
        entity, size = entity_reader(self._oracle)(encoded, 0)
        assert size == len(encoded)
        written = io.BytesIO()
        entity_writer(self._oracle)(written, entity)
        return self._plain(entity, self._message), written.getvalue()

    def _plain(self, entity: Any, struct: type[Struct]) -> Any:
        theirs = dataclasses.fields(entity)
        ours = fields_of(struct, self._version)
        assert len(theirs) == len(ours), (theirs, ours)
        return {
            field.name: self._plain_field(getattr(entity, their.name), field)
            for field, their in zip(ours, theirs, strict=True)
        }

    def _plain_field(self, value: Any, field: Field) -> Any:
        if isinstance(value, tuple):
            return list(self._plain_elements(value, field))
        if isinstance(field.element, type) and value is not None:
            return self._plain(value, field.element)
        return _plain_number(value, field.kind)

    def _plain_elements(self, values: tuple[Any, ...], field: Field) -> Iterator[Any]:
        for value in values:
            if isinstance(field.element, type):
                yield self._plain(value, field.element)
            else:
                yield _plain_number(value, field.element)


def _plain_number(value: Any, kind: str) -> Any:
    if kind == "uuid":
        return ZERO_UUID if value is None else value.bytes
    if isinstance(value, timedelta):
        return round(value / timedelta(milliseconds=1))
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if kind.startswith("int"):
        return -1 if value is None else int(value)
    return value


ORACLES = (KafkaPython, Kio)
