"""The settings that every service has; services add fields of their own in a subclass."""

from dataclasses import dataclass

from common.http.settings import HttpSettings
from common.kafka.settings import KafkaSettings
from common.process.settings import setting


@dataclass(frozen=True, kw_only=True)
class Settings(KafkaSettings, HttpSettings):
    """The settings of every service."""

    registry_url: str = setting("http://127.0.0.1:8081", "the schema registry")
    http_host: str = setting("127.0.0.1", "address to serve HTTP on")
    http_port: int = setting(0, "port to serve HTTP on; 0 takes a free one")
    advertised_url: str = setting("", "how others reach this instance; default http://HOST:PORT")
    neighbours: str = setting("", "links to servers: name=http://..., divided by commas")
    allowed_hosts: str = setting("", "names that clients reach this server by, with commas; *: all")
    session_timeout_ms: int = setting(10_000, "no heartbeat for so long: partitions are lost")
    replication_factor: int = setting(3, "replicas of a new topic; fewer where brokers are fewer")
    commit_interval_ms: int = setting(
        250,
        "offsets and changed rows without output are committed after this at the latest",
    )
    allow_faults: int = setting(0, "1: PUT /faults may slow this service down, for a trial")
    request_interval_ms: int = setting(
        100, "records of requests are written at most this often, unless a batch is full"
    )
    batch_interval_ms: int = setting(0, "a batch is begun at most this often, unless one is full")
