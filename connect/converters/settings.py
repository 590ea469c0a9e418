"""What all converters share: the setting that says which part of a record is converted."""

from collections.abc import Mapping
from typing import Any

from millrace.connect.config.config_def import ConfigDef
from millrace.connect.config.types import Importance, Type
from millrace.connect.config.validators import ValidString
from millrace.connect.data.records import NO_HEADERS, Headers
from millrace.connect.data.schema import Schema, SchemaAndValue
from millrace.connect.plugins import Converter, HeaderConverter

TYPE_CONFIG = "converter.type"
KAFKA_VERSION = "4.3.1"
"""The version of Kafka whose converters these are in every byte."""


def converter_config() -> ConfigDef:
    """Return the settings every converter has."""
    return ConfigDef().define(
        TYPE_CONFIG,
        Type.STRING,
        Importance.LOW,
        "Which part of a record is converted; the worker sets it.",
        validator=ValidString("key", "value", "header"),
    )


class RecordConverter(Converter, HeaderConverter):
    """A converter for keys, values and headers alike, as the one of this name in Kafka."""

    @classmethod
    def version(cls) -> str:
        return KAFKA_VERSION

    @classmethod
    def config(cls) -> ConfigDef:
        return converter_config()

    def configure(self, configs: Mapping[str, Any], is_key: bool | None = None) -> None:
        """Read the settings; without `is_key` it is a header's unless they say something else."""
        part = {None: configs.get(TYPE_CONFIG, "header"), True: "key", False: "value"}[is_key]
        self.configured(type(self).config().parse({**configs, TYPE_CONFIG: part}))

    def configured(self, settings: Mapping[str, Any]) -> None:
        """Take the settings, read and checked."""

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
        """Return the bytes of a value."""
        raise NotImplementedError

    def from_bytes(self, value: bytes | None) -> SchemaAndValue:
        """Return what bytes hold."""
        raise NotImplementedError
