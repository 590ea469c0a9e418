"""What a tool's client may be told: `--command-config` and the bootstrap addresses.

The file holds the properties of Kafka's AdminClient. Those that say how long to wait and who asks
are followed; the others concern things this client does not have. A security protocol it does not
speak is refused, rather than falling back to an open connection. Security settings are spelt as in
Kafka: `security.protocol`, `ssl.truststore.location`, `sasl.mechanism`, `sasl.jaas.config`.
"""

from collections.abc import Mapping
from pathlib import Path

from broker.cli.waiting import TerminalWatch
from broker.config.sources import invalid
from common.credentials.connecting import OPEN, Security
from common.kafka.admin.settings import AdminSettings
from common.kafka.client.exchange import parse_addresses
from common.process import properties as properties_file


def admin_settings(
    servers: str | None,
    controllers: str | None = None,
    properties: Mapping[str, str] | None = None,
    *,
    default_timeout_ms: int = 60_000,
) -> AdminSettings:
    """Put the arguments and the properties together; raises KafkaError(INVALID_CONFIG)."""
    properties = properties or {}
    defaults = AdminSettings(bootstrap=())
    servers = servers or (None if controllers else properties.get("bootstrap.servers"))
    controllers = controllers or (None if servers else properties.get("bootstrap.controllers"))
    if servers and controllers:
        raise invalid("You cannot specify both --bootstrap-server and --bootstrap-controller.")
    if not (servers or controllers):
        raise invalid("You must specify either --bootstrap-server or --bootstrap-controller.")
    api_timeout_ms = _number(properties, "default.api.timeout.ms", default_timeout_ms)
    return AdminSettings(
        bootstrap=parse_addresses(servers or controllers or ""),
        is_controller_bootstrap=bool(controllers),
        client_id=properties.get("client.id", defaults.client_id),
        request_timeout_ms=_number(
            properties, "request.timeout.ms", min(defaults.request_timeout_ms, api_timeout_ms)
        ),
        api_timeout_ms=api_timeout_ms,
        first_contact_timeout_ms=api_timeout_ms
        if "default.api.timeout.ms" in properties
        else min(defaults.first_contact_timeout_ms, api_timeout_ms),
        retry_backoff_ms=_number(properties, "retry.backoff.ms", defaults.retry_backoff_ms),
        retry_backoff_max_ms=_number(
            properties, "retry.backoff.max.ms", defaults.retry_backoff_max_ms
        ),
        security=_security(properties, of_controllers=bool(controllers)),
        watch=TerminalWatch(),
    )


def _security(properties: Mapping[str, str], *, of_controllers: bool) -> Security:
    """Return how to connect. Without these two properties a connection is open."""
    if "security.protocol" not in properties and "process.roles" not in properties:
        return OPEN
    # Imported here: it is two thirds of the start of a short tool.
    from broker.cli.client_security import client_security

    return client_security(properties, of_controllers=of_controllers)


def read_properties(path: str) -> dict[str, str]:
    """Read a Java properties file; raises KafkaError(INVALID_CONFIG) when it cannot be read."""
    try:
        return properties_file.read_properties(Path(path))
    except (OSError, ValueError) as error:
        raise invalid(f"cannot read {path}: {error}") from error


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    value = properties.get(name, str(default))
    if not value.strip().isdecimal():
        raise invalid(f"{name} must be a number of milliseconds, not {value!r}")
    return int(value)
