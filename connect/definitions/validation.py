"""A whole configuration, checked: what PUT /connector-plugins/{plugin}/config/validate answers.

A connector may override settings of Kafka's clients: `client_settings.json` has the settings of the
producer, the consumer and the admin client of Apache Kafka 4.3.1, read from the ConfigDefs of its
jars.
"""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from connect.definitions.connector import CLASS, check_sink, sink_config, source_config
from connect.definitions.exactly_once import check_exactly_once
from connect.definitions.plugged import with_converters, with_plugged
from connect.definitions.versions import check_versions, with_versions
from connect.herder.names import bad_request
from connect.plugins.catalogue import PluginKind, Plugins
from millstream.connect.config.config_def import ConfigDef, ConfigKey, ConfigValue
from millstream.connect.config.infos import config_infos, config_key_info, config_value_info
from millstream.connect.connectors import (
    Connector,
    SinkConnector,
    SourceConnector,
)
from millstream.connect.errors import text_of
from millstream.connect.plugins import ConnectPlugin

Config = Mapping[str, str | None]
Policy = Callable[[str], str | None]
"""Says what is wrong with overriding a client's setting; None when it is allowed."""

WrongFiles = Callable[[Config], Mapping[str, str]]
"""Says, by setting, what is wrong with the files that a configuration names."""

NO_CONVERTERS: Mapping[str, str] = {}
_CONVERTERS = (
    ("header.converter", PluginKind.HEADER_CONVERTER, "header"),
    ("key.converter", PluginKind.CONVERTER, "key"),
    ("value.converter", PluginKind.CONVERTER, "value"),
)
_OVERRIDES = ("producer.override.", "consumer.override.", "admin.override.")
_NULL = "Null value can not be supplied as the configuration value."


def kind_of(plugins: Plugins, config: Config) -> str:
    """Say whether a configuration is of a source or a sink; unknown when nobody can tell."""
    try:
        connector = plugins.connector(config.get(CLASS) or "")
    except LookupError:
        return "unknown"
    return "sink" if issubclass(connector, SinkConnector) else "source"


def version_of(plugins: Plugins, config: Config) -> str | None:
    """Say which version a configuration's connector has; None when nobody can tell."""
    try:
        return plugins.connector(config.get(CLASS) or "").version()
    except LookupError:
        return None


def connector_class(plugins: Plugins, config: Config) -> type[Connector]:
    """Return the class a configuration names. Raises RefusalError when there is none."""
    name = config.get(CLASS)
    if name is None:
        raise bad_request(f"Connector config {_shown(config)} contains no connector type")
    try:
        return plugins.connector(name)
    except LookupError:
        raise bad_request(
            f"Failed to find any class that implements Connector and which name matches {name}, "
            f"available connectors are: {_available(plugins)}"
        ) from None


def definition_of(plugins: Plugins, connector: type[Connector], config: Config) -> ConfigDef:
    """Return the settings that a connector of this configuration has from Connect itself."""
    base = sink_config() if issubclass(connector, SinkConnector) else source_config()
    return with_plugged(base, config, plugins)


def validate(
    plugins: Plugins,
    config: Config,
    override_policy: Policy = lambda _: None,
    converters_of_worker: Mapping[str, str] = NO_CONVERTERS,
    *,
    is_exactly_once: bool = False,
    wrong_files: WrongFiles = lambda _: {},
) -> dict[str, Any]:
    """Check a configuration. Raises RefusalError when it names no connector.

    `is_exactly_once` says whether the worker lets sources write in transactions.
    """
    connector = connector_class(plugins, config)
    definition = definition_of(plugins, connector, config)
    definition = with_converters(definition, plugins, converters_of_worker)
    definition = with_versions(definition, plugins, connector, config, converters_of_worker)

    def find(name: str) -> type:
        found: type = plugins.find(name)
        return found

    values = definition.validate_all(config, find)
    given = {name: value for name, value in config.items() if value is not None}
    if issubclass(connector, SinkConnector):
        check_sink(config, values)
    elif issubclass(connector, SourceConnector):
        check_exactly_once(connector, given, values, is_enabled=is_exactly_once)
    check_versions(plugins, connector, config, values)
    for name, value in config.items():
        if value is None:
            values.setdefault(name, ConfigValue(name)).error_messages.append(_NULL)
    converters = _converter_infos(plugins, config, values)
    own = connector.config()
    values.update(_own_values(connector, given))
    for name, wrong in wrong_files(_of_no_client(config)).items():
        values.setdefault(name, ConfigValue(name)).error_messages.append(wrong)

    def refused(name: str, setting: str) -> str | None:
        return override_policy(setting) or wrong_files({name: config[name]}).get(name)

    body = config_infos(
        str(config[CLASS]),
        {**definition.keys, **own.keys},
        values.values(),
        list(dict.fromkeys([*definition.groups, *own.groups])),
    )
    for more in (_override_infos(connector, config, refused), converters):
        body["configs"] += more
        body["error_count"] += sum(len(each["value"]["errors"]) for each in more)
    return body


