"""Secrets of a configuration: never shown, and kept when what is shown comes back.

A setting of type password, of the connector, its clients, converters or transformations, is shown
as `[hidden]`; a configuration in which it still says so keeps the value there was, unless a setting
says another address: a kept secret goes only to where it went before. `${...}` is shown as it was
written, and what a config provider has for it is taken out of every text that is shown.

A setting decides about an address if its name contains a word for an address or for the protection
of a connection, or if its value looks like an address. So unknown plugins are covered, too. If a
harmless setting is taken for an address, the user has to type a secret again; the opposite mistake
would give the secret away.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from connect.config_providers.variables import VARIABLE
from connect.definitions.concealing import HIDDEN, Concealing
from connect.definitions.connector import CLASS
from connect.definitions.validation import definition_of
from connect.herder.names import bad_request
from connect.plugins.catalogue import PluginKind, Plugins
from millstream.connect.config.types import Type
from millstream.connect.errors import KafkaException

Config = Mapping[str, str | None]

_PARTS: Final = (
    *("url", "uri", "host", "server", "endpoint", "address", "broker", "bootstrap", "proxy"),
    # Without these the way there is open, or ends somewhere else.
    *("ssl", "tls", "https", "security", "protocol", "mechanism", "truststore", "jaas", "oauth"),
)
_WORDS: Final = frozenset(
    {"port", "ports", "region", "bucket", "domain", "dsn", "socket", "ca", "realm", "driver"}
)
_WORD: Final = re.compile(r"[a-z]+|[A-Z][a-z]*|[0-9]+")
_LOOKS_LIKE_ONE: Final = re.compile(
    r"\w://|^jdbc:|@|^\[?[\w.:-]+\]?:[0-9]{1,5}(/|,|$)|^[0-9]{1,3}(\.[0-9]{1,3}){3}$"
)


def changed_addresses(before: Config, after: Config) -> list[str]:
    """Name the settings of addresses that differ, are new or are gone."""
    names = sorted(before.keys() | after.keys())
    return [
        name
        for name in names
        if before.get(name) != after.get(name)
        and (_is_named_so(name) or _looks_so(before.get(name)) or _looks_so(after.get(name)))
    ]


def _is_named_so(name: str) -> bool:
    lowered = name.lower()
    words = {word.lower() for word in _WORD.findall(name)}
    return name == CLASS or any(part in lowered for part in _PARTS) or bool(words & _WORDS)


def _looks_so(value: str | None) -> bool:
    return value is not None and _LOOKS_LIKE_ONE.search(value.strip()) is not None


_OF_CLIENTS: Final = (
    *("sasl.jaas.config", ".password", "ssl.keystore.key", "ssl.key.pem"),
    *("client.secret", "sasl.oauthbearer.config"),
)
"""How the names end of what Kafka's clients keep secret, whatever stands before."""
_PROVIDER: Final = PluginKind.CONFIG_PROVIDER
_PLUGGED: Final = ("transforms.", "predicates.")

_TOLD: Final = ("name", "group", "documentation", "display_name", "default_value", "dependents")
"""What of a setting's definition may hold the name of a transformation, or what a plugin says."""


def shown(plugins: Plugins, config: Config) -> dict[str, str | None]:
    """Give a configuration as anybody may see it."""
    secret = _secret_names(plugins, config)
    return {
        name: HIDDEN if value and name in secret and not VARIABLE.search(value) else value
        for name, value in config.items()
    }


def kept(plugins: Plugins, before: Config, config: Config) -> dict[str, str | None]:
    """Give a configuration with the secrets there were where it only shows them.

    Raises RefusalError when it says another address than before.
    """
    secret = _secret_names(plugins, config)
    hidden = {name for name, value in config.items() if value == HIDDEN and name in secret}
    found = {name: before.get(name) if name in hidden else value for name, value in config.items()}
    if any(before.get(name) for name in hidden):
        changed = changed_addresses(before, found)
        if changed:
            raise bad_request(
                f"A secret that is {HIDDEN} stays only while the addresses stay: "
                f"{', '.join(changed)} changed, so {', '.join(sorted(hidden))} must be given again"
            )
    return found


def patched(plugins: Plugins, before: Config, config: Config, patch: Config) -> dict[str, Any]:
    """Give a configuration that a patch has made, with secrets kept as in `kept`.

    Raises RefusalError when the patch changes an address and not the secrets that go there.
    """
    seen = shown(plugins, before)
    told = {name: value if name in patch else seen[name] for name, value in config.items()}
    return kept(plugins, before, told)


def values(plugins: Plugins, config: Config) -> set[str]:
    """Return the values of secret settings: what must not be seen of a configuration."""
    secret = _secret_names(plugins, config)
    found = {value for name, value in config.items() if value and name in secret}
    return {value for value in found if not VARIABLE.search(value)}


def without_resolved(
    infos: dict[str, Any],
    config: Config,
    resolved: Config,
    written: Concealing,
    concealing: Concealing,
) -> dict[str, Any]:
    """Put the variables back into what a validation says; its errors hold no other secret either.

    `written` has the variables alone. Names of types and the like are Kafka's own words: they stay,
    whatever a variable stands for.
    """
    replaced = {name: value for name, value in config.items() if resolved.get(name) != value}
    for each in infos["configs"]:
        value = each["value"]
        if value is not None and value["name"] in replaced:
            value["value"] = replaced[value["name"]]
        if value is not None:
            errors = concealing.all(value["errors"])
            each["value"] = {**written.all(value), "errors": errors}
        told = each["definition"]
        if told is not None:
            each["definition"] = {
                **told,
                **{part: written.all(told[part]) for part in _TOLD if part in told},
            }
    infos["name"] = written.text(infos["name"])
    infos["groups"] = written.all(infos["groups"])
    return infos


def _secret_names(plugins: Plugins, config: Config) -> set[str]:
    names = {name for name in config if name.endswith(_OF_CLIENTS)}
    try:
        connector = plugins.connector(config.get(CLASS) or "")
        definition = definition_of(plugins, connector, config)
        keys = [*definition.keys.values(), *connector.config().keys.values()]
    except (LookupError, KafkaException):
        # Variables name the plugins, or a worker that has others wrote it: what looks like a secret
        # or is one of any plugin is one.
        ends = ("password", "secret", *_secrets_of_any(plugins))
        return names | {name for name in config if name.endswith(ends)}
    names |= {key.name for key in keys if key.type is Type.PASSWORD}
    if any("${" in (config.get(aliases) or "") for aliases in ("transforms", "predicates")):
        ends = tuple(_secrets_of_any(plugins))
        names |= {n for n in config if n.startswith(_PLUGGED) and n.endswith(ends)}
    for part in ("key", "value", "header"):
        names |= _secrets_of_converter(plugins, config, f"{part}.converter")
    return names


def _secrets_of_any(plugins: Plugins) -> set[str]:
    found: list[Any] = [each for kind, each in plugins.all() if kind is not _PROVIDER]
    keys = [key for plugin in found for key in plugin.config().keys.values()]
    return {key.name for key in keys if key.type is Type.PASSWORD}


def _secrets_of_converter(plugins: Plugins, config: Config, setting: str) -> set[str]:
    try:
        found = plugins.find(
            config.get(setting) or "", PluginKind.CONVERTER, PluginKind.HEADER_CONVERTER
        )
    except LookupError:
        return set()
    keys = found.config().keys.values()
    return {f"{setting}.{key.name}" for key in keys if key.type is Type.PASSWORD}
