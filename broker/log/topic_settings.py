"""All settings of a topic in one table: name, type, default, rule, documentation, broker synonyms.

Names, types, defaults and limits are those of Apache Kafka 4.3. `LogConfig`, the checks of
CreateTopics and IncrementalAlterConfigs, and the listing of DescribeConfigs use the table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from common.kafka.errors import ErrorCode, KafkaError

INT64_MAX = 2**63 - 1
INT32_MAX = 2**31 - 1
DAY_MS = 24 * 60 * 60 * 1000
WEEK_MS = 7 * DAY_MS

SettingValue: TypeAlias = bool | int | float | str | tuple[str, ...] | None


class SettingType(IntEnum):
    """The types of settings, with their numbers in DescribeConfigs (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True)
class Rule:
    """A check of a value; `complaint` is the message for a client if `holds` returns False."""

    holds: Callable[[SettingValue], bool]
    complaint: str


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker setting that gives a topic setting its default, times `factor`."""

    name: str
    factor: int = 1


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """One topic setting; the first of `synonyms` that is set on the broker gives the default."""

    name: str
    type: SettingType
    default: SettingValue
    doc: str
    rule: Rule | None = None
    synonyms: tuple[Synonym, ...] = ()
    is_internal: bool = False

    @property
    def field_name(self) -> str:
        """The name of the attribute of `LogConfig`."""
        return self.name.replace(".", "_")

    def parse(self, text: str) -> SettingValue:
        """Parse a value as Kafka's ConfigDef does; raise KafkaError(INVALID_CONFIG)."""
        try:
            value = _PARSERS[self.type](text.strip())
        except ValueError as error:
            raise self._refusal(text, str(error)) from None
        if self.rule is not None and not self.rule.holds(value):
            raise self._refusal(text, self.rule.complaint)
        return value

    def _refusal(self, text: str, complaint: str) -> KafkaError:
        message = f"Invalid value {text} for configuration {self.name}: {complaint}"
        return KafkaError(ErrorCode.INVALID_CONFIG, message)


