"""The settings that every service has; services add fields of their own in a subclass."""

from dataclasses import dataclass

from common.process.settings import setting


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every service can be told."""

    bootstrap_servers: str = setting("127.0.0.1:9092", "Kafka's host:port, several with commas")
    registry_url: str = setting("http://127.0.0.1:8081", "the schema registry")
    http_host: str = setting("127.0.0.1", "address to serve HTTP on")
    http_port: int = setting(0, "port to serve HTTP on; 0 takes a free one")
    advertised_url: str = setting("", "how others reach this instance; default http://HOST:PORT")
    neighbours: str = setting("", "servers to link to: name=http://..., with commas between")
    session_timeout_ms: int = setting(10_000, "a silent instance loses its partitions after this")
    replication_factor: int = setting(3, "replicas of a new topic; fewer where brokers are fewer")
    commit_interval_ms: int = setting(
        250,
        "what puts nothing out, offsets and changed rows, is committed after this at the latest",
    )
    allow_faults: int = setting(0, "1: PUT /faults may slow this service down, for a trial")
    request_interval_ms: int = setting(
        100, "what requests cause is written at most this often, unless much has gathered"
    )
    batch_interval_ms: int = setting(0, "a batch is begun at most this often, unless one is full")
