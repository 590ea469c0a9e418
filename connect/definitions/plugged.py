"""The settings of the plugins in a connector's configuration.

These are the available converters, and the transformations and predicates under their aliases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from connect.definitions.connector import PLUGIN_VERSION
from connect.plugins.catalogue import PluginKind, Plugins
from millstream.connect.config.config_def import ConfigDef
from millstream.connect.config.types import Importance, Type, Width, parse_type
from millstream.connect.config.validators import LambdaValidator
from millstream.connect.errors import ConfigException
from millstream.connect.plugins import ConnectPlugin

Config = Mapping[str, str | None]

PREDICATE = "predicate"
NEGATE = "negate"


class Offered:
    """Proposes values, whatever the other settings are."""

    def __init__(self, found: Sequence[Any]) -> None:
        self._found = found

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        del name, parsed
        return self._found

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        del name, parsed
        return True


def _classes(plugins: Plugins, kind: PluginKind) -> Offered:
    return Offered([plugin for _, plugin in plugins.all(kind)])


def with_converters(
    definition: ConfigDef, plugins: Plugins, of_worker: Mapping[str, str]
) -> ConfigDef:
    """Propose the converters there are; `of_worker` says, by setting, which is taken otherwise."""
    enriched = ConfigDef(definition)
    for name in ("key.converter", "value.converter", "header.converter"):
        is_header = name == "header.converter"
        kind = PluginKind.HEADER_CONVERTER if is_header else PluginKind.CONVERTER
        key = replace(enriched.keys[name], recommender=_classes(plugins, kind))
        if name in of_worker:
            key = replace(key, default=plugins.find(of_worker[name], kind))
        enriched.keys[name] = key
    return enriched


def aliases(config: Config, setting: str) -> list[str]:
    """Return the names a connector gives its transformations or predicates."""
    found: list[str] = parse_type(setting, config.get(setting), Type.LIST) or []
    return list(dict.fromkeys(found))


def with_plugged(definition: ConfigDef, config: Config, plugins: Plugins) -> ConfigDef:
    """Add what the transformations and predicates that a configuration names have to be told."""
    enriched = ConfigDef(definition)
    for setting, kind in (
        ("transforms", PluginKind.TRANSFORMATION),
        ("predicates", PluginKind.PREDICATE),
    ):
        for alias in aliases(config, setting):
            _define(enriched, config, plugins, (setting, kind, alias))
    return enriched


def _define(
    definition: ConfigDef, config: Config, plugins: Plugins, which: tuple[str, PluginKind, str]
) -> None:
    setting, kind, alias = which
    prefix, group = f"{setting}.{alias}.", f"{setting.capitalize()}: {alias}"
    base = kind.value.capitalize()

    def check(name: str, value: Any) -> None:
        if f"{prefix}{NEGATE}" in config and f"{prefix}{PREDICATE}" not in config:
            raise ConfigException(
                f"Config '{prefix}{NEGATE}' was provided but there is no config "
                f"'{prefix}{PREDICATE}' defining a predicate to be negated."
            )
        if value is None:
            return
        _configuration(name, value, base, plugins, kind)

    definition.define(
        f"{prefix}type",
        Type.CLASS,
        Importance.HIGH,
        f"Class for the '{alias}' {kind.value}.",
        validator=LambdaValidator(check, f"valid configs for {alias} {kind.value}"),
        group=group,
        order_in_group=0,
        width=Width.LONG,
        display_name=f"{base} type for {alias}",
        recommender=_classes(plugins, kind),
    )
    definition.define(
        f"{prefix}{PLUGIN_VERSION}",
        Type.STRING,
        Importance.HIGH,
        f"Which versions of the '{alias}' {kind.value} will do.",
        default=None,
        group=group,
        order_in_group=1,
        width=Width.LONG,
        display_name=f"{base} version for {alias}",
    )
    own = ConfigDef()
    if kind is PluginKind.TRANSFORMATION:
        own.define(
            PREDICATE,
            Type.STRING,
            Importance.MEDIUM,
            "The name of the predicate that says to which records this applies.",
            default=None,
        ).define(
            NEGATE,
            Type.BOOLEAN,
            Importance.MEDIUM,
            "Whether it applies to those of which the predicate does not hold.",
            default=False,
        )
    try:
        plugin = plugins.find(config.get(f"{prefix}type") or "", kind)
        for key in plugin.config().keys.values():
            if key.name not in own.keys:
                own.add(key)
    except LookupError:
        # The setting's own validator says so.
        return
    definition.embed(prefix, group, 2, own)


def _configuration(
    name: str, value: type, base: str, plugins: Plugins, kind: PluginKind
) -> ConfigDef:
    if value not in [plugin for _, plugin in plugins.all(kind)]:
        raise ConfigException.of_value(name, value, f"Not a {base}")
    assert issubclass(value, ConnectPlugin), value
    return value.config()