def format_value(value: SettingValue) -> str | None:
    """Return the value in Kafka's notation: `true`, `delete,compact`, `0.5`."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def _parse_boolean(text: str) -> bool:
    values = {"true": True, "false": False}
    if text.lower() not in values:
        raise ValueError("Expected value to be either true or false")
    return values[text.lower()]


def _integer_parser(type_name: str, limit: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError(f"Not a number of type {type_name}") from None
        if not -limit - 1 <= value <= limit or "_" in text:
            raise ValueError(f"Not a number of type {type_name}")
        return value

    return parse


def _parse_double(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("Not a number of type DOUBLE") from None


def _parse_list(text: str) -> tuple[str, ...]:
    items = tuple(item.strip() for item in text.split(",")) if text else ()
    if "" in items:
        raise ValueError("Configuration values must not be empty.")
    if len(set(items)) < len(items):
        raise ValueError("Configuration values must not be duplicated.")
    return items


_PARSERS: dict[SettingType, Callable[[str], SettingValue]] = {
    SettingType.BOOLEAN: _parse_boolean,
    SettingType.STRING: lambda text: text,
    SettingType.INT: _integer_parser("INT", INT32_MAX),
    SettingType.LONG: _integer_parser("LONG", INT64_MAX),
    SettingType.DOUBLE: _parse_double,
    SettingType.LIST: _parse_list,
}


def _at_least(minimum: int) -> Rule:
    return Rule(
        lambda value: isinstance(value, int) and value >= minimum,
        f"Value must be at least {minimum}",
    )


def _between(minimum: int, maximum: int) -> Rule:
    def holds(value: SettingValue) -> bool:
        return isinstance(value, int | float) and minimum <= value <= maximum

    return Rule(holds, f"Value must be between {minimum} and {maximum}")


def _one_of(*allowed: str) -> Rule:
    return Rule(lambda value: value in allowed, f"String must be one of: {', '.join(allowed)}")


def _some_of(*allowed: str) -> Rule:
    def holds(value: SettingValue) -> bool:
        return isinstance(value, tuple) and set(value) <= set(allowed)

    return Rule(holds, f"String must be one of: {', '.join(allowed)}")


def _is_replica_list(value: SettingValue) -> bool:
    if not isinstance(value, tuple):
        return False
    if value in ((), ("*",)):
        return True
    pairs = [item.split(":") for item in value]
    return all(len(pair) == 2 and all(part.isdigit() for part in pair) for pair in pairs)


_REPLICA_LIST = Rule(
    _is_replica_list,
    "must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
)
_GZIP_LEVEL = Rule(
    lambda value: isinstance(value, int) and (value == -1 or 1 <= value <= 9),
    "Value must be between 1 and 9 or equal to -1",
)

_BOOLEAN, _STRING, _INT = SettingType.BOOLEAN, SettingType.STRING, SettingType.INT
_LONG, _DOUBLE, _LIST = SettingType.LONG, SettingType.DOUBLE, SettingType.LIST
_HOURS, _MINUTES = 60 * 60 * 1000, 60 * 1000


def _named(*names: str | tuple[str, int]) -> tuple[Synonym, ...]:
    return tuple(Synonym(name) if isinstance(name, str) else Synonym(*name) for name in names)


_TABLE = (
    TopicSetting(
        "cleanup.policy",
        _LIST,
        ("delete",),
        "What happens to old segments: delete drops them by age or size, compact keeps the last "
        "value of every key; both may be given, and an empty list keeps everything.",
        _some_of("compact", "delete"),
        _named("log.cleanup.policy"),
    ),
    TopicSetting(
        "compression.gzip.level",
        _INT,
        -1,
        "The gzip level when compression.type is gzip; -1 is the codec's own default.",
        _GZIP_LEVEL,
        _named("compression.gzip.level"),
    ),
    TopicSetting(
        "compression.lz4.level",
        _INT,
        9,
        "The lz4 level when compression.type is lz4.",
        _between(1, 17),
        _named("compression.lz4.level"),
    ),
    TopicSetting(
        "compression.type",
        _STRING,
        "producer",
        "The codec batches are stored with; producer keeps what the producer sent.",
        _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        _named("compression.type"),
    ),
    TopicSetting(
        "compression.zstd.level",
        _INT,
        3,
        "The zstd level when compression.type is zstd.",
        _between(-131072, 22),
        _named("compression.zstd.level"),
    ),
    TopicSetting(
        "delete.retention.ms",
        _LONG,
        DAY_MS,
        "How long a compacted topic keeps a tombstone, so that readers can still see the delete.",
        _at_least(0),
        _named("log.cleaner.delete.retention.ms"),
    ),
    TopicSetting(
        "file.delete.delay.ms",
        _LONG,
        60_000,
        "How long a deleted segment file stays on disk under its .deleted name.",
        _at_least(0),
        _named("log.segment.delete.delay.ms"),
    ),
    TopicSetting(
        "flush.messages",
        _LONG,
        INT64_MAX,
        "Sync the log to disk after so many records.",
        _at_least(1),
        _named("log.flush.interval.messages"),
    ),
    TopicSetting(
        "flush.ms",
        _LONG,
        INT64_MAX,
        "Sync the log to disk when the last sync is so old.",
        _at_least(0),
        _named("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ),
    TopicSetting(
        "follower.replication.throttled.replicas",
        _LIST,
        (),
        "Replicas whose fetching is throttled on the follower's side, as partition:broker, or *.",
        _REPLICA_LIST,
    ),
    TopicSetting(
        "index.interval.bytes",
        _INT,
        4096,
        "How many bytes of log lie between two entries of the offset index.",
        _at_least(0),
        _named("log.index.interval.bytes"),
    ),
    TopicSetting(
        "internal.segment.bytes",
        _INT,
        None,
        "Overrides segment.bytes without its lower limit; for tests.",
        is_internal=True,
    ),
    TopicSetting(
        "leader.replication.throttled.replicas",
        _LIST,
        (),
        "Replicas whose fetching is throttled on the leader's side, as partition:broker, or *.",
        _REPLICA_LIST,
    ),
    TopicSetting(
        "local.retention.bytes",
        _LONG,
        -2,
        "How many bytes a tiered partition keeps locally; -2 takes retention.bytes.",
        _at_least(-2),
        _named("log.local.retention.bytes"),
    ),
    TopicSetting(
        "local.retention.ms",
        _LONG,
        -2,
        "How long a tiered partition keeps a segment locally; -2 takes retention.ms.",
        _at_least(-2),
        _named("log.local.retention.ms"),
    ),
    TopicSetting(
        "max.compaction.lag.ms",
        _LONG,
        INT64_MAX,
        "The longest a record may stay uncompacted.",
        _at_least(1),
        _named("log.cleaner.max.compaction.lag.ms"),
    ),
    TopicSetting(
        "max.message.bytes",
        _INT,
        1_048_588,
        "The largest record batch, after compression.",
        _at_least(0),
        _named("message.max.bytes"),
    ),
    TopicSetting(
        "message.timestamp.after.max.ms",
        _LONG,
        3_600_000,
        "How far a record's timestamp may lie in the future.",
        _at_least(0),
        _named("log.message.timestamp.after.max.ms"),
    ),
    TopicSetting(
        "message.timestamp.before.max.ms",
        _LONG,
        INT64_MAX,
        "How far a record's timestamp may lie in the past.",
        _at_least(0),
        _named("log.message.timestamp.before.max.ms"),
    ),
    TopicSetting(
        "message.timestamp.type",
        _STRING,
        "CreateTime",
        "Whether a record carries the producer's time or the time of its append.",
        _one_of("CreateTime", "LogAppendTime"),
        _named("log.message.timestamp.type"),
    ),
    TopicSetting(
        "min.cleanable.dirty.ratio",
        _DOUBLE,
        0.5,
        "How much of a compacted log must be uncleaned before the cleaner looks at it.",
        _between(0, 1),
        _named("log.cleaner.min.cleanable.ratio"),
    ),
    TopicSetting(
        "min.compaction.lag.ms",
        _LONG,
        0,
        "The shortest a record stays uncompacted.",
        _at_least(0),
        _named("log.cleaner.min.compaction.lag.ms"),
    ),
    TopicSetting(
        "min.insync.replicas",
        _INT,
        1,
        "How many replicas must have a record before acks=all is answered.",
        _at_least(1),
        _named("min.insync.replicas"),
    ),
    TopicSetting(
        "preallocate",
        _BOOLEAN,
        False,
        "Accepted and without effect: a first write to preallocated blocks costs more here.",
        None,
        _named("log.preallocate"),
    ),
    TopicSetting(
        "remote.log.copy.disable",
        _BOOLEAN,
        False,
        "Stops copying segments of a tiered topic.",
    ),
    TopicSetting(
        "remote.log.delete.on.disable",
        _BOOLEAN,
        False,
        "Deletes the tiered data when tiering is switched off.",
    ),
    TopicSetting(
        "remote.storage.enable",
        _BOOLEAN,
        False,
        "Switches tiered storage on for the topic.",
    ),
    TopicSetting(
        "retention.bytes",
        _LONG,
        -1,
        "The size a partition may reach before its oldest segments are deleted; -1 is no limit.",
        None,
        _named("log.retention.bytes"),
    ),
    TopicSetting(
        "retention.ms",
        _LONG,
        WEEK_MS,
        "How long records are kept before their segment is deleted; -1 is no limit.",
        _at_least(-1),
        _named(
            "log.retention.ms",
            ("log.retention.minutes", _MINUTES),
            ("log.retention.hours", _HOURS),
        ),
    ),
    TopicSetting(
        "segment.bytes",
        _INT,
        1_073_741_824,
        "The size of a segment file.",
        _at_least(1024 * 1024),
        _named("log.segment.bytes"),
    ),
    TopicSetting(
        "segment.index.bytes",
        _INT,
        10 * 1024 * 1024,
        "The largest size of an offset or time index; a full one rolls the segment.",
        _at_least(4),
        _named("log.index.size.max.bytes"),
    ),
    TopicSetting(
        "segment.jitter.ms",
        _LONG,
        0,
        "A random time taken off segment.ms, so that segments do not all roll at once.",
        _at_least(0),
        _named("log.roll.jitter.ms", ("log.roll.jitter.hours", _HOURS)),
    ),
    TopicSetting(
        "segment.ms",
        _LONG,
        WEEK_MS,
        "The age at which a segment rolls even when it is not full.",
        _at_least(1),
        _named("log.roll.ms", ("log.roll.hours", _HOURS)),
    ),
    TopicSetting(
        "unclean.leader.election.enable",
        _BOOLEAN,
        False,
        "Whether a replica that misses acknowledged records may become leader as a last resort.",
        None,
        _named("unclean.leader.election.enable"),
    ),
)

TOPIC_SETTINGS: Mapping[str, TopicSetting] = {setting.name: setting for setting in _TABLE}
