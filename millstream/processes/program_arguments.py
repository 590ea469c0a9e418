"""The arguments of a stack's programs, and the properties of its Connect worker. Does no IO."""

from collections.abc import Mapping

REGISTRY = "schemas.registry"
REST_PROXY = "rest_proxy"
CONNECT = "connect"
CONSOLE = "console"
_LOOPBACK = "127.0.0.1"


def registry_arguments(bootstrap_servers: str, port: int, replication_factor: int) -> list[str]:
    """Return the registry's arguments; port 0 means a free port."""
    return [
        *("--bootstrap-servers", bootstrap_servers),
        *("--http-host", _LOOPBACK),
        *("--http-port", str(port)),
        *("--replication-factor", str(replication_factor)),
    ]


def rest_proxy_arguments(
    bootstrap_servers: str,
    registry_url: str,
    port: int,
    settings: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the REST proxy's arguments; port 0 means a free port."""
    told = {
        "bootstrap.servers": bootstrap_servers,
        "schema.registry.url": registry_url,
        "listeners": f"http://{_LOOPBACK}:{port}",
        **(settings or {}),
    }
    return [part for name, value in told.items() for part in ("--override", f"{name}={value}")]


def connect_properties(
    bootstrap_servers: str,
    registry_url: str,
    port: int,
    replication_factor: int,
    settings: Mapping[str, str] | None = None,
) -> str:
    """Return the properties file of a worker that stores its connectors in topics.

    By default values are JSON without a schema; a connector may set other converters.
    """
    told = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "connect",
        "listeners": f"http://{_LOOPBACK}:{port}",
        "config.storage.topic": "connect-configs",
        "offset.storage.topic": "connect-offsets",
        "offset.storage.partitions": "1",
        "status.storage.topic": "connect-status",
        "status.storage.partitions": "1",
        "config.storage.replication.factor": str(replication_factor),
        "offset.storage.replication.factor": str(replication_factor),
        "status.storage.replication.factor": str(replication_factor),
        "offset.flush.interval.ms": "1000",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "config.providers": "env",
        "config.providers.env.class": (
            "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
        ),
        **({"value.converter.schema.registry.url": registry_url} if registry_url else {}),
        **(settings or {}),
    }
    return "".join(f"{name}={value}\n" for name, value in told.items())
