"""The options of the source and the sink: names and meaning are those of Spark's Kafka connector.

Spark passes options with their names in lower case. Unknown names are refused, because a misspelt
`startingOffset` would otherwise silently read from elsewhere; so are the `kafka.` settings that the
source itself decides (Spark decides the offsets, not a consumer group).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from common.credentials.translation import ClientSettingsError, is_security, librdkafka_security
from common.process.patterns import Pattern
from spark_analytics.source.offsets import EARLIEST, LATEST, Offsets, parse_offsets


class OptionError(ValueError):
    """An option is missing, unknown or invalid."""


class Bound(Enum):
    """The start or the end of the log, for an edge without offsets."""

    EARLIEST = EARLIEST
    LATEST = LATEST


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The start or end of a query: a bound, an offset per partition, or the time of a record.

    `offsets` may have EARLIEST and LATEST; `timestamps_ms` are by partition, `timestamp_ms` is for
    all of them. Exactly one of the four is set.
    """

    bound: Bound | None = None
    offsets: Offsets | None = None
    timestamps_ms: Offsets | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The parsed options of a query."""

    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    assigned: tuple[tuple[str, int], ...] = ()
    start: Edge
    end: Edge = Edge(bound=Bound.LATEST)
    is_late_start_an_error: bool = True
    max_offsets_per_trigger: int | None = None
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    min_records_per_partition: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False
    poll_timeout_ms: int = 120_000
    client: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """The parsed options of a sink; `topic` wins over a column of that name."""

    topic: str | None
    client: Mapping[str, str]


SUBSCRIPTIONS = ("subscribe", "subscribepattern", "assign")
SOURCE_NAMES = {
    *SUBSCRIPTIONS, "startingoffsets", "startingoffsetsbytimestamp", "startingtimestamp",
    "startingoffsetsbytimestampstrategy", "endingoffsets", "endingoffsetsbytimestamp",
    "endingtimestamp", "maxoffsetspertrigger", "minpartitions", "maxrecordsperpartition",
    "minrecordsperpartition", "failondataloss", "includeheaders", "kafkaconsumer.polltimeoutms",
}  # fmt: skip
# Accepted so that a job written for the connector runs, but without effect here.
IGNORED_NAMES = {
    "groupidprefix", "fetchoffset.numretries", "fetchoffset.retryintervalms", "path",
    "usedeprecatedoffsetfetching", "kafka.consumer.cache.capacity", "kafka.consumer.cache.timeout",
}  # fmt: skip
SINK_NAMES = {"topic", "includeheaders", "checkpointlocation", "path"}
REFUSED_CLIENT_NAMES = {
    "auto.offset.reset", "key.deserializer", "value.deserializer", "enable.auto.commit",
    "interceptor.classes", "key.serializer", "value.serializer",
}  # fmt: skip
# The Java client's names of settings with another name in librdkafka.
RENAMED_CLIENT_NAMES = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "request.timeout.ms": "socket.timeout.ms",
    "connections.max.idle.ms": "connections.max.idle.ms",
    "metadata.max.age.ms": "metadata.max.age.ms",
}
# The Java client's settings without a counterpart in librdkafka.
JAVA_ONLY_CLIENT_NAMES = {"max.poll.records", "default.api.timeout.ms", "buffer.memory"}


def parse_source_options(given: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    """Read the options of a query; raise OptionError."""
    options = {name.lower(): value for name, value in given.items()}
    _refuse_unknown(options, SOURCE_NAMES | IGNORED_NAMES | SINK_NAMES)
    if is_stream and (ending := [name for name in options if name.startswith("ending")]):
        raise OptionError(f"{ending[0]} is for batch queries only")
    default_start = Bound.LATEST if is_stream else Bound.EARLIEST
    start = _edge(options, "starting", default_start)
    end = _edge(options, "ending", Bound.LATEST)
    if not is_stream and (start.bound is Bound.LATEST or LATEST in _values(start)):
        raise OptionError("a batch query cannot start at latest")
    if end.bound is Bound.EARLIEST or EARLIEST in _values(end):
        raise OptionError("a query cannot end at earliest")
    return SourceOptions(
        **_subscription(options),
        start=start,
        end=end,
        is_late_start_an_error=_late_start_is_an_error(options),
        max_offsets_per_trigger=_count(options, "maxoffsetspertrigger"),
        min_partitions=_count(options, "minpartitions"),
        max_records_per_partition=_count(options, "maxrecordsperpartition"),
        min_records_per_partition=_count(options, "minrecordsperpartition"),
        fail_on_data_loss=_truth(options, "failondataloss", default=True),
        include_headers=_truth(options, "includeheaders", default=False),
        poll_timeout_ms=_count(options, "kafkaconsumer.polltimeoutms") or 120_000,
        client=client_settings(options),
    )


def parse_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Read the options of a sink; raise OptionError."""
    options = {name.lower(): value for name, value in given.items()}
    _refuse_unknown(options, SOURCE_NAMES | IGNORED_NAMES | SINK_NAMES)
    return SinkOptions(topic=options.get("topic"), client=client_settings(options))


