"""RegexRouter and TimestampRouter send records to other topics; Filter lets none through."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from connect.java.date_format import DateFormat
from connect.java.patterns import RegexValidator, java_pattern, replaced_first
from connect.transforms.parts import PACKAGE, PartTransformation
from millrace.connect import (
    ConfigDef,
    ConfigException,
    DataException,
    Importance,
    Transformation,
)
from millrace.connect.config.types import Type
from millrace.connect.data.records import ConnectRecord

_REGEX = (
    ConfigDef()
    .define(
        "regex",
        Type.STRING,
        Importance.HIGH,
        "A regular expression that the whole name of a topic has to match.",
        validator=RegexValidator(),
    )
    .define(
        "replacement",
        Type.STRING,
        Importance.HIGH,
        "The other topic; $1 or ${name} stands for what a group matched.",
    )
)
_TIMESTAMP = (
    ConfigDef()
    .define(
        "topic.format",
        Type.STRING,
        Importance.HIGH,
        "The other topic; ${topic} and ${timestamp} stand for the topic and the timestamp.",
        default="${topic}-${timestamp}",
    )
    .define(
        "timestamp.format",
        Type.STRING,
        Importance.HIGH,
        "How the timestamp is written: a pattern of java.text.SimpleDateFormat.",
        default="yyyyMMdd",
    )
)


class RegexRouter(Transformation[ConnectRecord]):
    """Gives topics that match a pattern another name."""

    kafka_class = f"{PACKAGE}.RegexRouter"

    @classmethod
    def version(cls) -> str:
        return PartTransformation.version()

    @classmethod
    def config(cls) -> ConfigDef:
        return _REGEX

    def configure(self, configs: Mapping[str, Any]) -> None:
        settings = _REGEX.parse(configs)
        self._pattern = java_pattern(settings["regex"])
        self._replacement: str = settings["replacement"]

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        if not self._pattern.fullmatch(record.topic):
            return record
        found = self._pattern.search(record.topic)
        assert found is not None, self._pattern
        # The first match need not be the whole name: what follows it stays.
        topic = (
            record.topic[: found.start()]
            + replaced_first(found, self._replacement)
            + record.topic[found.end() :]
        )
        return dataclasses.replace(record, topic=topic)


class TimestampRouter(Transformation[ConnectRecord]):
    """Makes the timestamp part of the topic's name."""

    kafka_class = f"{PACKAGE}.TimestampRouter"

    @classmethod
    def version(cls) -> str:
        return PartTransformation.version()

    @classmethod
    def config(cls) -> ConfigDef:
        return _TIMESTAMP

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


class Filter(Transformation[ConnectRecord]):
    """Leaves records out; a predicate says which."""

    kafka_class = f"{PACKAGE}.Filter"

    @classmethod
    def version(cls) -> str:
        return PartTransformation.version()

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Have no settings."""

    def apply(self, record: ConnectRecord) -> None:
        return None
