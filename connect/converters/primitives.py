"""Converters for a single type: unchanged bytes, strings, booleans, big-endian numbers."""

import codecs
import struct
from collections.abc import Mapping
from typing import Any, ClassVar

from connect.converters.settings import RecordConverter, converter_config
from millstream.connect.config.config_def import ConfigDef
from millstream.connect.config.types import Importance, Width
from millstream.connect.config.types import Type as ConfigType
from millstream.connect.data.java_text import float32
from millstream.connect.data.schema import Schema, SchemaAndValue, Type
from millstream.connect.data.string_form import string_form
from millstream.connect.errors import ConfigException, DataException

# Java writes these encodings big-endian, and reads them so if there is no byte order mark. Python
# uses the byte order of the machine.
_UTF16 = "utf-16"
_UTF16_MARKS = (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)
_OPTIONAL_BYTES = Schema.bytes(optional=True)
_OPTIONAL_STRING = Schema.string(optional=True)
_OPTIONAL_BOOLEAN = Schema.boolean(optional=True)


class ByteArrayConverter(RecordConverter):
    """Passes bytes through unchanged."""

    kafka_class = "org.apache.kafka.connect.converters.ByteArrayConverter"

    def to_bytes(self, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not Type.BYTES:
            raise DataException(f"Invalid schema type for ByteArrayConverter: {schema.type}")
        if value is None or isinstance(value, bytes):
            return value
        if not isinstance(value, bytearray | memoryview):
            raise DataException(
                f"ByteArrayConverter is not compatible with objects of type {type(value).__name__}"
            )
        return bytes(value)

    def from_bytes(self, value: bytes | None) -> SchemaAndValue:
        return SchemaAndValue(_OPTIONAL_BYTES, value)


class StringConverter(RecordConverter):
    """Strings in a configured encoding; other values are written as Java's toString writes them.

    As in Java, a character that the encoding lacks becomes a question mark, and bytes that are
    invalid in it become the replacement character.
    """

    kafka_class = "org.apache.kafka.connect.storage.StringConverter"
    _encoding = "utf-8"

    @classmethod
    def config(cls) -> ConfigDef:
        return converter_config().define(
            "converter.encoding",
            ConfigType.STRING,
            Importance.HIGH,
            "The encoding of texts, by its usual name: UTF-8, ISO-8859-1, UTF-16.",
            default="UTF-8",
            width=Width.MEDIUM,
            display_name="Encoding",
        )

    def configured(self, settings: Mapping[str, Any]) -> None:
        encoding = settings["converter.encoding"]
        try:
            # Some of Python's codecs do not encode text: rot13, base64.
            " ".encode(encoding).decode(encoding)
            self._encoding = codecs.lookup(encoding).name
        except (LookupError, ValueError, TypeError) as error:
            raise ConfigException.of_value("converter.encoding", encoding) from error

    def to_bytes(self, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        text = value if isinstance(value, str) else string_form(schema, value)
        if self._encoding == _UTF16 and text:
            return codecs.BOM_UTF16_BE + text.encode("utf-16-be", "replace")
        return text.encode(self._encoding, "replace") if text else b""

    def from_bytes(self, value: bytes | None) -> SchemaAndValue:
        if value is None:
            return SchemaAndValue(_OPTIONAL_STRING, None)
        if self._encoding == _UTF16 and not value.startswith(_UTF16_MARKS):
            return SchemaAndValue(_OPTIONAL_STRING, value.decode("utf-16-be", "replace"))
        return SchemaAndValue(_OPTIONAL_STRING, value.decode(self._encoding, "replace"))


class BooleanConverter(RecordConverter):
    """Booleans as one byte, 1 or 0."""

    kafka_class = "org.apache.kafka.connect.converters.BooleanConverter"

    def to_bytes(self, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataException(f"Invalid schema type for BooleanConverter: {schema.type}")
        if value is None:
            return None
        if not isinstance(value, bool):
            raise DataException(
                f"BooleanConverter is not compatible with objects of type {type(value).__name__}"
            )
        return b"\1" if value else b"\0"

    def from_bytes(self, value: bytes | None) -> SchemaAndValue:
        if value is None:
            return SchemaAndValue(_OPTIONAL_BOOLEAN, None)
        if value not in {b"\0", b"\1"}:
            raise DataException(f"Failed to deserialize boolean: {value[:16]!r}")
        return SchemaAndValue(_OPTIONAL_BOOLEAN, value == b"\1")


class _NumberConverter(RecordConverter):
    """Base of the converters for numbers of fixed size."""

    _called: ClassVar[str]
    _format: ClassVar[struct.Struct]
    _schema: ClassVar[Schema]

    def to_bytes(self, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        if schema is not None and schema.type is not self._schema.type:
            raise DataException(f"Failed to serialize to {self._called} (was {schema.type})")
        try:
            self._schema.validate(value)
        except DataException as error:
            raise DataException(
                f"Failed to serialize to {self._called} (was {type(value).__name__}): {error}"
            ) from error
        return self._format.pack(float32(value) if self._format.format == ">f" else value)

    def from_bytes(self, value: bytes | None) -> SchemaAndValue:
        if value is None:
            return SchemaAndValue(self._schema, None)
        if len(value) != self._format.size:
            raise DataException(
                f"Failed to deserialize {self._called}: "
                f"{len(value)} bytes instead of {self._format.size}"
            )
        return SchemaAndValue(self._schema, self._format.unpack(value)[0])


class ShortConverter(_NumberConverter):
    """Integers of 16 bits."""

    kafka_class = "org.apache.kafka.connect.converters.ShortConverter"
    _called, _format, _schema = "short", struct.Struct(">h"), Schema.int16(optional=True)


class IntegerConverter(_NumberConverter):
    """Integers of 32 bits."""

    kafka_class = "org.apache.kafka.connect.converters.IntegerConverter"
    _called, _format, _schema = "integer", struct.Struct(">i"), Schema.int32(optional=True)


class LongConverter(_NumberConverter):
    """Integers of 64 bits."""

    kafka_class = "org.apache.kafka.connect.converters.LongConverter"
    _called, _format, _schema = "long", struct.Struct(">q"), Schema.int64(optional=True)


class FloatConverter(_NumberConverter):
    """Floating-point numbers of 32 bits."""

    kafka_class = "org.apache.kafka.connect.converters.FloatConverter"
    _called, _format, _schema = "float", struct.Struct(">f"), Schema.float32(optional=True)


class DoubleConverter(_NumberConverter):
    """Floating-point numbers of 64 bits."""

    kafka_class = "org.apache.kafka.connect.converters.DoubleConverter"
    _called, _format, _schema = "double", struct.Struct(">d"), Schema.float64(optional=True)
