"""ElasticsearchSink's settings."""

from typing import Any, Final

from millrace.connect import ConfigDef, ConfigException, Importance
from millrace.connect.config.types import Type
from millrace.connect.config.validators import (
    CaseInsensitiveValidString,
    LambdaValidator,
    Range,
    ValidList,
)

VERSION: Final = "1.0"


def indices_of(pairs: list[str]) -> dict[str, str]:
    """Return the index of each topic that has one of its own; raises ConfigException."""
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
            "The servers, as http://host:9200, divided by commas.",
            validator=ValidList(is_empty_allowed=False), group="Connector")
    .define("connection.username", Type.STRING, Importance.MEDIUM, "Who to be there.",
            default=None, group="Connector")
    .define("connection.password", Type.PASSWORD, Importance.MEDIUM, "That user's password.",
            default=None, group="Connector")
    .define("connection.timeout.ms", Type.INT, Importance.LOW,
            "How long to wait until a server can be reached.", default=1000, validator=Range(1),
            group="Connector")
    .define("read.timeout.ms", Type.INT, Importance.LOW,
            "How long to wait for an answer.", default=30_000, validator=Range(1),
            group="Connector")
    .define("batch.size", Type.INT, Importance.MEDIUM,
            "How many documents one request holds.", default=2000, validator=Range(1),
            group="Connector")
    .define("bulk.size.bytes", Type.LONG, Importance.LOW,
            "How large one request may become.", default=5 * 1024 * 1024, validator=Range(1),
            group="Connector")
    .define("max.retries", Type.INT, Importance.LOW,
            "How often in a row the same records are tried again before the task fails.",
            default=5, validator=Range(0), group="Connector")
    .define("retry.backoff.ms", Type.LONG, Importance.LOW,
            "How long to wait before the first of them; twice as long before each next one.",
            default=100, validator=Range(0), group="Connector")
    .define("key.ignore", Type.BOOLEAN, Importance.HIGH,
            "Whether documents have topic+partition+offset as their id, not the record's key.",
            default=False, group="Data Conversion")
    .define("schema.ignore", Type.BOOLEAN, Importance.LOW,
            "Whether Elasticsearch guesses the types of fields, not learning them of the schema.",
            default=False, group="Data Conversion")
    .define("topic.key.ignore", Type.LIST, Importance.LOW,
            "The topics for which key.ignore holds, whatever it says.", default=[],
            group="Data Conversion")
    .define("topic.schema.ignore", Type.LIST, Importance.LOW,
            "The topics for which schema.ignore holds, whatever it says.", default=[],
            group="Data Conversion")
    .define("compact.map.entries", Type.BOOLEAN, Importance.LOW,
            "Whether maps with texts as keys become objects, not lists of key and value.",
            default=True, group="Data Conversion")
    .define("write.method", Type.STRING, Importance.LOW,
            "INSERT replaces documents, the highest offset wins; UPSERT changes the fields that "
            "are there.", default="INSERT",
            validator=CaseInsensitiveValidString("INSERT", "UPSERT"), group="Data Conversion")
    .define("external.version.header", Type.STRING, Importance.LOW,
            "The header whose number is the document's version, instead of the offset.",
            default="", group="Data Conversion")
    .define("topic.to.external.resource.mapping", Type.LIST, Importance.LOW,
            "Indices that are not called as their topics are, as topic:index.", default=[],
            validator=LambdaValidator(_check_indices, "topic:index pairs"),
            group="Data Conversion")
    .define("behavior.on.null.values", Type.STRING, Importance.LOW,
            "What a record without value means: delete its document, ignore, or fail.",
            default="fail", validator=CaseInsensitiveValidString("ignore", "delete", "fail"),
            group="Data Conversion")
    .define("behavior.on.malformed.documents", Type.STRING, Importance.LOW,
            "What to do when Elasticsearch refuses a document for what it holds.",
            default="fail", validator=CaseInsensitiveValidString("ignore", "warn", "fail"),
            group="Data Conversion")
    .define("drop.invalid.message", Type.BOOLEAN, Importance.LOW,
            "Whether to leave out records that cannot become documents, instead of failing.",
            default=False, group="Data Conversion")
)  # fmt: skip
