"""The settings every connector has, those of sources and those of sinks: Kafka Connect's."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from connect.errors.dead_letters import define_dead_letter_settings
from connect.errors.tolerance import GROUP as ERROR_GROUP
from connect.errors.tolerance import define_error_settings
from connect.herder.restarts import DEFAULT_MAX_DELAY_MS, SETTING
from connect.java.patterns import java_pattern
from millstream.connect.config.config_def import ConfigDef, ConfigValue
from millstream.connect.config.types import Importance, Type, Width
from millstream.connect.config.validators import (
    CaseInsensitiveValidString,
    CompositeValidator,
    LambdaValidator,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    NonNullValidator,
    Range,
    Validator,
    ValidString,
)
from millstream.connect.errors import ConfigException
from millstream.connect.plugins import ConnectPlugin, Converter, HeaderConverter

COMMON: Final = "Common"
_EXACTLY_ONCE: Final = "Exactly Once Support"

CLASS: Final = "connector.class"
DLQ_TOPIC: Final = "errors.deadletterqueue.topic.name"
PLUGIN_VERSION: Final = "plugin.version"
"""What stands behind a plugin's name in the setting that asks for a version of it (KIP-891)."""


def unique_aliases(kind: str) -> Validator:
    """Check a list of names that further settings are put under."""

    def check(name: str, value: Any) -> None:
        if len(set(value)) < len(value):
            raise ConfigException.of_value(name, value, "Duplicate alias provided.")

    return CompositeValidator(NonNullValidator(), LambdaValidator(check, f"unique {kind}"))


def _converter_of(base: type) -> Validator:
    def check(name: str, value: Any) -> None:
        if value is not None and not issubclass(value, base):
            raise ConfigException.of_value(name, value, f"Not a {base.__name__}")

    words = (
        f"A concrete subclass of {base.__name__}, A class with a public, no-argument constructor"
    )
    return LambdaValidator(check, words)


def _define_common(definition: ConfigDef) -> ConfigDef:
    definition.define(
        "name",
        Type.STRING,
        Importance.HIGH,
        "The connector's name, which no other one of the cluster has.",
        validator=NonEmptyStringWithoutControlChars(),
        group=COMMON,
        order_in_group=1,
        width=Width.MEDIUM,
        display_name="Connector name",
    ).define(
        CLASS,
        Type.STRING,
        Importance.HIGH,
        "The connector's class: its full name, its class alone, or that without `Connector`.",
        group=COMMON,
        order_in_group=2,
        width=Width.LONG,
        display_name="Connector class",
    ).define(
        f"connector.{PLUGIN_VERSION}",
        Type.STRING,
        Importance.MEDIUM,
        "The versions of the connector that will do, as 1.2 or [1.0,2.0).",
        default=None,
        group=COMMON,
        order_in_group=3,
        width=Width.MEDIUM,
        display_name="Connector version",
    ).define(
        "tasks.max",
        Type.INT,
        Importance.HIGH,
        "The number of tasks that the connector may have.",
        default=1,
        validator=Range(1),
        group=COMMON,
        order_in_group=4,
        width=Width.SHORT,
        display_name="Tasks max",
    ).define(
        "tasks.max.enforce",
        Type.BOOLEAN,
        Importance.LOW,
        "Whether a connector that makes more tasks than tasks.max fails.",
        default=True,
        group=COMMON,
        order_in_group=5,
        width=Width.SHORT,
        display_name="Enforce tasks max",
    )
    return definition


def _define_converters(definition: ConfigDef) -> ConfigDef:
    parts: tuple[tuple[str, type[ConnectPlugin]], ...] = (
        ("key", Converter),
        ("value", Converter),
        ("header", HeaderConverter),
    )
    for order, (part, base) in zip((6, 8, 10), parts, strict=True):
        name = part.capitalize()
        definition.define(
            f"{part}.converter",
            Type.CLASS,
            Importance.LOW,
            f"The converter of {part}s; missing: the worker's.",
            default=None,
            validator=_converter_of(base),
            group=COMMON,
            order_in_group=order,
            width=Width.SHORT,
            display_name=f"{name} converter class",
        ).define(
            f"{part}.converter.{PLUGIN_VERSION}",
            Type.STRING,
            Importance.LOW,
            f"Which versions of the converter of {part}s will do.",
            default=None,
            group=COMMON,
            order_in_group=order + 1,
            width=Width.SHORT,
            display_name=f"{name} converter version",
        )
    return definition


def _define_plugged(definition: ConfigDef) -> ConfigDef:
    for order, (name, kind) in enumerate(
        (("transforms", "transformation"), ("predicates", "predicate")), 12
    ):
        definition.define(
            name,
            Type.LIST,
            Importance.LOW,
            f"The names of the connector's {kind}s; {name}.NAME.type is the class of one.",
            default=[],
            validator=unique_aliases(f"{kind} aliases"),
            group=name.capitalize(),
            order_in_group=order,
            width=Width.LONG,
            display_name=name.capitalize(),
        )
    return definition.define(
        "config.action.reload",
        Type.STRING,
        Importance.LOW,
        "The action when a config provider says that a value has changed.",
        default="restart",
        validator=ValidString("none", "restart"),
        group=COMMON,
        order_in_group=14,
        width=Width.MEDIUM,
        display_name="Reload Action",
    )