def wants_headers(options: Mapping[str, str]) -> bool:
    """Return True if the schema has the column `headers`."""
    return _truth({k.lower(): v for k, v in options.items()}, "includeheaders", default=False)


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return the `kafka.` options with librdkafka's names."""
    if not options.get("kafka.bootstrap.servers"):
        raise OptionError("option kafka.bootstrap.servers is missing")
    settings: dict[str, str] = {}
    for option, value in options.items():
        name = option.removeprefix("kafka.")
        if name == option or option in IGNORED_NAMES or name in JAVA_ONLY_CLIENT_NAMES:
            continue
        if name in REFUSED_CLIENT_NAMES:
            raise OptionError(f"{option} is decided by the source and cannot be set")
        if not is_security(name):
            settings[RENAMED_CLIENT_NAMES.get(name, name)] = value
    return settings | _security(options)


def _security(options: Mapping[str, str]) -> dict[str, str]:
    own = {
        option.removeprefix("kafka."): value
        for option, value in options.items()
        if option.startswith("kafka.")
    }
    try:
        return librdkafka_security(own)
    except ClientSettingsError as error:
        raise OptionError(f"kafka.{error}") from None


# --- one option ---


def _refuse_unknown(options: Mapping[str, str], known: set[str]) -> None:
    unknown = [name for name in options if name not in known and not name.startswith("kafka.")]
    if unknown:
        raise OptionError(f"option {min(unknown)} is not known")


def _subscription(options: Mapping[str, str]) -> dict[str, Any]:
    given = [name for name in SUBSCRIPTIONS if options.get(name, "").strip()]
    if len(given) != 1:
        raise OptionError("exactly one of subscribe, subscribePattern and assign must be given")
    text = options[given[0]].strip()
    if given[0] == "subscribe":
        return {"topics": tuple(part.strip() for part in text.split(",") if part.strip())}
    if given[0] == "subscribepattern":
        try:
            Pattern(text)
        except re.error as error:
            raise OptionError(f"subscribePattern: {error}") from error
        return {"topic_pattern": text}
    return {"assigned": _assigned(text)}


def _assigned(text: str) -> tuple[tuple[str, int], ...]:
    try:
        document = json.loads(text)
        return tuple((topic, int(p)) for topic in sorted(document) for p in sorted(document[topic]))
    except (ValueError, TypeError, AttributeError) as error:
        raise OptionError('assign: not of the form {"topic": [0, 1]}') from error


def _edge(options: Mapping[str, str], prefix: str, default: Bound) -> Edge:
    """Read the start or end of a query; a time wins over an offset, as in the connector."""
    if f"{prefix}timestamp" in options:
        return Edge(timestamp_ms=_count(options, f"{prefix}timestamp"))
    by_time = options.get(f"{prefix}offsetsbytimestamp")
    if by_time is not None:
        return Edge(timestamps_ms=_offsets(f"{prefix}OffsetsByTimestamp", by_time))
    text = options.get(f"{prefix}offsets", "").strip()
    if not text:
        return Edge(bound=default)
    if text.lower() in ("earliest", "latest"):
        return Edge(bound=Bound[text.upper()])
    return Edge(offsets=_offsets(f"{prefix}Offsets", text))


def _offsets(name: str, text: str) -> Offsets:
    try:
        return parse_offsets(text)
    except (ValueError, TypeError) as error:
        raise OptionError(f"{name}: {error}") from error


def _values(edge: Edge) -> Iterator[int]:
    return iter((edge.offsets or {}).values())


def _late_start_is_an_error(options: Mapping[str, str]) -> bool:
    strategy = options.get("startingoffsetsbytimestampstrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise OptionError("startingOffsetsByTimestampStrategy is error or latest")
    return strategy == "error"


def _count(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.strip().isdigit() or int(text) == 0:
        raise OptionError(f"{name} must be a positive whole number, not {text!r}")
    return int(text)


def _truth(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise OptionError(f"{name} must be true or false, not {text!r}")
    return text == "true"
