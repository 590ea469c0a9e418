"""Settings as DescribeConfigs tells them: value, where it comes from, type and synonyms."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.config.broker_config import BrokerConfig
from broker.config.known_settings import KNOWN_SETTINGS
from broker.log.config import TOPIC_SETTINGS, format_value

DYNAMIC_TOPIC_CONFIG = 1
STATIC_BROKER_CONFIG = 4
DEFAULT_CONFIG = 5

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
    """One place a value could come from."""

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


def describe_broker(config: BrokerConfig) -> list[DescribedConfig]:
    """Return every known broker setting; what was not given has its default."""
    described = []
    for known in KNOWN_SETTINGS.values():
        is_given = known.name in config.given
        value = config.given.get(known.name, known.default)
        is_sensitive = known.type == "PASSWORD"
        shown = None if is_sensitive else value
        source = STATIC_BROKER_CONFIG if is_given else DEFAULT_CONFIG
        synonyms = [DescribedSynonym(known.name, shown, STATIC_BROKER_CONFIG)] if is_given else []
        if known.default is not None:
            synonyms.append(DescribedSynonym(known.name, known.default, DEFAULT_CONFIG))
        described.append(
            DescribedConfig(
                name=known.name,
                value=shown,
                source=source,
                config_type=CONFIG_TYPES[known.type],
                is_read_only=True,
                is_sensitive=is_sensitive,
                synonyms=synonyms,
            )
        )
    return described
