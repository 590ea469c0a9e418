"""RegexRouter and TimestampRouter change a record's topic; Filter drops every record."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from connect.java.date_format import DateFormat
from connect.java.patterns import RegexValidator, java_pattern, replaced_first
from connect.transforms.parts import PACKAGE, KafkasTransformation
from millstream.connect import (
    ConfigDef,
    ConfigException,
    DataException,
    Importance,
)
from millstream.connect.config.types import Type
from millstream.connect.data.records import ConnectRecord

_REGEX = (
    ConfigDef()
    .define(
        "regex",
        Type.STRING,
        Importance.HIGH,
        "A regular expression that must match the whole name of a topic.",
        validator=RegexValidator(),
    )
    .define(
        "replacement",
        Type.STRING,
        Importance.HIGH,
        "The new topic; $1 or ${name} stands for the text that a group matched.",
    )
)
_TIMESTAMP = (
    ConfigDef()
    .define(
        "topic.format",
        Type.STRING,
        Importance.HIGH,
        "The new topic; ${topic} and ${timestamp} stand for the old topic and the timestamp.",
        default="${topic}-${timestamp}",
    )
    .define(
        "timestamp.format",
        Type.STRING,
        Importance.HIGH,
        "The format of the timestamp: a pattern of java.text.SimpleDateFormat.",
        default="yyyyMMdd",
    )
)


class RegexRouter(KafkasTransformation):
    """Renames the topics that match a pattern."""

    kafka_class = f"{PACKAGE}.RegexRouter"
    definition = _REGEX

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = _REGEX.parse(configs)
        self._pattern = java_pattern(settings["regex"])
        self._replacement: str = settings["replacement"]

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        if not self._pattern.fullmatch(record.topic):
            return record
        found = self._pattern.search(record.topic)
        assert found is not None, self._pattern
        # Java replaces the first match, which may be shorter than the whole name: the rest stays.
        topic = (
            record.topic[: found.start()]
            + replaced_first(found, self._replacement)
            + record.topic[found.end() :]
        )
        return dataclasses.replace(record, topic=topic)


class TimestampRouter(KafkasTransformation):
    """Adds the record's timestamp to the topic's name."""

    kafka_class = f"{PACKAGE}.TimestampRouter"
    definition = _TIMESTAMP

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = _TIMESTAMP.parse(configs)
        self._topic_format: str = settings["topic.format"]
        pattern = settings["timestamp.format"]
        try:
            self._date_format = DateFormat(pattern)
        except ValueError as error:
            raise ConfigException.of_value("timestamp.format", pattern, str(error)) from None

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        if record.timestamp_ms is None:
            raise DataException(f"Timestamp missing on record: {record}")
        written = self._date_format.format(record.timestamp_ms)
        topic = self._topic_format.replace("${topic}", record.topic)
        return dataclasses.replace(record, topic=topic.replace("${timestamp}", written))


class Filter(KafkasTransformation):
    """Drops records; a predicate selects them."""

    kafka_class = f"{PACKAGE}.Filter"

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Do nothing: this transformation has no settings."""

    def apply(self, record: ConnectRecord) -> None:
        return None