def _of_no_client(config: Config) -> dict[str, str | None]:
    """Leave out what is overridden of clients, which is looked at with their policy."""
    return {name: value for name, value in config.items() if not name.startswith(_OVERRIDES)}


def _own_values(connector: type[Connector], config: Mapping[str, str]) -> dict[str, ConfigValue]:
    return connector().validate(config)


def _converter_infos(
    plugins: Plugins, config: Config, values: Mapping[str, ConfigValue]
) -> list[dict[str, Any]]:
    """Check the settings of converters, each behind its own prefix."""
    found: list[dict[str, Any]] = []
    for name, kind, part in _CONVERTERS:
        if config.get(name) is None or values[name].error_messages:
            continue
        converter: type[ConnectPlugin] = plugins.find(config[name] or "", kind)
        prefix = f"{name}."
        given = {
            key.removeprefix(prefix): value
            for key, value in config.items()
            if key.startswith(prefix) and value is not None
        }
        definition = converter.config()
        checked = converter.validate({"converter.type": part, **given})
        found += [_info(prefix, definition.keys.get(each.name), each) for each in checked.values()]
    return found


def _info(prefix: str, key: ConfigKey | None, value: ConfigValue) -> dict[str, Any]:
    shown = config_value_info(value, None if key is None else key.type)
    shown["name"] = prefix + value.name
    definition = None if key is None else {**config_key_info(key), "name": prefix + key.name}
    return {"definition": definition, "value": shown}


def _clients(connector: type[Connector], config: Config) -> list[str]:
    """List the clients that Apache's worker counts as a connector's."""
    if not issubclass(connector, SinkConnector):
        creates = any(name.startswith("topic.creation.") for name in config)
        return ["producer", "admin"] if creates else ["producer"]
    has_dead_letters = bool(config.get("errors.deadletterqueue.topic.name"))
    return ["producer", "admin", "consumer"] if has_dead_letters else ["consumer"]


def _override_infos(
    connector: type[Connector], config: Config, refused: Callable[[str, str], str | None]
) -> list[dict[str, Any]]:
    """Show the settings that a connector overrides of clients it has, and all that it may not."""
    found: list[dict[str, Any]] = []
    used = _clients(connector, config)
    for client in ("producer", "admin", "consumer"):
        prefix = f"{client}.override."
        for name, value in config.items():
            if not name.startswith(prefix):
                continue
            wrong = refused(name, name.removeprefix(prefix))
            if wrong is None and client not in used:
                continue
            shown = ConfigValue(name, value, error_messages=[] if wrong is None else [wrong])
            definition = client_key_info(client, name.removeprefix(prefix))
            found.append({**_info("", None, shown), "definition": definition})
    return found


def require_valid(infos: Mapping[str, Any]) -> None:
    """Raises RefusalError with all mistakes that a validation found."""
    if not infos["error_count"]:
        return
    messages = [message for each in infos["configs"] for message in _errors(each)]
    raise bad_request(
        "Connector configuration is invalid and contains the following "
        f"{infos['error_count']} error(s):\n" + "\n".join(messages) + "\nYou can also find the "
        "above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
    )


def _errors(info: Mapping[str, Any]) -> list[str]:
    return [] if info["value"] is None else info["value"]["errors"]


def _shown(config: Config) -> str:
    """Name the settings; their values may be secrets."""
    return text_of(sorted(config))


def _available(plugins: Plugins) -> str:
    found = plugins.all(PluginKind.SOURCE, PluginKind.SINK)
    return ", ".join(sorted(plugin.__qualname__ for _, plugin in found))


@lru_cache(1)
def _settings() -> dict[tuple[str, str], dict[str, Any]]:
    text = (files(__package__) / "client_settings.json").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(text)
    return {(client, each["name"]): each for each in found for client in each["clients"]}


def client_key_info(client: str, setting: str) -> dict[str, Any] | None:
    """Describe a setting of a client, as REST does; None when Kafka's client has none of the name.

    `client` is producer, consumer or admin.
    """
    found = _settings().get((client, setting))
    if found is None:
        return None
    name = f"{client}.override.{setting}"
    return {
        "name": name,
        "type": found["type"],
        "required": found["required"],
        "default_value": found["default_value"],
        "importance": found["importance"],
        "documentation": f"`{setting}` of Kafka's {client} client.",
        "group": found["group"],
        "order_in_group": -1,
        "width": "NONE",
        "display_name": setting,
        "dependents": [],
    }
