"""What all converters share: the setting `converter.type` and the base class."""

from collections.abc import Mapping
from typing import Any

from millstream.connect.config.config_def import ConfigDef
from millstream.connect.config.types import Importance, Type
from millstream.connect.config.validators import ValidString
from millstream.connect.data.records import NO_HEADERS, Headers
from millstream.connect.data.schema import Schema, SchemaAndValue
from millstream.connect.plugins import Converter, HeaderConverter

TYPE_CONFIG = "converter.type"
KAFKA_VERSION = "4.3.1"
"""These converters write the same bytes as this version of Kafka."""


def converter_config() -> ConfigDef:
    """Return the settings that every converter has."""
    return ConfigDef().define(
        TYPE_CONFIG,
        Type.STRING,
        Importance.LOW,
        "The part of a record that is converted. The worker sets it.",
        validator=ValidString("key", "value", "header"),
    )


class RecordConverter(Converter, HeaderConverter):
    """Base of the converters that serve keys, values and headers, like Kafka's of the same name."""

    @classmethod
    def version(cls) -> str:
        return KAFKA_VERSION

    @classmethod
    def config(cls) -> ConfigDef:
        return converter_config()

    def configure(self, configs: Mapping[str, Any], is_key: bool | None = None) -> None:
        """Read the settings. Without `is_key`, `converter.type` counts; its default is a header."""
        part = {None: configs.get(TYPE_CONFIG, "header"), True: "key", False: "value"}[is_key]
        self.configured(type(self).config().parse({**configs, TYPE_CONFIG: part}))

    def configured(self, settings: Mapping[str, Any]) -> None:
        """Use the settings, which are parsed and validated."""

    def from_connect_data(
        self, topic: str, schema: Schema | None, value: Any, headers: Headers = NO_HEADERS
    ) -> bytes | None:
        return self.to_bytes(schema, value)

    def to_connect_data(
        self, topic: str, value: bytes | None, headers: Headers = NO_HEADERS
    ) -> SchemaAndValue:
        return self.from_bytes(value)

    def from_connect_header(
        self, topic: str, header_key: str, schema: Schema | None, value: Any
    ) -> bytes | None:
        return self.to_bytes(schema, value)

    def to_connect_header(self, topic: str, header_key: str, value: bytes | None) -> SchemaAndValue:
        return self.from_bytes(value)

    def to_bytes(self, schema: Schema | None, value: Any) -> bytes | None:
        """Return a value as bytes."""
        raise NotImplementedError

    def from_bytes(self, value: bytes | None) -> SchemaAndValue:
        """Return the value in the bytes, with its schema."""
        raise NotImplementedError
