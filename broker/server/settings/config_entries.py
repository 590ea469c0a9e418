"""Settings as DescribeConfigs answers them: value, source, type and synonyms.

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS and GROUP are the numbers in requests of the types of
resources that have settings.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from broker.config.broker_config import BrokerConfig
from broker.config.dynamic_settings import is_dynamic
from broker.config.known_settings import KNOWN_SETTINGS, KnownSetting
from broker.config.sources import base_of
from broker.log.config import TOPIC_SETTINGS, format_value
from broker.metadata.control.group_limits import (
    GROUP_DEFAULTS,
    GROUP_SETTINGS,
    RENEW_IS_ENABLED,
)
from broker.metadata.control.settings.client_metrics import (
    DEFAULT_INTERVAL_MS,
    INTERVAL,
    MATCH,
    METRICS,
)

DYNAMIC_TOPIC_CONFIG = 1
DYNAMIC_BROKER_CONFIG = 2
DYNAMIC_DEFAULT_BROKER_CONFIG = 3
STATIC_BROKER_CONFIG = 4
DEFAULT_CONFIG = 5
DYNAMIC_CLIENT_METRICS_CONFIG = 7
DYNAMIC_GROUP_CONFIG = 8

# The type numbers of KIP-569.
CONFIG_TYPES = {
    "BOOLEAN": 1,
    "STRING": 2,
    "INT": 3,
    "SHORT": 4,
    "LONG": 5,
    "DOUBLE": 6,
    "LIST": 7,
    "CLASS": 8,
    "PASSWORD": 9,
}


@dataclass(slots=True)
class DescribedSynonym:
    """One source that a value could come from."""

    name: str
    value: str | None
    source: int


@dataclass(slots=True)
class DescribedConfig:
    """One setting. `synonyms` are in the order of their precedence."""

    name: str
    value: str | None
    source: int
    config_type: int
    is_read_only: bool = False
    is_sensitive: bool = False
    documentation: str | None = None
    synonyms: list[DescribedSynonym] = field(default_factory=list)


def describe_topic(
    config: BrokerConfig, own: Mapping[str, str], wanted: Collection[str] = ()
) -> list[DescribedConfig]:
    """Return topic settings: a topic's own value, else the broker's, else the default.

    They are all that are public, or the `wanted` ones of them.
    """
    described = []
    for setting in TOPIC_SETTINGS.values():
        if setting.is_internal or (wanted and setting.name not in wanted):
            continue
        default = format_value(setting.default)
        inherited = format_value(getattr(config.log, setting.field_name))
        synonyms: list[DescribedSynonym] = []
        if setting.name in own:
            synonyms.append(DescribedSynonym(setting.name, own[setting.name], DYNAMIC_TOPIC_CONFIG))
        given = [synonym.name for synonym in setting.synonyms if synonym.name in config.given]
        if given:
            synonyms.append(DescribedSynonym(given[0], inherited, STATIC_BROKER_CONFIG))
        if setting.synonyms and KNOWN_SETTINGS[setting.synonyms[0].name].default is not None:
            synonyms.append(DescribedSynonym(setting.synonyms[0].name, default, DEFAULT_CONFIG))
        first = synonyms[0] if synonyms else DescribedSynonym("", default, DEFAULT_CONFIG)
        described.append(
            DescribedConfig(
                name=setting.name,
                value=first.value,
                source=first.source,
                config_type=int(setting.type),
                documentation=setting.doc,
                synonyms=synonyms,
            )
        )
    return described


def describe_broker(
    static: BrokerConfig, for_all: Mapping[str, str], own: Mapping[str, str]
) -> list[DescribedConfig]:
    """Return every known broker setting: its value, and every source it could come from.

    Behind them come the settings that one listener has for itself.
    """
    described = [_describe_known(known, static, for_all, own) for known in KNOWN_SETTINGS.values()]
    for name in sorted({*static.given, *for_all, *own}):
        base = base_of(name)
        if base is not None:
            known = KNOWN_SETTINGS[base]
            general = _describe_known(known, static, for_all, own)
            listener = KnownSetting(name, known.type, None)
            config = _describe_known(listener, static, for_all, own)
            config.synonyms += general.synonyms
            described.append(config)
    return described


def _describe_known(
    known: KnownSetting,
    static: BrokerConfig,
    for_all: Mapping[str, str],
    own: Mapping[str, str],
) -> DescribedConfig:
    is_sensitive = known.type == "PASSWORD"
    places = [
        (DYNAMIC_BROKER_CONFIG, own),
        (DYNAMIC_DEFAULT_BROKER_CONFIG, for_all),
        (STATIC_BROKER_CONFIG, static.given),
    ]
    synonyms = [
        DescribedSynonym(known.name, None if is_sensitive else place[known.name], source)
        for source, place in places
        if known.name in place
    ]
    if known.default is not None:
        synonyms.append(DescribedSynonym(known.name, known.default, DEFAULT_CONFIG))
    first = synonyms[0] if synonyms else DescribedSynonym(known.name, None, DEFAULT_CONFIG)
    return DescribedConfig(
        name=known.name,
        value=None if is_sensitive else first.value,
        source=first.source,
        config_type=CONFIG_TYPES[known.type],
        is_read_only=not is_dynamic(known.name),
        is_sensitive=is_sensitive,
        synonyms=synonyms,
    )


def describe_broker_defaults(for_all: Mapping[str, str]) -> list[DescribedConfig]:
    """Return the settings that were made for all brokers at run time."""
    described = []
    for name, value in sorted(for_all.items()):
        known = KNOWN_SETTINGS.get(base_of(name) or name)
        # The controller of Apache Kafka records settings that are unknown here.
        kind = "PASSWORD" if known is None else known.type
        shown = None if kind == "PASSWORD" else value
        described.append(
            DescribedConfig(
                name=name,
                value=shown,
                source=DYNAMIC_DEFAULT_BROKER_CONFIG,
                config_type=CONFIG_TYPES[kind],
                is_sensitive=kind == "PASSWORD",
                synonyms=[DescribedSynonym(name, shown, DYNAMIC_DEFAULT_BROKER_CONFIG)],
            )
        )
    return described


def describe_group(
    static: BrokerConfig,
    for_all: Mapping[str, str],
    of_broker: Mapping[str, str],
    own: Mapping[str, str],
) -> list[DescribedConfig]:
    """Return every group setting: its own value, else the broker's, else the default."""
    described = []
    for name in sorted(GROUP_SETTINGS):
        known = KNOWN_SETTINGS.get(f"group.{name}")
        if known is None:
            kind = "BOOLEAN" if name == RENEW_IS_ENABLED else "STRING"
            config = DescribedConfig(name, GROUP_DEFAULTS[name], DEFAULT_CONFIG, CONFIG_TYPES[kind])
            config.synonyms.append(DescribedSynonym(name, config.value, DEFAULT_CONFIG))
        else:
            config = _describe_known(known, static, for_all, of_broker)
            config.name, config.is_read_only = name, False
        described.append(_with_own(config, own, DYNAMIC_GROUP_CONFIG))
    return described


def describe_client_metrics(own: Mapping[str, str]) -> list[DescribedConfig]:
    """Return every setting of a subscription to client metrics."""
    defaults = (
        (INTERVAL, str(DEFAULT_INTERVAL_MS), "INT"),
        (MATCH, "", "LIST"),
        (METRICS, "", "LIST"),
    )
    return [
        _with_own(
            DescribedConfig(name, default, DEFAULT_CONFIG, CONFIG_TYPES[kind]),
            own,
            DYNAMIC_CLIENT_METRICS_CONFIG,
        )
        for name, default, kind in defaults
    ]


def _with_own(config: DescribedConfig, own: Mapping[str, str], source: int) -> DescribedConfig:
    """Give a setting the value that its group or subscription has for it, if it has one."""
    if config.name in own:
        config.value, config.source = own[config.name], source
        config.synonyms.insert(0, DescribedSynonym(config.name, config.value, source))
    return config


TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32
