"""Decides which client settings a connector may override (KIP-458)."""

from collections.abc import Callable, Mapping
from typing import Final

from connect.local_files import require_files
from connect.worker.settings import WorkerSettings
from millstream.connect.errors import ConfigException

_PRINCIPAL: Final = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})
_RUN_PROGRAMS: Final = frozenset(
    {
        *("plugin.library.paths", "sasl.kerberos.kinit.cmd", "ssl.engine.id"),
        *("ssl.engine.location", "ssl.providers"),
    }
)
"""Settings that make librdkafka run a command or load a library; no connector may set them."""
_ALLOWLIST: Final = "connector.client.config.override.allowlist"


def override_policy(settings: WorkerSettings) -> Callable[[str], str | None]:
    """Return a function from a setting to the reason it may not be overridden, None if it may.

    Raises ConfigException for an unknown policy.
    """
    name = str(settings["connector.client.config.override.policy"])
    short = name.rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy")
    allowed: frozenset[str] | None = frozenset()
    match short:
        case "All":
            allowed = None
        case "None":
            allowed = frozenset()
        case "Principal":
            allowed = _PRINCIPAL
        case "Allowlist":
            listed = (settings.written.get(_ALLOWLIST) or "").split(",")
            allowed = frozenset(each.strip() for each in listed)
        case _:
            raise ConfigException.of_value("connector.client.config.override.policy", name)

    def refused(setting: str) -> str | None:
        if setting in _RUN_PROGRAMS:
            return _runs_programs(setting)
        if allowed is None or setting in allowed:
            return None
        return (
            f"The '{short}' policy does not allow '{setting}' to be overridden in the connector "
            "configuration."
        )

    return refused


def require_harmless(overrides: Mapping[str, str | None]) -> None:
    """Raises ConfigException when overrides would run a program or read a forbidden file.

    Policies are checked when a configuration is submitted. This check also covers configurations
    that another worker wrote to the config topic.
    """
    for setting in overrides:
        if setting in _RUN_PROGRAMS:
            raise ConfigException(_runs_programs(setting))
    require_files(overrides)


def _runs_programs(setting: str) -> str:
    return f"'{setting}' runs programs on the worker's machine: only the worker's properties say it"
