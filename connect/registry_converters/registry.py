"""A schema registry as converters use it: ids of schemas and schemas of ids, asked once each."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from struct import Struct as Layout
from typing import Any, Final, TypeVar

from connect.converters.settings import converter_config
from millrace.connect import ConfigDef, ConfigException, DataException, Importance
from millrace.connect.config.types import Password, Type
from millrace.connect.config.validators import ValidList, ValidString
from millrace.connect.errors import RetriableException, SerializationException

_HEADER: Final = Layout(">BI")
_MAX_SCHEMAS: Final = 1000
_Result = TypeVar("_Result")
_STRATEGIES: Final = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")


def registry_config() -> ConfigDef:
    """Return the settings every converter with a registry has."""
    config = (
        converter_config()
        .define("schema.registry.url", Type.LIST, Importance.HIGH, "Where the registry is.",
                validator=ValidList(is_empty_allowed=False))
        .define("basic.auth.user.info", Type.PASSWORD, Importance.MEDIUM,
                "Who to be there, as user:password.", default=None)
        .define("auto.register.schemas", Type.BOOLEAN, Importance.MEDIUM,
                "Whether schemas that the registry lacks are registered.", default=True)
        .define("normalize.schemas", Type.BOOLEAN, Importance.MEDIUM,
                "Whether schemas are registered in their normal form.", default=False)
    )  # fmt: skip
    for part in ("key", "value"):
        config.define(
            f"{part}.subject.name.strategy",
            Type.STRING,
            Importance.LOW,
            f"How the subject of a {part}'s schema is named.",
            default=_STRATEGIES[0],
            validator=_Strategy(*_STRATEGIES),
        )
    return config


class _Strategy(ValidString):
    """One of the strategies, with or without Java's package."""

    def __call__(self, name: str, value: Any) -> None:
        super().__call__(name, str(value).rpartition(".")[2])


class Registry:
    """Owns the client. Raises RetriableException when the registry cannot be reached.

    `written_as` is the form in which schemas are asked for; None: as they were registered.
    """

    def __init__(self, settings: Mapping[str, Any], written_as: str | None = None) -> None:
        from confluent_kafka.schema_registry import SchemaRegistryClient

        urls = settings["schema.registry.url"]
        told: dict[str, Any] = {"url": ",".join(urls)}
        if not any(url.startswith("https") for url in urls):
            # Nothing is checked by them, and reading the machine's takes 20 ms.
            told["ssl.ca.location"] = False
        user: Password | None = settings["basic.auth.user.info"]
        if user is not None:
            told["basic.auth.user.info"] = user.value
        try:
            self._client = SchemaRegistryClient(told)
        except ValueError as error:
            raise ConfigException(f"schema.registry.url: {error}") from None
        self._written_as = written_as
        self._part = settings["converter.type"]
        strategy = settings[f"{'key' if self._part == 'key' else 'value'}.subject.name.strategy"]
        self._strategy: str = strategy.rpartition(".")[2]
        self._registers: bool = settings["auto.register.schemas"]
        self._normalizes: bool = settings["normalize.schemas"]
        self.id_of = lru_cache(_MAX_SCHEMAS)(self._id_of)
        self.schema_of = lru_cache(_MAX_SCHEMAS)(self._schema_of)

    def close(self) -> None:
        self._client.close()

    def subject(self, topic: str, record_name: str | None) -> str:
        """Return the subject that a schema is registered under."""
        if self._strategy == "TopicNameStrategy":
            return f"{topic}-{'key' if self._part == 'key' else 'value'}"
        if record_name is None:
            raise DataException(f"{self._strategy} needs a schema with a name")
        is_by_record = self._strategy == "RecordNameStrategy"
        return record_name if is_by_record else f"{topic}-{record_name}"

    def _id_of(self, subject: str, text: str, kind: str) -> int:
        """Return the id of a schema, registering it when that is allowed."""
        from confluent_kafka.schema_registry import Schema as Registered

        schema = Registered(text, kind)
        if self._registers:
            return _asked(
                lambda: self._client.register_schema(
                    subject, schema, normalize_schemas=self._normalizes
                )
            )
        found = _asked(
            lambda: self._client.lookup_schema(subject, schema, normalize_schemas=self._normalizes)
        )
        assert found.schema_id is not None, found
        return found.schema_id

    def _schema_of(self, schema_id: int) -> tuple[str, str]:
        """Return the text of a schema and which kind it is of."""
        found = _asked(lambda: self._client.get_schema(schema_id, fmt=self._written_as))
        if found.references:
            raise DataException(f"Schema {schema_id} refers to others, which is not supported")
        assert found.schema_str is not None, found
        return found.schema_str, found.schema_type or "AVRO"


def _asked(ask: Callable[[], _Result]) -> _Result:
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    try:
        return ask()
    except SchemaRegistryError as error:
        if error.http_status_code >= 500 or error.http_status_code == 429:
            raise RetriableException(f"The schema registry cannot answer: {error}") from error
        raise SerializationException(f"The schema registry refuses: {error}") from error
    except OSError as error:
        raise RetriableException(f"The schema registry is not reached: {error}") from error
    # The client's HTTP library has errors of its own, all of them about not reaching the server.
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore"):
            raise RetriableException(f"The schema registry is not reached: {error}") from error
        raise


def framed(schema_id: int, body: bytes) -> bytes:
    """Return bytes behind their schema's id (Confluent's wire format)."""
    return _HEADER.pack(0, schema_id) + body


def unframed(value: bytes) -> tuple[int, bytes]:
    """Return the schema's id and what stands behind it; raises DataException."""
    if len(value) < _HEADER.size or value[0] != 0:
        raise DataException("Unknown magic byte: the bytes were not written with a registry")
    _, schema_id = _HEADER.unpack_from(value)
    return schema_id, value[_HEADER.size :]
