"""Keeps the secrets of mm2.properties out of the topic with the connectors' configurations.

Every reader of that topic in the target would know the password of the source. The topic has
`${mirror:CONNECTOR:SETTING}` instead; the worker of each process takes the value from its own file.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from connect.config_providers.variables import VARIABLE
from millstream.connect.plugins import ConfigProvider

NAME: Final = "mirror"
_SECRET: Final = (
    *("sasl.jaas.config", ".password", "ssl.keystore.key", "ssl.key.pem", "client.secret"),
    *("basic.auth.user.info", "sasl.oauthbearer.config"),
)
"""How the names of secret settings end."""
_PROVIDERS: Final = "config.providers"


class OwnSecrets(ConfigProvider):
    """Gives the values that were taken out of the configurations."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Keep the values, by connector and setting."""
        self._values = {name: str(value) for name, value in configs.items()}

    def get(self, path: str, keys: Iterable[str] | None = None) -> dict[str, str]:
        """Return settings of a connector."""
        beginning = f"{path}."
        found = {
            name.removeprefix(beginning): value
            for name, value in self._values.items()
            if name.startswith(beginning)
        }
        return found if keys is None else {key: found[key] for key in keys if key in found}


def without_secrets(config: Mapping[str, str]) -> dict[str, str]:
    """Return a connector's configuration with variables where its secrets were."""
    return {
        name: f"${{{NAME}:{config['name']}:{name}}}" if _is_secret(name, value) else value
        for name, value in config.items()
    }


def provider_settings(
    worker: Mapping[str, str], configs: Iterable[Mapping[str, str]]
) -> dict[str, str]:
    """Return what a worker's settings need besides, to know the secrets of the connectors."""
    listed = [each.strip() for each in worker.get(_PROVIDERS, "").split(",") if each.strip()]
    given = f"{_PROVIDERS}.{NAME}"
    return {
        _PROVIDERS: ",".join([*listed, NAME]),
        f"{given}.class": f"{OwnSecrets.__module__}.{OwnSecrets.__qualname__}",
        **{
            f"{given}.param.{config['name']}.{name}": value
            for config in configs
            for name, value in config.items()
            if _is_secret(name, value)
        },
    }


def _is_secret(name: str, value: str) -> bool:
    return bool(value) and name.endswith(_SECRET) and not VARIABLE.search(value)
