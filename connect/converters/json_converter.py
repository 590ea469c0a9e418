"""JsonConverter: values as JSON, with their schema in an envelope or without a schema.

With `schemas.enable` (the default) the bytes are {"schema":...,"payload":...}, and no other form
is read. Without it the bytes are the payload alone: written by its schema, read without one.

The text of a schema, and the functions that write and read its values, are built once. Most
messages of a topic begin with the same schema, so its text is compared and not parsed again.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, TypeVar

from connect.converters.json_readers import JsonReaders, Read
from connect.converters.json_schema_form import schema_from, schema_text
from connect.converters.json_text import EXACT, PLAIN, long, quoted, read, read_at, text_of
from connect.converters.json_writers import JsonWriters, Write
from connect.converters.settings import RecordConverter, converter_config
from millstream.connect.config.config_def import ConfigDef
from millstream.connect.config.types import Importance, Type, Width
from millstream.connect.config.validators import CaseInsensitiveValidString
from millstream.connect.data.schema import NULL, Schema, SchemaAndValue
from millstream.connect.errors import DataException

HIGH, LOW = Importance.HIGH, Importance.LOW
_SCHEMA, _PAYLOAD = '{"schema":', ',"payload":'
_ENVELOPE = {"schema", "payload"}
_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """A cache of at most `max_count` values; it drops the least recently used."""

    def __init__(self, max_count: int) -> None:
        self._max_count = max_count
        self._made: OrderedDict[_Key, _Value] = OrderedDict()

    def get(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        """Return the value of a key; call `make` if it is not in the cache."""
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
            if len(self._made) > self._max_count:
                self._made.popitem(last=False)
        else:
            self._made.move_to_end(key)
        return found


class JsonConverter(RecordConverter):
    """Converts to and from JSON with or without schemas."""

    kafka_class = "org.apache.kafka.connect.json.JsonConverter"

    @classmethod
    def config(cls) -> ConfigDef:
        return (
            converter_config()
            .define(
                "schemas.enable",
                Type.BOOLEAN,
                HIGH,
                "Whether each key and value carries its schema.",
                default=True,
                group="Schemas",
                order_in_group=0,
                width=Width.MEDIUM,
                display_name="Enable Schemas",
            )
            .define(
                "schemas.cache.size",
                Type.INT,
                HIGH,
                "The number of schemas that are kept ready at most.",
                default=1000,
                group="Schemas",
                order_in_group=1,
                width=Width.MEDIUM,
                display_name="Schema Cache Size",
            )
            .define(
                "schema.content",
                Type.STRING,
                HIGH,
                "A schema for everything that is read, as JSON: what is read then carries none. "
                "Only with schemas.enable, and only for sinks.",
                default=None,
                group="Schemas",
                order_in_group=2,
                width=Width.MEDIUM,
                display_name="Schema Content",
            )
            .define(
                "decimal.format",
                Type.STRING,
                LOW,
                "Decimals are written as BASE64, the bytes of their digits, or NUMERIC, as "
                "numbers. Both are read.",
                default="BASE64",
                validator=CaseInsensitiveValidString("BASE64", "NUMERIC"),
                group="Serialization",
                order_in_group=0,
                width=Width.MEDIUM,
                display_name="Decimal Format",
            )
            .define(
                "replace.null.with.default",
                Type.BOOLEAN,
                LOW,
                "Whether a field that is null and has a default is written and read as its "
                "default.",
                default=True,
                group="Serialization",
                order_in_group=1,
                width=Width.MEDIUM,
                display_name="Replace null with default",
            )
        )

    def configured(self, settings: Mapping[str, Any]) -> None:
        is_null_replaced = settings["replace.null.with.default"]
        size = settings["schemas.cache.size"]
        self._is_with_schemas = settings["schemas.enable"]
        self._writers = JsonWriters(
            is_decimal_numeric=settings["decimal.format"].upper() == "NUMERIC",
            is_null_replaced=is_null_replaced,
        )
        self._readers = JsonReaders(is_null_replaced=is_null_replaced)
        self._written: Recent[Schema | None, tuple[str, Write]] = Recent(size)
        self._read: Recent[str, tuple[Schema | None, Read]] = Recent(size)
        self._prefix = ""  # the previous message's text before its payload
        self._read_payload: tuple[Schema | None, Read] = (None, _plain)
        content = settings["schema.content"]
        self._given = self._reading(read(content, EXACT)) if content else None

    def to_bytes(self, schema: Schema | None, value: Any) -> bytes | None:
        if schema is None and value is None:
            return None
        try:
            envelope, write = self._written.get(schema, lambda: self._writing(schema))
            text = f"{envelope}{write(value)}}}" if self._is_with_schemas else write(value)
            return text.encode()
        except RecursionError:
            raise DataException("The value or its schema is nested too deeply") from None
        except UnicodeEncodeError as error:
            raise DataException(f"A string is not valid Unicode: {error.reason}") from error

    def from_bytes(self, value: bytes | None) -> SchemaAndValue:
        if value is None:
            return NULL
        try:
            text = text_of(value)
            if not self._is_with_schemas:
                return SchemaAndValue(None, read(text, PLAIN))
            if self._given is not None:
                schema, read_value = self._given
                return SchemaAndValue(schema, read_value(read(text, EXACT)))
            return self._same_schema(text) or self._from_envelope(text)
        except RecursionError:
            raise DataException("The value or its schema is nested too deeply") from None

    def _same_schema(self, text: str) -> SchemaAndValue | None:
        """Read a message whose schema text equals the previous message's; None if it does not."""
        if not self._prefix or not text.startswith(self._prefix):
            return None
        try:
            form, end = read_at(text, len(self._prefix), EXACT)
        except DataException:
            return None
        if text[end:] != "}":
            return None
        schema, read_value = self._read_payload
        return SchemaAndValue(schema, read_value(form))

    def _from_envelope(self, text: str) -> SchemaAndValue:
        form = read(text, EXACT)
        if not isinstance(form, dict) or form.keys() != _ENVELOPE:
            raise DataException(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may '
                "not contain additional fields. If you are trying to deserialize plain JSON data, "
                "set schemas.enable=false in your converter configuration."
            )
        prefix = _prefix_of(text)
        key = prefix or quoted(str(form["schema"]))
        schema, read_value = self._read.get(key, lambda: self._reading(form["schema"]))
        if prefix:
            self._prefix, self._read_payload = prefix, (schema, read_value)
        payload = form["payload"]
        return SchemaAndValue(schema, read_value(payload))

    def _writing(self, schema: Schema | None) -> tuple[str, Write]:
        def default_text(of: Schema, value: Any) -> str:
            return self._writers.of(of)(value)

        return f"{_SCHEMA}{schema_text(schema, default_text)}{_PAYLOAD}", self._writers.of(schema)

    def _reading(self, form: Any) -> tuple[Schema | None, Read]:
        def default_value(of: Schema, value: Any) -> Any:
            return self._readers.of(of)(value)

        schema = schema_from(form, default_value)
        return schema, _plain if schema is None else self._readers.of(schema)


def _prefix_of(text: str) -> str:
    """Return the text before the payload; empty unless this converter's layout is found."""
    if not text.startswith(_SCHEMA):
        return ""
    _, end = read_at(text, len(_SCHEMA), PLAIN)
    return text[: end + len(_PAYLOAD)] if text.startswith(_PAYLOAD, end) else ""


def _plain(form: Any) -> Any:
    """Return parsed JSON without a schema; numbers with a decimal point become floats."""
    match form:
        case dict():
            return {name: _plain(one) for name, one in form.items()}
        case list():
            return [_plain(one) for one in form]
        case None | str() | bool():
            return form
        case int():
            return long(form)
        case _:
            return float(form)
