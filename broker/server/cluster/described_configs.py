"""Settings as DescribeConfigs answers them: value, source, type and synonyms."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.config.broker_config import BrokerConfig
from broker.config.dynamic_settings import DYNAMIC_SETTINGS
from broker.config.known_settings import KNOWN_SETTINGS
from broker.log.config import TOPIC_SETTINGS, format_value
from broker.server.cluster.resources import GROUP

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


def describe_topic(config: BrokerConfig, own: Mapping[str, str]) -> list[DescribedConfig]:
    """Return every public topic setting: its own value, else the broker's, else the default."""
    described = []
    for setting in TOPIC_SETTINGS.values():
        if setting.is_internal:
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
    """Return every known broker setting: its value, and every source it could come from."""
    described = []
    for known in KNOWN_SETTINGS.values():
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
        described.append(
            DescribedConfig(
                name=known.name,
                value=None if is_sensitive else first.value,
                source=first.source,
                config_type=CONFIG_TYPES[known.type],
                is_read_only=known.name not in DYNAMIC_SETTINGS,
                is_sensitive=is_sensitive,
                synonyms=synonyms,
            )
        )
    return described


def describe_broker_defaults(for_all: Mapping[str, str]) -> list[DescribedConfig]:
    """Return the settings that were made for all brokers at run time."""
    return [
        DescribedConfig(
            name=name,
            value=value,
            source=DYNAMIC_DEFAULT_BROKER_CONFIG,
            config_type=CONFIG_TYPES[KNOWN_SETTINGS[name].type],
            synonyms=[DescribedSynonym(name, value, DYNAMIC_DEFAULT_BROKER_CONFIG)],
        )
        for name, value in sorted(for_all.items())
    ]


def describe_others(resource_type: int, own: Mapping[str, str]) -> list[DescribedConfig]:
    """Return the settings of client metrics or a group: they are stored, and not used here."""
    source = DYNAMIC_GROUP_CONFIG if resource_type == GROUP else DYNAMIC_CLIENT_METRICS_CONFIG
    return [
        DescribedConfig(
            name,
            value,
            source,
            CONFIG_TYPES["STRING"],
            synonyms=[DescribedSynonym(name, value, source)],
        )
        for name, value in sorted(own.items())
    ]
