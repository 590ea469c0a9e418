"""What connectors and tasks of a worker share: settings, plugins, config providers, offsets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.credentials.jaas import ALLOWED_URLS
from connect.config_providers.variables import Variables
from connect.definitions import secrets
from connect.definitions.concealing import HIDDEN, Concealing
from connect.definitions.validation import kind_of
from connect.local_files import SETTING as ALLOWED_DIRECTORIES
from connect.local_files import allow_directories
from connect.plugins.catalogue import PluginKind, Plugins
from connect.worker.client_settings import (
    AWAY_DEFAULTS,
    KAFKA_LOG,
    librdkafka_settings,
    with_prefix,
)
from connect.worker.offset_store import OffsetStore
from connect.worker.override_policy import require_harmless
from connect.worker.record_plugins import converters_of
from connect.worker.settings import WorkerSettings
from millstream.connect.errors import ConfigException
from millstream.connect.plugins import ConfigProvider

Config = Mapping[str, str | None]


@dataclass(frozen=True)
class Environment:
    """Constant while the worker runs, except for the content of the offset store."""

    settings: WorkerSettings
    plugins: Plugins
    providers: Mapping[str, ConfigProvider]
    offsets: OffsetStore

    def variables(self, *configs: Config) -> Variables:
        """Look up the values of variables. This reads files: do not call it on the event loop."""
        return Variables.of(*configs, providers=self.providers)

    def resolve(self, config: Config) -> dict[str, str]:
        """Replace the variables. This reads files: call it in the caller's own thread."""
        return filled(config, self.variables(config))

    def concealing(self, config: Config, variables: Variables) -> Concealing:
        """Return the filter that hides secrets and variables' values in a connector's texts."""
        hidden = secrets.values(self.plugins, filled(config, variables))
        return Concealing(dict.fromkeys(hidden, HIDDEN) | variables.written_for)

    def is_exactly_once(self, config: Config) -> bool:
        """Return whether a connector of this configuration writes in transactions."""
        return self.settings.is_exactly_once and kind_of(self.plugins, config) == "source"

    def client(self, kind: str, config: Config, **own: Any) -> dict[str, Any]:
        """Return the settings of a task's client: ours, the worker's, the connector's.

        A later source overrides an earlier one. `kind` is producer, consumer or admin. Raises
        ConfigException for a setting that a connector may not override.
        """
        worker = self.settings.client_of_tasks(kind)
        connector = with_prefix(config, f"{kind}.override.")
        require_harmless(connector)
        told = librdkafka_settings({**worker, **connector})
        if kind == "admin":
            # No code polls it, so its log lines would stay in memory. Its answers have its errors.
            return {**AWAY_DEFAULTS, "log_level": "2", **own, **told}
        return {**own, **told, "logger": KAFKA_LOG}


def filled(config: Config, variables: Variables) -> dict[str, str]:
    """Return a configuration with variables replaced and null settings removed."""
    found = variables.filled(config)
    return {name: value for name, value in found.items() if value is not None}


def environment_of(settings: WorkerSettings, plugins: Plugins, offsets: OffsetStore) -> Environment:
    """Make the tasks' environment, and set the files that they may use.

    Raises ConfigException for a setting with which every task would fail.
    """
    urls = (settings.written.get(ALLOWED_URLS) or "").split(",")
    allow_directories(settings[ALLOWED_DIRECTORIES], urls)
    converters_of(plugins, settings, {})
    return Environment(settings, plugins, config_providers(plugins, settings), offsets)


def config_providers(plugins: Plugins, settings: WorkerSettings) -> dict[str, ConfigProvider]:
    """Make the providers that `config.providers` names. Raises ConfigException."""
    providers: dict[str, ConfigProvider] = {}
    for name in settings["config.providers"]:
        told = with_prefix(settings.written, f"config.providers.{name}.")
        try:
            provider = plugins.find(told.get("class") or "", PluginKind.CONFIG_PROVIDER)()
        except LookupError:
            raise ConfigException.of_value(
                f"config.providers.{name}.class", told.get("class"), "Class could not be found."
            ) from None
        provider.configure(with_prefix(told, "param."))
        providers[name] = provider
    return providers
