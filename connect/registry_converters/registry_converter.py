"""What the converters with a registry share: their settings, and the registry."""

import logging
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from connect.outcomes import Outcomes
from connect.registry_converters.registry import Registry, framed, keeps_nulls, unframed
from millstream.connect import ConfigDef, ConfigValue, Converter, Headers, Schema
from millstream.connect.data.records import NO_HEADERS
from millstream.connect.data.schema import NULL, SchemaAndValue

log = logging.getLogger(__name__)


class RegistryConverter(Converter):
    """A converter of one format; it owns its registry client.

    A refused setting of the original is an error; one without effect gets a line in the log.
    """

    outcomes: ClassVar[Outcomes]

    @classmethod
    def version(cls) -> str:
        return "1.0"

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.outcomes.config

    @classmethod
    def validate(cls, settings: Mapping[str, str]) -> dict[str, ConfigValue]:
        return cls.outcomes.refuse(settings, cls.outcomes.config.validate_all(settings))

    def _connect(
        self, configs: Mapping[str, Any], is_key: bool, written_as: str | None = None
    ) -> Mapping[str, Any]:
        """Make the registry client; return the parsed settings. Raises ConfigException."""
        self.outcomes.require(configs)
        for warning in self.outcomes.warnings(configs):
            log.warning("%s: %s", self.outcomes.original, warning)
        part = "key" if is_key else "value"
        settings = self.config().parse({**configs, "converter.type": part})
        self._registry = Registry(settings, written_as)
        self._keeps_nulls = keeps_nulls(settings)
        return settings

    def from_connect_data(
        self, topic: str, schema: Schema | None, value: Any, headers: Headers = NO_HEADERS
    ) -> bytes | None:
        return None if value is None else framed(*self.encoded(topic, schema, value))

    def to_connect_data(
        self, topic: str, value: bytes | None, headers: Headers = NO_HEADERS
    ) -> SchemaAndValue:
        return NULL if value is None else self.decoded(topic, *unframed(value))

    @abstractmethod
    def encoded(self, topic: str, schema: Schema | None, value: Any) -> tuple[int, bytes]:
        """Return the id of a value's schema, and the value's bytes. Raise DataException."""

    @abstractmethod
    def decoded(self, topic: str, schema_id: int, body: bytes) -> SchemaAndValue:
        """Return the value in bytes of a registered schema. Raise DataException."""

    def close(self) -> None:
        self._registry.close()
