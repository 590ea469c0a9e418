"""The settings of this program."""

from dataclasses import dataclass

from common.http.settings import HttpSettings
from common.kafka.settings import KafkaSettings
from common.process.settings import setting


@dataclass(frozen=True, kw_only=True)
class Settings(KafkaSettings, HttpSettings):
    """The settings, with their defaults."""

    registry_url: str = setting("http://127.0.0.1:8081", "the schema registry")
    data_dir: str = setting("build/streams", "folder of this instance's RocksDB stores")
    http_host: str = setting("127.0.0.1", "address to serve HTTP on")
    http_port: int = setting(0, "port to serve HTTP on; 0 takes a free one")
    advertised_url: str = setting(
        "", "how other instances reach this one; default http://HOST:PORT"
    )
    neighbours: str = setting("", "links to servers: name=http://..., divided by commas")
    allowed_hosts: str = setting("", "names that clients reach this server by, with commas; *: all")
    application_id: str = setting("millstream-streams", "consumer group, and prefix of changelogs")
    session_timeout_ms: int = setting(10_000, "no heartbeat for so long: partitions are lost")
    replication_factor: int = setting(3, "replicas of a new topic; fewer where brokers are fewer")
    standby_replicas: int = setting(1, "other instances that keep a copy of each table partition")
    batch_interval_ms: int = setting(0, "a reader begins a batch at most this often")
    tumbling_seconds: int = setting(3600, "size of the tumbling windows by product")
    hopping_seconds: int = setting(24 * 3600, "size of the hopping windows by product")
    hopping_advance_seconds: int = setting(6 * 3600, "how far a hopping window is from the next")
    grace_seconds: int = setting(24 * 3600, "how late an event may come, in event time")
