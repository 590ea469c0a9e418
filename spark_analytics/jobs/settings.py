"""Settings of the streaming job."""

from dataclasses import dataclass

from common.kafka.settings import KafkaSettings
from common.process.settings import setting
from spark_analytics.settings import Settings


@dataclass(frozen=True, kw_only=True)
class JobSettings(KafkaSettings, Settings):
    """The settings of the streaming job."""

    registry_url: str = setting("http://127.0.0.1:8081", "the schema registry")
    master: str = setting("local[2]", "Spark master: local[n], spark://..., k8s://..., yarn")
    source_format: str = setting("millstream", "millstream, or kafka with the connector's jars")
    replication_factor: int = setting(3, "replicas of a new topic; fewer where brokers are fewer")
    spark_conf: str = setting("", "more of Spark's own settings: name=value;name=value")
    checkpoint: str = setting("", "folder of checkpoints; default: beside the store")
    history: str = setting("", "folder of the order history; default: beside the store")
    trigger_ms: int = setting(500, "a micro-batch starts at most this often")
    stateful_trigger_ms: int = setting(
        60_000, "a micro-batch of closed windows or latencies starts at most this often"
    )
    max_offsets_per_trigger: int = setting(20_000, "records in one micro-batch at most")
    allowed_lateness_ms: int = setting(3_600_000, "delay of the watermark behind the newest order")
    segments_interval_ms: int = setting(300_000, "customer segments are made at most this often")

    def spark_settings(self) -> dict[str, str]:
        """Return Spark's own settings by name."""
        pairs = (pair.partition("=") for pair in self.spark_conf.split(";") if pair.strip())
        return {name.strip(): value.strip() for name, _, value in pairs}
