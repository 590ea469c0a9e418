"""What can be plugged into Connect besides connectors: the classes to derive from.

A worker makes one object for each place in a configuration, calls `configure` once with the
settings of that place (their prefix taken off), uses it from one task only, and calls `close`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Generic

from millstream.connect.config.config_def import ConfigDef, ConfigValue
from millstream.connect.data.records import NO_HEADERS, Headers, RecordT
from millstream.connect.data.schema import Schema, SchemaAndValue


class ConnectPlugin(ABC):  # noqa: B024 - what has to be there differs by kind
    """What every plugin has.

    `kafka_class` is the class of Kafka Connect it stands for, if any: configurations that name
    that class find this one, and answers name it.
    """

    kafka_class: str | None = None

    @classmethod
    def version(cls) -> str:
        """Return the version shown in /connector-plugins."""
        return "undefined"

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the settings it has."""
        return ConfigDef()

    @classmethod
    def validate(cls, settings: Mapping[str, str]) -> dict[str, ConfigValue]:
        """Look at all settings together; override to refuse what one definition cannot say."""
        return cls.config().validate_all(settings)

    def close(self) -> None:  # noqa: B027 - most have nothing to give back
        """Give back what it holds; called once, after the last use."""


class Converter(ConnectPlugin):
    """Turns a key or a value into the bytes of a record, and back."""

    @abstractmethod
    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        """Read the settings; `is_key` tells which half of a record it works on."""

    @abstractmethod
    def from_connect_data(
        self, topic: str, schema: Schema | None, value: Any, headers: Headers = NO_HEADERS
    ) -> bytes | None:
        """Return the bytes of a value; raises DataException when it cannot be written."""

    @abstractmethod
    def to_connect_data(
        self, topic: str, value: bytes | None, headers: Headers = NO_HEADERS
    ) -> SchemaAndValue:
        """Return what bytes hold; raises DataException when they are damaged."""


class HeaderConverter(ConnectPlugin):
    """Turns the value of a header into bytes, and back."""

    @abstractmethod
    def configure(self, configs: Mapping[str, Any]) -> None:
        """Read the settings."""

    @abstractmethod
    def from_connect_header(
        self, topic: str, header_key: str, schema: Schema | None, value: Any
    ) -> bytes | None:
        """Return the bytes of a header's value."""

    @abstractmethod
    def to_connect_header(self, topic: str, header_key: str, value: bytes | None) -> SchemaAndValue:
        """Return what the bytes of a header hold."""


class Transformation(ConnectPlugin, Generic[RecordT]):
    """Makes another record of each, or none."""

    @abstractmethod
    def configure(self, configs: Mapping[str, Any]) -> None:
        """Read the settings."""

    @abstractmethod
    def apply(self, record: RecordT) -> RecordT | None:
        """Return the record to go on with, None when it is to be left out."""


class Predicate(ConnectPlugin, Generic[RecordT]):
    """Tells to which records a transformation applies."""

    @abstractmethod
    def configure(self, configs: Mapping[str, Any]) -> None:
        """Read the settings."""

    @abstractmethod
    def test(self, record: RecordT) -> bool:
        """Tell whether the record is one."""


class ConfigProvider(ABC):
    """Gives the values that `${provider:path:key}` in a configuration stands for."""

    kafka_class: str | None = None

    @abstractmethod
    def configure(self, configs: Mapping[str, Any]) -> None:
        """Read the settings."""

    @abstractmethod
    def get(self, path: str, keys: Iterable[str] | None = None) -> dict[str, str]:
        """Return what is at a path: those of the keys that exist, or everything."""