def _define_restarts(definition: ConfigDef) -> ConfigDef:
    return definition.define(
        SETTING,
        Type.LONG,
        Importance.MEDIUM,
        "A failed task starts again after a second, then after twice as long each time, up to this "
        "many milliseconds. 0: it stays failed, as in Kafka Connect.",
        default=DEFAULT_MAX_DELAY_MS,
        validator=Range(0),
        group=ERROR_GROUP,
        order_in_group=9,
        width=Width.MEDIUM,
        display_name="Maximum Delay Between Restarts of a Failed Task",
    )


def connector_config() -> ConfigDef:
    """Return the settings every connector has."""
    definition = _define_plugged(_define_converters(_define_common(ConfigDef())))
    definition = define_error_settings(definition)
    return _define_restarts(definition)


def sink_config() -> ConfigDef:
    """Return the settings every sink has."""
    definition = (
        connector_config()
        .define(
            "topics",
            Type.LIST,
            Importance.HIGH,
            "The topics to read, with commas between.",
            default="",
            group=COMMON,
            order_in_group=4,
            width=Width.LONG,
            display_name="Topics",
        )
        .define(
            "topics.regex",
            Type.STRING,
            Importance.HIGH,
            "A regular expression of the topics to read; either this or topics.",
            default="",
            validator=LambdaValidator(_check_regex, "valid regex"),
            group=COMMON,
            order_in_group=4,
            width=Width.LONG,
            display_name="Topics regex",
        )
    )
    return define_dead_letter_settings(definition)


def source_config() -> ConfigDef:
    """Return the settings every source has."""
    levels, boundaries = ("REQUIRED", "REQUESTED"), ("INTERVAL", "POLL", "CONNECTOR")
    return (
        connector_config()
        .define(
            "topic.creation.groups",
            Type.LIST,
            Importance.LOW,
            "The names of groups of topics that are created with settings of their own.",
            default=[],
            validator=unique_aliases("topic creation groups"),
            group="Topic Creation",
            order_in_group=1,
            width=Width.LONG,
            display_name="Topic Creation Groups",
        )
        .define(
            "exactly.once.support",
            Type.STRING,
            Importance.MEDIUM,
            "With required the connector has to say that it delivers exactly once.",
            default="requested",
            validator=CaseInsensitiveValidString(*levels),
            group=_EXACTLY_ONCE,
            order_in_group=2,
            width=Width.SHORT,
            display_name="Exactly once support",
        )
        .define(
            "transaction.boundary",
            Type.STRING,
            Importance.MEDIUM,
            "One transaction is a poll, an interval of time, or what the connector says.",
            default="poll",
            validator=CaseInsensitiveValidString(*boundaries),
            group=_EXACTLY_ONCE,
            order_in_group=3,
            width=Width.SHORT,
            display_name="Transaction Boundary",
        )
        .define(
            "transaction.boundary.interval.ms",
            Type.LONG,
            Importance.LOW,
            "The length of the interval; missing: offset.flush.interval.ms of the worker.",
            default=None,
            validator=_if_given(Range(0)),
            group=_EXACTLY_ONCE,
            order_in_group=4,
            width=Width.SHORT,
            display_name="Transaction boundary interval",
        )
        .define(
            "offsets.storage.topic",
            Type.STRING,
            Importance.LOW,
            "A topic of its own for this connector's offsets, when it runs in a cluster.",
            default=None,
            validator=NonEmptyString(),
            group="offsets.topic",
            order_in_group=1,
            width=Width.LONG,
            display_name="Offsets topic",
        )
    )


def _if_given(check: Callable[[str, Any], None]) -> Validator:
    return LambdaValidator(
        lambda name, value: None if value is None else check(name, value), str(check)
    )


def _check_regex(name: str, value: Any) -> None:
    try:
        java_pattern(value)
    except re.error as error:
        raise ConfigException.of_value(name, value, f"Invalid regex: {error}") from error


def topics_of(config: Mapping[str, str | None]) -> list[str]:
    """Return the topics of a sink by name."""
    names = (name.strip() for name in (config.get("topics") or "").split(","))
    return list(dict.fromkeys(name for name in names if name))


def check_sink(config: Mapping[str, str | None], values: dict[str, ConfigValue]) -> None:
    """Add what is wrong with a sink's topics: both or neither given, or dead letters among them."""
    topics, regex = (config.get("topics") or "").strip(), (config.get("topics.regex") or "").strip()
    dead_letters = (config.get(DLQ_TOPIC) or "").strip()

    def add(message: str, *names: str) -> None:
        for name in names:
            values.setdefault(name, ConfigValue(name, config.get(name)))
            values[name].error_messages.append(message)

    if topics and regex:
        said = "topics and topics.regex are mutually exclusive options, but both are set."
        add(said, "topics", "topics.regex")
    if not topics and not regex:
        add("Must configure one of topics or topics.regex", "topics", "topics.regex")
    if dead_letters and dead_letters in topics_of(config):
        named = f"topics=[{', '.join(topics_of(config))}]"
        add(
            f"The DLQ topic '{dead_letters}' may not be included in the list of topics ('{named}') "
            "consumed by the connector",
            "topics",
        )
    if dead_letters and regex and _matches(regex, dead_letters):
        add(
            f"The DLQ topic '{dead_letters}' may not be matched by the regex for the topics "
            f"('topics.regex={regex}') consumed by the connector",
            "topics.regex",
        )


def _matches(regex: str, topic: str) -> bool:
    try:
        return java_pattern(regex).fullmatch(topic) is not None
    except re.error:
        # Said already, by the setting's own validator.
        return False
