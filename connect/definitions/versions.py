"""The version of a plugin that a configuration asks for: `connector.plugin.version` (KIP-891).

A worker has one version of every plugin. A configuration that asks for another one is refused, so
that an older plugin does not run a configuration for a newer one. The syntax is Maven's: `1.2` is
that version, `[1.0,2.0)` is 1.0 to below 2.0, `(,1.5],[2.0,)` is one of several ranges, `latest` is
any version.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from connect.definitions.connector import CLASS, PLUGIN_VERSION
from connect.definitions.plugged import Offered, aliases
from connect.herder.names import bad_request
from connect.plugins.catalogue import PluginKind, Plugins
from millstream.connect.config.config_def import ConfigDef, ConfigValue
from millstream.connect.config.types import class_name
from millstream.connect.connectors import Connector

Config = Mapping[str, str | None]

_LATEST: Final = "latest"
_UNKNOWN: Final = "undefined"
_RANGE: Final = re.compile(r"([\[(])([^,\[\]()]*)(?:(,)([^,\[\]()]*))?([\])])(?:,(?=[\[(]))?")
_PARTS: Final = re.compile(r"\d+|[a-z]+")
_BEFORE_RELEASE: Final = ("alpha", "beta", "milestone", "rc", "cr", "snapshot")
_MAX_PARTS: Final = 8
_CONVERTERS: Final = (
    ("key.converter", PluginKind.CONVERTER),
    ("value.converter", PluginKind.CONVERTER),
    ("header.converter", PluginKind.HEADER_CONVERTER),
)
_PLUGGED: Final = (
    ("transforms", PluginKind.TRANSFORMATION),
    ("predicates", PluginKind.PREDICATE),
)


class Range(NamedTuple):
    """Versions from one to another; an end that is empty is none."""

    low: str
    high: str
    has_low: bool
    has_high: bool

    def holds(self, version: str) -> bool:
        at = _order(version)
        if self.low and (at < _order(self.low) or (at == _order(self.low) and not self.has_low)):
            return False
        return (
            not self.high or at < _order(self.high) or (self.has_high and at == _order(self.high))
        )

    def __str__(self) -> str:
        begin, end = "[" if self.has_low else "(", "]" if self.has_high else ")"
        return f"{begin}{self.low},{self.high}{end}"


def ranges_of(text: str) -> list[Range]:
    """Read what is asked for; no range at all lets every version be. Raises ValueError."""
    text = text.strip()
    if text.lower() == _LATEST:
        return []
    if not text.startswith(("[", "(")):
        if not text or any(sign in text for sign in "[]()"):
            raise ValueError(f"Invalid version requirement: {text}")
        return [Range(text, text, True, True)]
    found, at = [], 0
    while at < len(text):
        one = _RANGE.match(text, at)
        if one is None:
            raise ValueError(f"Unbounded range: {text}")
        begin, low, comma, high, end = one.groups()
        last = (high if comma else low).strip()
        found.append(Range(low.strip(), last, begin == "[", end == "]"))
        at = one.end()
    return found


def _order(version: str) -> list[tuple[int, int, str]]:
    """Give a key by which versions are older or newer: 1.9 < 1.10-rc1 < 1.10 = 1.10.0."""
    parts = []
    for part in _PARTS.findall(version.lower()):
        if part.isdecimal():
            parts.append((2, int(part), ""))
        else:
            parts.append((0 if part in _BEFORE_RELEASE else 1, 0, part))
    # Before a release there is always something less, behind it something more.
    return [*parts, *[(2, 0, "")] * (_MAX_PARTS - len(parts))]


def with_versions(
    definition: ConfigDef,
    plugins: Plugins,
    connector: type[Connector],
    config: Config,
    converters_of_worker: Mapping[str, str],
) -> ConfigDef:
    """Show the versions there are as what would be taken."""
    enriched = ConfigDef(definition)
    _offer(enriched, f"connector.{PLUGIN_VERSION}", connector)
    for name, kind in _CONVERTERS:
        found = config.get(name) or converters_of_worker.get(name)
        _offer(enriched, f"{name}.{PLUGIN_VERSION}", _found(plugins, found, kind))
    for setting, kind in _PLUGGED:
        for alias in aliases(config, setting):
            prefix = f"{setting}.{alias}."
            plugin = _found(plugins, config.get(f"{prefix}type"), kind)
            _offer(enriched, f"{prefix}{PLUGIN_VERSION}", plugin)
    return enriched


def _offer(definition: ConfigDef, name: str, plugin: type | None) -> None:
    version = _version(plugin)
    if version is not None and name in definition.keys:
        key = definition.keys[name]
        definition.keys[name] = replace(key, default=version, recommender=Offered([version]))


def _found(plugins: Plugins, name: str | None, kind: PluginKind) -> type | None:
    try:
        found: type | None = plugins.find(name or "", kind)
    except LookupError:
        return None
    return found


def _version(plugin: type | None) -> str | None:
    version: str = getattr(plugin, "version", lambda: _UNKNOWN)()
    return None if version == _UNKNOWN else version


def check_versions(
    plugins: Plugins,
    connector: type[Connector],
    config: Config,
    values: dict[str, ConfigValue],
) -> None:
    """Add what is wrong with the versions that a configuration asks for.

    Raises RefusalError when it cannot be told which version of the connector it is meant for.
    """
    try:
        ranges_of(config.get(f"connector.{PLUGIN_VERSION}") or _LATEST)
    except ValueError as error:
        raise bad_request(str(error)) from error
    _check(config, values, connector, CLASS, f"connector.{PLUGIN_VERSION}")
    for name, kind in _CONVERTERS:
        # Without a converter of its own it has the worker's, whatever its version.
        plugin = _found(plugins, config.get(name), kind)
        _check(config, values, plugin, name, f"{name}.{PLUGIN_VERSION}")
    for setting, kind in _PLUGGED:
        for alias in aliases(config, setting):
            prefix = f"{setting}.{alias}."
            plugin = _found(plugins, config.get(f"{prefix}type"), kind)
            _check(config, values, plugin, f"{prefix}type", f"{prefix}{PLUGIN_VERSION}")


def _check(
    config: Config,
    values: dict[str, ConfigValue],
    plugin: type | None,
    of: str,
    setting: str,
) -> None:
    asked = config.get(setting)
    if asked is None or plugin is None:
        return
    value = values.setdefault(setting, ConfigValue(setting, asked))
    try:
        ranges = ranges_of(asked)
    except ValueError as error:
        value.error_messages.append(str(error))
        return
    version = _version(plugin)
    if not ranges or (version is not None and any(each.holds(version) for each in ranges)):
        return
    there = ",".join(map(str, ranges))
    message = (
        f"Plugin {class_name(plugin)} not found that matches the version range {there}, "
        f"available versions: [{version or _UNKNOWN}]"
    )
    values.setdefault(of, ConfigValue(of, config.get(of))).error_messages.append(message)
    value.error_messages.append(message)
