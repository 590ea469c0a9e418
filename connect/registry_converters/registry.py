"""A converter's view of a schema registry: ids by schema and schemas by id, both cached."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from struct import Struct as Layout
from typing import Any, Final, NamedTuple, TypeVar

from common.credentials.translation import ClientSettingsError, librdkafka_security
from connect.converters.settings import converter_config
from millstream.connect import ConfigDef, ConfigException, DataException, Importance
from millstream.connect.config.types import Password, Type
from millstream.connect.config.validators import ValidList, ValidString
from millstream.connect.errors import RetriableException, SerializationException

_HEADER: Final = Layout(">BI")
_MAX_SCHEMAS: Final = 1000
_Result = TypeVar("_Result")
_TLS_PREFIX: Final = "schema.registry."
_TLS: Final = {
    "ssl.truststore.location": "The authorities of the registry's certificate, a PEM file.",
    "ssl.truststore.type": "PEM.",
    "ssl.keystore.location": "The key and certificate shown to the registry, a PEM file.",
    "ssl.keystore.type": "PEM.",
    "ssl.key.password": "The password of that key.",
}
_STRATEGIES: Final = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")


def registry_config() -> ConfigDef:
    """Return the settings of every converter with a registry."""
    config = (
        converter_config()
        .define("schema.registry.url", Type.LIST, Importance.HIGH, "The URLs of the registry.",
                validator=ValidList(is_empty_allowed=False))
        .define("basic.auth.user.info", Type.PASSWORD, Importance.MEDIUM,
                "The name and password for the registry, as user:password.", default=None)
        .define("schema.registry.basic.auth.user.info", Type.PASSWORD, Importance.MEDIUM,
                "A deprecated name of basic.auth.user.info.", default=None)
        .define("use.latest.version", Type.BOOLEAN, Importance.LOW,
                "If auto.register.schemas is false: write with the latest schema of the subject.",
                default=False)
        .define("latest.compatibility.strict", Type.BOOLEAN, Importance.LOW,
                "Whether written values must be readable with that latest schema.",
                default=True)
        .define("latest.cache.ttl.sec", Type.INT, Importance.LOW,
                "The time for which a latest schema is used; -1: for ever.",
                default=-1)
        .define("use.schema.id", Type.INT, Importance.LOW,
                "If auto.register.schemas is false: write with the schema of this id; -1: none.",
                default=-1)
        .define("id.compatibility.strict", Type.BOOLEAN, Importance.LOW,
                "Whether written values must be readable with the schema of that id.",
                default=True)
        .define("replace.null.with.default", Type.BOOLEAN, Importance.LOW,
                "Whether a null field with a default is written as its default.",
                default=True)
        .define("ignore.default.for.nullables", Type.BOOLEAN, Importance.LOW,
                "Whether an optional field stays null although it has a default.",
                default=False)
        .define("auto.register.schemas", Type.BOOLEAN, Importance.MEDIUM,
                "Whether the converter registers schemas that the registry lacks.", default=True)
        .define("normalize.schemas", Type.BOOLEAN, Importance.MEDIUM,
                "Whether schemas are normalized before they are registered.", default=False)
    )  # fmt: skip
    for name, what in _TLS.items():
        kind = Type.PASSWORD if name.endswith("password") else Type.STRING
        config.define(f"{_TLS_PREFIX}{name}", kind, Importance.LOW, what, default=None)
    for part in ("key", "value"):
        config.define(
            f"{part}.subject.name.strategy",
            Type.STRING,
            Importance.LOW,
            f"The strategy that names the subject of a {part}'s schema.",
            default=_STRATEGIES[0],
            validator=_Strategy(*_STRATEGIES),
        )
    return config


class _Strategy(ValidString):
    """Accepts the name of a strategy, with or without its Java package."""

    def __call__(self, name: str, value: Any) -> None:
        super().__call__(name, str(value).rpartition(".")[2])


def _tls(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the TLS settings in the registry client's names; it reads PEM files only."""
    given = {name: settings[f"{_TLS_PREFIX}{name}"] for name in _TLS}
    plain = {
        name: value.value if isinstance(value, Password) else value
        for name, value in given.items()
        if value
    }
    try:
        told = librdkafka_security(plain)
    except ClientSettingsError as error:
        raise ConfigException(f"{_TLS_PREFIX}{error}") from None
    for name in told:
        if name.endswith(".pem"):
            raise ConfigException(f"{_TLS_PREFIX}*.location: the stores must be PEM files")
    return told


class Chosen(NamedTuple):
    """The schema that the settings choose for all values, whatever schema they have."""

    schema_id: int
    text: str
    is_strict: bool
    """Whether the written values must be readable with it."""


def keeps_nulls(settings: Mapping[str, Any]) -> bool:
    """Return whether a null stays null although its field has a default."""
    is_replaced = settings["replace.null.with.default"]
    return bool(settings["ignore.default.for.nullables"] or not is_replaced)


