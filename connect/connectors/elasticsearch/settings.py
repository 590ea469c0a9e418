"""ElasticsearchSink's settings."""

from typing import Any, Final

from millstream.connect import ConfigDef, ConfigException, Importance
from millstream.connect.config.types import Type
from millstream.connect.config.validators import (
    CaseInsensitiveValidString,
    LambdaValidator,
    Range,
    ValidList,
)


def indices_of(pairs: list[str]) -> dict[str, str]:
    """Return the index of each topic that the setting names; raise ConfigException."""
    for pair in pairs:
        if pair.count(":") != 1 or pair.startswith(":") or pair.endswith(":"):
            raise ConfigException.of_value(
                "topic.to.external.resource.mapping", pair, "Expected topic:index."
            )
    return dict(pair.split(":") for pair in pairs)


def _check_indices(name: str, value: Any) -> None:
    indices_of(value)


CONFIG: Final = (
    ConfigDef()
    .define("connection.url", Type.LIST, Importance.HIGH,
            "The URLs of the servers, as http://host:9200, separated by commas.",
            validator=ValidList(is_empty_allowed=False), group="Connector")
    .define("connection.username", Type.STRING, Importance.MEDIUM, "The name of the user.",
            default=None, group="Connector")
    .define("connection.password", Type.PASSWORD, Importance.MEDIUM, "That user's password.",
            default=None, group="Connector")
    .define("connection.timeout.ms", Type.INT, Importance.LOW,
            "The timeout to connect to a server.", default=1000, validator=Range(1),
            group="Connector")
    .define("read.timeout.ms", Type.INT, Importance.LOW,
            "The timeout of a request.", default=30_000, validator=Range(1),
            group="Connector")
    .define("batch.size", Type.INT, Importance.MEDIUM,
            "The largest number of documents in a request.", default=2000, validator=Range(1),
            group="Connector")
    .define("bulk.size.bytes", Type.LONG, Importance.LOW,
            "The largest size of a request.", default=5 * 1024 * 1024, validator=Range(1),
            group="Connector")
    .define("max.retries", Type.INT, Importance.LOW,
            "The number of times that the same records are retried in a row before the task fails.",
            default=5, validator=Range(0), group="Connector")
    .define("retry.backoff.ms", Type.LONG, Importance.LOW,
            "The wait before the first retry; each further wait is twice as long.",
            default=100, validator=Range(0), group="Connector")
    .define("key.ignore", Type.BOOLEAN, Importance.HIGH,
            "Whether a document's id is topic+partition+offset instead of the record's key.",
            default=False, group="Data Conversion")
    .define("schema.ignore", Type.BOOLEAN, Importance.LOW,
            "Whether Elasticsearch infers the types of fields instead of using the schema.",
            default=False, group="Data Conversion")
    .define("topic.key.ignore", Type.LIST, Importance.LOW,
            "Topics with key.ignore=true, whatever key.ignore is.", default=[],
            group="Data Conversion")
    .define("topic.schema.ignore", Type.LIST, Importance.LOW,
            "Topics with schema.ignore=true, whatever schema.ignore is.", default=[],
            group="Data Conversion")
    .define("compact.map.entries", Type.BOOLEAN, Importance.LOW,
            "Whether maps with string keys become objects instead of lists of key and value.",
            default=True, group="Data Conversion")
    .define("write.method", Type.STRING, Importance.LOW,
            "INSERT replaces a document if the offset is higher. UPSERT changes only the fields "
            "of the record.", default="INSERT",
            validator=CaseInsensitiveValidString("INSERT", "UPSERT"), group="Data Conversion")
    .define("external.version.header", Type.STRING, Importance.LOW,
            "The header with the document's version, a number that replaces the offset.",
            default="", group="Data Conversion")
    .define("topic.to.external.resource.mapping", Type.LIST, Importance.LOW,
            "Indices whose names differ from their topics', as topic:index.", default=[],
            validator=LambdaValidator(_check_indices, "topic:index pairs"),
            group="Data Conversion")
    .define("behavior.on.null.values", Type.STRING, Importance.LOW,
            "The effect of a record without a value: delete its document, ignore it, or fail.",
            default="fail", validator=CaseInsensitiveValidString("ignore", "delete", "fail"),
            group="Data Conversion")
    .define("behavior.on.malformed.documents", Type.STRING, Importance.LOW,
            "The action if Elasticsearch refuses a document for its content.",
            default="fail", validator=CaseInsensitiveValidString("ignore", "warn", "fail"),
            group="Data Conversion")
    .define("drop.invalid.message", Type.BOOLEAN, Importance.LOW,
            "Whether records that cannot become documents are dropped instead of an error.",
            default=False, group="Data Conversion")
)  # fmt: skip
