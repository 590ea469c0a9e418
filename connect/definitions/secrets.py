"""Secrets of a configuration: never shown, and kept when what is shown comes back.

A setting of type password, of the connector, its clients, converters or transformations, is shown
as `[hidden]`; a configuration in which it still says so keeps the value there was. What a config
provider knows never gets here: `${...}` is shown as it was written.
"""

from collections.abc import Mapping
from typing import Any, Final

from connect.definitions.connector import CLASS
from connect.definitions.validation import definition_of
from connect.plugins.catalogue import PluginKind, Plugins
from millrace.connect.config.types import Type
from millrace.connect.errors import KafkaException

HIDDEN: Final = "[hidden]"
_OF_CLIENTS: Final = ("sasl.jaas.config", "sasl.password", ".password", "ssl.keystore.key")

Config = Mapping[str, str | None]


def shown(plugins: Plugins, config: Config) -> dict[str, str | None]:
    """Give a configuration as anybody may see it."""
    secret = _secret_names(plugins, config)
    return {
        name: HIDDEN if value and name in secret and "${" not in value else value
        for name, value in config.items()
    }


def kept(plugins: Plugins, before: Config, config: Config) -> dict[str, str | None]:
    """Give a configuration with the secrets there were where it only shows them."""
    secret = _secret_names(plugins, config)
    return {
        name: before.get(name) if value == HIDDEN and name in secret else value
        for name, value in config.items()
    }


def values(plugins: Plugins, config: Config, resolved: Config) -> list[str]:
    """Return what must not be seen: values of secret settings, and what variables stand for.

    The longest come first, so that one within another is not left in pieces.
    """
    secret = _secret_names(plugins, config)
    found = {
        value
        for name, value in resolved.items()
        if value and (name in secret or config.get(name) != value)
    }
    return sorted(found, key=lambda value: (-len(value), value))


def without_resolved(infos: dict[str, Any], config: Config, resolved: Config) -> dict[str, Any]:
    """Put the variables back into what a validation says; changes and returns it."""
    replaced = {name: value for name, value in config.items() if resolved.get(name) != value}
    for each in infos["configs"]:
        value = each["value"]
        if value is None or value["name"] not in replaced:
            continue
        secret, written = resolved.get(value["name"]), replaced[value["name"]]
        value["value"] = written
        if secret:
            said = [message.replace(secret, str(written)) for message in value["errors"]]
            value["errors"] = said
    return infos


def _secret_names(plugins: Plugins, config: Config) -> set[str]:
    names = {name for name in config if ".override." in name and name.endswith(_OF_CLIENTS)}
    try:
        connector = plugins.connector(config.get(CLASS) or "")
        definition = definition_of(plugins, connector, config)
        keys = [*definition.keys.values(), *connector.config().keys.values()]
    except (LookupError, KafkaException):
        # Written by a worker that has other plugins: what looks like a secret is one.
        return names | {name for name in config if name.endswith(("password", "secret"))}
    names |= {key.name for key in keys if key.type is Type.PASSWORD}
    for part in ("key", "value", "header"):
        names |= _secrets_of_converter(plugins, config, f"{part}.converter")
    return names


def _secrets_of_converter(plugins: Plugins, config: Config, setting: str) -> set[str]:
    try:
        found = plugins.find(
            config.get(setting) or "", PluginKind.CONVERTER, PluginKind.HEADER_CONVERTER
        )
    except LookupError:
        return set()
    keys = found.config().keys.values()
    return {f"{setting}.{key.name}" for key in keys if key.type is Type.PASSWORD}
