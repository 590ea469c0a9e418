"""The headers of a dead letter, and the log messages of failed records.

A dead letter is the record as it was read: key, value, headers and timestamp. With
`errors.deadletterqueue.context.headers.enable` these headers are added, each a UTF-8 text:

    __connect.errors.topic, .partition, .offset    where the record was read
    __connect.errors.connector.name, .task.id      who failed
    __connect.errors.stage, .class.name            doing what, in which class
    __connect.errors.exception.class.name, .exception.message, .exception.stacktrace

Classes that stand for one of Kafka's have Kafka's name, as consumers of dead letters expect.
Messages and traces of any length are cut: a letter that is too large for its topic would be lost.
"""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connect.errors.tolerance import GROUP, Failure
from millstream.connect.config.config_def import ConfigDef
from millstream.connect.config.types import Importance, Type, Width, class_name
from millstream.connect.data.records import NO_TIMESTAMP_TYPE

HEADER_PREFIX = "__connect.errors."
PARTITION_COUNT = 1
MAX_TEXT_BYTES = 1 << 15
_CUT = " (cut)"


@dataclass(frozen=True, slots=True)
class DeadLetterSettings:
    """A sink's settings for its dead letters."""

    topic_name: str = ""  # empty: there are none
    replication_factor: int = 3
    is_with_context_headers: bool = False

    @classmethod
    def of(cls, parsed: Mapping[str, Any]) -> "DeadLetterSettings":
        """Take them from a parsed configuration (see `define_dead_letter_settings`)."""
        prefix = "errors.deadletterqueue."
        return cls(
            parsed[f"{prefix}topic.name"],
            parsed[f"{prefix}topic.replication.factor"],
            parsed[f"{prefix}context.headers.enable"],
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a record of a sink was read."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None = None
    timestamp_type: str = NO_TIMESTAMP_TYPE


def define_dead_letter_settings(definition: ConfigDef) -> ConfigDef:
    """Add the settings every sink has for its dead letters."""
    return (
        definition.define(
            "errors.deadletterqueue.topic.name",
            Type.STRING,
            Importance.MEDIUM,
            "The topic for records that this connector, its transformations or its converters "
            "cannot process. Empty: such records are not kept.",
            default="",
            group=GROUP,
            order_in_group=6,
            width=Width.MEDIUM,
            display_name="Dead Letter Queue Topic Name",
        )
        .define(
            "errors.deadletterqueue.topic.replication.factor",
            Type.SHORT,
            Importance.MEDIUM,
            "The number of replicas of the dead-letter topic if it has to be created.",
            default=3,
            group=GROUP,
            order_in_group=7,
            width=Width.MEDIUM,
            display_name="Dead Letter Queue Topic Replication Factor",
        )
        .define(
            "errors.deadletterqueue.context.headers.enable",
            Type.BOOLEAN,
            Importance.MEDIUM,
            "Whether dead letters have headers that tell what failed and where. Their names begin "
            "with __connect.errors. to be told from the record's own.",
            default=False,
            group=GROUP,
            order_in_group=8,
            width=Width.MEDIUM,
            display_name="Enable Error Context Headers",
        )
    )


def context_headers(
    failure: Failure, connector: str, task: int, origin: Origin | None
) -> list[tuple[str, bytes | None]]:
    """Return the headers that tell of a failure."""
    texts: list[tuple[str, str | None]] = []
    if origin is not None:
        texts += [
            ("topic", origin.topic),
            ("partition", str(origin.partition)),
            ("offset", str(origin.offset)),
        ]
    error = failure.error
    texts += [
        ("connector.name", connector),
        ("task.id", str(task)),
        ("stage", failure.stage.value),
        ("class.name", class_name(failure.executing_class)),
        ("exception.class.name", class_name(type(error))),
        ("exception.message", str(error) if error.args else None),
        ("exception.stacktrace", "".join(traceback.format_exception(error))),
    ]
    return [
        (HEADER_PREFIX + name, None if text is None else _cut(text.encode("utf-8", "replace")))
        for name, text in texts
    ]


def sink_log_message(
    failure: Failure, connector: str, task: int, origin: Origin | None = None
) -> str:
    """Return what the log says of a failed record; `origin` only if the log may tell of it."""
    if origin is None:
        return _log_message(failure, connector, task, "")
    when = ""
    if origin.timestamp_type != NO_TIMESTAMP_TYPE:
        when = f", timestamp={origin.timestamp_ms}, timestampType={origin.timestamp_type}"
    return _log_message(
        failure,
        connector,
        task,
        f", where consumed record is {{topic='{origin.topic}', partition={origin.partition}, "
        f"offset={origin.offset}{when}}}",
    )


def source_log_message(
    failure: Failure,
    connector: str,
    task: int,
    source: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None] | None = None,
) -> str:
    """Return what the log says of a failed record; `source` is its partition and offset there."""
    if source is None:
        return _log_message(failure, connector, task, "")
    partition, offset = source
    where = f", where source record is {{sourcePartition={partition}, sourceOffset={offset}}}"
    return _log_message(failure, connector, task, where)


def _log_message(failure: Failure, connector: str, task: int, where: str) -> str:
    return (
        f"Error encountered in task {connector}-{task}. Executing stage '{failure.stage.value}' "
        f"with class '{class_name(failure.executing_class)}'{where}."
    )


def _cut(text: bytes) -> bytes:
    if len(text) <= MAX_TEXT_BYTES:
        return text
    return text[:MAX_TEXT_BYTES].decode("utf-8", "ignore").encode() + _CUT.encode()
