"""What a tool's client may be told: `--command-config` and the bootstrap addresses.

The file holds the properties of Kafka's AdminClient. Those that say how long to wait and who asks
are followed; the others concern things this client does not have. A security protocol it does not
speak is refused, rather than falling back to an open connection. Security settings are spelt as in
Kafka: `security.protocol`, `ssl.truststore.location`, `sasl.mechanism`, `sasl.jaas.config`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from broker.config.security_config import ClientSecurity, read_client_security
from common.kafka.errors import ErrorCode, KafkaError
from common.process import properties as properties_file


@dataclass(frozen=True, slots=True)
class AdminSettings:
    """Where to begin and how long to wait; the defaults are those of Kafka's AdminClient."""

    bootstrap: tuple[tuple[str, int], ...]
    is_controller_bootstrap: bool = False
    client_id: str = "millstream-admin"
    request_timeout_ms: int = 30_000
    api_timeout_ms: int = 60_000
    first_contact_timeout_ms: int = 10_000
    """How long to look for a first node that answers: a mistyped address is told soon."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    security: ClientSecurity = field(default_factory=ClientSecurity)


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
        raise _invalid("You cannot specify both --bootstrap-server and --bootstrap-controller.")
    if not (servers or controllers):
        raise _invalid("You must specify either --bootstrap-server or --bootstrap-controller.")
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
        security=read_client_security(properties),
    )


def read_properties(path: str) -> dict[str, str]:
    """Read a Java properties file; raises KafkaError(INVALID_CONFIG) when it cannot be read."""
    try:
        return properties_file.read_properties(Path(path))
    except (OSError, ValueError) as error:
        raise _invalid(f"cannot read {path}: {error}") from error


def parse_addresses(text: str) -> tuple[tuple[str, int], ...]:
    """Parse `host:port,host:port`, where an IPv6 host stands in brackets."""
    addresses = []
    for part in filter(None, map(str.strip, text.split(","))):
        host, colon, port = part.rpartition(":")
        if not (colon and host and port.isdecimal()):
            raise _invalid(f"Invalid url in bootstrap.servers: {part} (it should be host:port)")
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        raise _invalid("No bootstrap urls given in bootstrap.servers")
    return tuple(addresses)


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    value = properties.get(name, str(default))
    if not value.strip().isdecimal():
        raise _invalid(f"{name} must be a number of milliseconds, not {value!r}")
    return int(value)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