class Registry:
    """Owns the registry client. Raises RetriableException if the registry cannot be reached.

    `written_as` is the requested format of schemas; None requests the registered text.
    """

    def __init__(self, settings: Mapping[str, Any], written_as: str | None = None) -> None:
        from confluent_kafka.schema_registry import SchemaRegistryClient

        urls = settings["schema.registry.url"]
        told: dict[str, Any] = {"url": ",".join(urls)}
        if not any(url.startswith("https") for url in urls):
            # Without TLS no certificate is checked, and loading the machine's takes 20 ms.
            told["ssl.ca.location"] = False
        former = settings["schema.registry.basic.auth.user.info"]
        if settings["latest.cache.ttl.sec"] >= 0:
            told["cache.latest.ttl.sec"] = settings["latest.cache.ttl.sec"]
        user: Password | None = settings["basic.auth.user.info"] or former
        if user is not None:
            told["basic.auth.user.info"] = user.value
        told |= _tls(settings)
        try:
            self._client = SchemaRegistryClient(told)
        except (ValueError, OSError) as error:
            raise ConfigException(f"schema.registry.url: {error}") from None
        self._written_as = written_as
        self._part = settings["converter.type"]
        strategy = settings[f"{'key' if self._part == 'key' else 'value'}.subject.name.strategy"]
        self._strategy: str = strategy.rpartition(".")[2]
        self._registers: bool = settings["auto.register.schemas"]
        self._normalizes: bool = settings["normalize.schemas"]
        self._settings = settings
        self.id_of = lru_cache(_MAX_SCHEMAS)(self._id_of)
        self.schema_of = lru_cache(_MAX_SCHEMAS)(self._schema_of)

    def close(self) -> None:
        self._client.close()

    def subject(self, topic: str, record_name: str | None) -> str:
        """Return the subject under which a schema is registered."""
        if self._strategy == "TopicNameStrategy":
            return f"{topic}-{'key' if self._part == 'key' else 'value'}"
        if record_name is None:
            raise DataException(f"{self._strategy} needs a schema with a name")
        is_by_record = self._strategy == "RecordNameStrategy"
        return record_name if is_by_record else f"{topic}-{record_name}"

    def chosen(self, subject: str, kind: str) -> Chosen | None:
        """Return the schema that the settings choose; None means the value's own schema.

        Raise DataException if the chosen schema has another type.
        """
        if self._registers:
            return None
        if self._settings["use.schema.id"] >= 0:
            schema_id: int = self._settings["use.schema.id"]
            text, found = self.schema_of(schema_id)
            _require_kind(schema_id, found, kind)
            return Chosen(schema_id, text, self._settings["id.compatibility.strict"])
        return self._newest_of(subject, kind) if self._settings["use.latest.version"] else None

    def _newest_of(self, subject: str, kind: str) -> Chosen:
        # The client caches it for latest.cache.ttl.sec.
        found = _asked(lambda: self._client.get_latest_version(subject, fmt=self._written_as))
        schema = found.schema
        assert schema is not None, found
        assert schema.schema_str is not None, found
        assert found.schema_id is not None, found
        _require_kind(found.schema_id, schema.schema_type or "AVRO", kind)
        _require_no_references(found.schema_id, schema)
        strict = self._settings["latest.compatibility.strict"]
        return Chosen(found.schema_id, schema.schema_str, strict)

    def _id_of(self, subject: str, text: str, kind: str) -> int:
        """Return the id of a schema; register it if auto.register.schemas is true."""
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
        """Return the text of a schema and its type."""
        found = _asked(lambda: self._client.get_schema(schema_id, fmt=self._written_as))
        _require_no_references(schema_id, found)
        assert found.schema_str is not None, found
        return found.schema_str, found.schema_type or "AVRO"


def _require_kind(schema_id: int, found: str, kind: str) -> None:
    if found != kind:
        raise DataException(f"Schema {schema_id} has the type {found}, not {kind}")


def _require_no_references(schema_id: int, schema: Any) -> None:
    if schema.references:
        raise DataException(f"Schema {schema_id} refers to other schemas, which is not supported")


def _asked(ask: Callable[[], _Result]) -> _Result:
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    try:
        return ask()
    except SchemaRegistryError as error:
        if error.http_status_code >= 500 or error.http_status_code == 429:
            raise RetriableException(f"The schema registry failed: {error}") from error
        raise SerializationException(f"The schema registry refuses: {error}") from error
    except OSError as error:
        raise RetriableException(f"The schema registry is not reached: {error}") from error
    # The client's HTTP library has its own errors; all of them mean that the server is unreachable.
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore"):
            raise RetriableException(f"The schema registry is not reached: {error}") from error
        raise


def framed(schema_id: int, body: bytes) -> bytes:
    """Return bytes with their schema's id before them (Confluent's wire format)."""
    return _HEADER.pack(0, schema_id) + body


def unframed(value: bytes) -> tuple[int, bytes]:
    """Return the schema's id and the bytes after it; raise DataException."""
    if len(value) < _HEADER.size or value[0] != 0:
        raise DataException("Unknown magic byte: the bytes were written without a schema registry")
    _, schema_id = _HEADER.unpack_from(value)
    return schema_id, value[_HEADER.size :]
