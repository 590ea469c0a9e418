"""Which settings of clients a connector may override (KIP-458)."""

from collections.abc import Callable
from typing import Final

from connect.worker.settings import WorkerSettings
from millrace.connect.errors import ConfigException

_PRINCIPAL: Final = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})
_ALLOWLIST: Final = "connector.client.config.override.allowlist"


def override_policy(settings: WorkerSettings) -> Callable[[str], str | None]:
    """Return what says why a setting may not be overridden, None if it may.

    Raises ConfigException for a policy that nobody knows.
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
        if allowed is None or setting in allowed:
            return None
        return (
            f"The '{short}' policy does not allow '{setting}' to be overridden in the connector "
            "configuration."
        )

    return refused
