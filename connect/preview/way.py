"""The way of one record, step by step, each with what it made."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from confluent_kafka import Message

from connect.definitions.plugged import aliases
from connect.errors.tolerance import Stage
from connect.preview import shown
from connect.preview.shown import Shown
from connect.worker.environment import Environment
from connect.worker.record_plugins import Converters, TransformationStage, converters_of, stages_of
from connect.worker.tasks.reporting import timestamp_type
from millstream.connect.config.types import class_name
from millstream.connect.data.records import (
    NO_HEADERS,
    ConnectRecord,
    Header,
    Headers,
    SinkRecord,
    SourceRecord,
)

_CONVERTERS: Final = "converters"
_REGISTERS: Final = "auto.register.schemas"
"""A converter with this setting writes to a registry, which a preview does not."""


class _Failed(Exception):  # noqa: N818 - it ends a record's way, and is no error of ours
    """A step raised; it stands among the steps already."""


class Way:
    """Owns the converters and transformations of a connector. Used by one thread."""

    def __init__(
        self, environment: Environment, config: dict[str, str], *, is_tolerant: bool
    ) -> None:
        """Raises ConfigException, or what a plugin raises."""
        self._is_tolerant = is_tolerant
        self._stages: list[tuple[str, TransformationStage]] = list(
            zip(
                aliases(config, "transforms"),
                stages_of(environment.plugins, config),
                strict=True,
            )
        )
        self._converters: Converters = converters_of(
            environment.plugins, environment.settings, config
        )
        both = (self._converters.key, self._converters.value)
        self._would_register = any(_REGISTERS in each.config().keys for each in both)

    def close(self) -> None:
        for _, stage in self._stages:
            stage.transformation.close()
        for converter in (self._converters.key, self._converters.value, self._converters.header):
            converter.close()

    def of_source(self, record: SourceRecord) -> Shown:
        """Go from what a task polled to what a topic would get."""

        def steps(done: list[Shown]) -> bool:
            transformed = self._transformed(record, done)
            if transformed is None:
                return False
            step = self._told(done)
            if self._would_register:
                step["left_out"] = "it would register schemas"
                return True
            step["result"] = self._tried(step, _CONVERTERS, lambda: self._message(transformed))
            return True

        return self._gone(shown.record(record), steps, "would be written")

    def of_sink(self, message: Message) -> Shown:
        """Go from what lies in a topic to what `put` would get."""

        def steps(done: list[Shown]) -> bool:
            step = self._told(done)
            record = self._tried(step, _CONVERTERS, lambda: self._record(message))
            step["result"] = shown.record(record)
            return self._transformed(record, done) is not None

        _, timestamp = message.timestamp()
        read = shown.message(
            message.topic() or "",
            partition=message.partition(),
            timestamp=timestamp if timestamp >= 0 else None,
            key=_bytes(message.key()),
            value=_bytes(message.value()),
            headers=_raw_headers(message),
        )
        return self._gone({**read, "offset": message.offset()}, steps, "would be put")

    def _gone(self, read: Shown, steps: Callable[[list[Shown]], bool], good: str) -> Shown:
        done: list[Shown] = []
        try:
            outcome = good if steps(done) else "filtered"
        except _Failed:
            outcome = "skipped" if self._is_tolerant else "failed"
        return {"outcome": outcome, "read": read, "steps": done}

    def _tried(self, step: Shown, stage: str, make: Callable[[], Any]) -> Any:
        try:
            return make()
        # What plugins raise is what the preview is to show.
        except Exception as error:
            step["error"] = shown.error(error, stage)
            raise _Failed from error

    def _told(self, done: list[Shown]) -> Shown:
        parts = (self._converters.key, self._converters.value, self._converters.header)
        done.append({"step": _CONVERTERS, "type": [class_name(type(each)) for each in parts]})
        return done[-1]

    def _transformed(self, record: Any, done: list[Shown]) -> Any:
        """Give the record after all transformations, None when one left it out."""
        for alias, stage in self._stages:
            step: Shown = {"step": alias, "type": class_name(type(stage.transformation))}
            done.append(step)
            made = self._tried(
                step, Stage.TRANSFORMATION.value, partial(_made_of, record, stage, step)
            )
            if made is None:
                return None
            step["changed"] = shown.changes(record, made)
            if step["changed"]:
                step["result"] = shown.record(made)
            record = made
        return record

    def _message(self, record: SourceRecord) -> Shown:
        topic, headers, converters = record.topic, record.headers, self._converters
        convert = converters.header.from_connect_header
        return shown.message(
            topic,
            partition=record.kafka_partition,
            timestamp=record.timestamp_ms,
            key=converters.key.from_connect_data(topic, record.key_schema, record.key, headers),
            value=converters.value.from_connect_data(
                topic, record.value_schema, record.value, headers
            ),
            headers=[
                (each.key, convert(topic, each.key, each.schema, each.value)) for each in headers
            ],
        )

    def _record(self, message: Message) -> ConnectRecord:
        topic, converters = message.topic() or "", self._converters
        raw = _raw_headers(message)
        bare = Headers(Header(name, each) for name, each in raw) if raw else NO_HEADERS
        key = converters.key.to_connect_data(topic, _bytes(message.key()), bare)
        value = converters.value.to_connect_data(topic, _bytes(message.value()), bare)
        convert = converters.header.to_connect_header
        found = [(name, convert(topic, name, each)) for name, each in raw]
        kind, timestamp = message.timestamp()
        return SinkRecord(
            topic=topic,
            kafka_partition=message.partition(),
            key_schema=key.schema,
            key=key.value,
            value_schema=value.schema,
            value=value.value,
            kafka_offset=message.offset() or 0,
            timestamp_ms=timestamp if timestamp >= 0 else None,
            timestamp_type=timestamp_type(kind),
            headers=Headers(Header(name, each.value, each.schema) for name, each in found),
        )


def _made_of(record: Any, stage: TransformationStage, step: Shown) -> Any:
    step["applied"] = bool(stage.applies_to(record))
    return stage.transformation.apply(record) if step["applied"] else record


def _bytes(data: Any) -> bytes | None:
    return None if data is None else bytes(data)


def _raw_headers(message: Message) -> list[tuple[str, bytes | None]]:
    raw: Any = message.headers() or ()
    return list(raw)
