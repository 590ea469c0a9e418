"""For Spark tests: the connector's jars, records in Kafka, readers of both formats."""

import shutil
import subprocess
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, Row

from common.kafka.admin import topics
from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from tests.lib.side_by_side import one_at_a_time

ROOT = Path(__file__).parents[2]
JARS_FOLDER = ROOT / "build" / "spark-jars"
RESOLVE = ROOT / "tests" / "spark_analytics" / "jars" / "resolve.sh"
RESOLVE_SECONDS = 180
JAR_COUNT = 5
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Settings for sessions with a few rows, for which generated code and adaptive planning take
longer than they save."""


def connector_jars() -> list[str]:
    """Return the official connector's jars, and fetch them if necessary; empty if impossible."""
    with one_at_a_time("spark-jars"):
        if len(list(JARS_FOLDER.glob("*.jar"))) < JAR_COUNT and shutil.which("mvn"):
            subprocess.run(
                [RESOLVE], check=False, timeout=RESOLVE_SECONDS, stdout=subprocess.DEVNULL
            )
    jars = sorted(str(path) for path in JARS_FOLDER.glob("*.jar"))
    return jars if len(jars) >= JAR_COUNT else []


def source_options(servers: str, topic: str, **more: object) -> dict[str, str]:
    """Return options for both formats."""
    return {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        **{name: str(value) for name, value in more.items()},
    }


def create_topic(servers: str, topic: str, partitions: int, **config: str) -> None:
    """Create a topic and wait until it exists."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    with AdminClient(AdminSettings.of(servers)) as admin:
        topics.create_topic(
            admin, topic, partition_count=partitions, replication_factor=1, configs=settings
        )


def produce(servers: str, topic: str, numbers: range, **settings: str) -> None:
    """Write records with keys, some null, and headers on every third."""
    producer = Producer({"bootstrap.servers": servers, "log_level": 2, "linger.ms": 20, **settings})
    for number in numbers:
        producer.produce(
            topic,
            b"value-%d" % number,
            key=None if number % 5 == 0 else b"key-%d" % number,
            headers=[("n", b"%d" % number), ("none", None)] if number % 3 == 0 else None,
        )
    producer.flush()


def values(rows: list[Row]) -> list[int]:
    """Return the numbers of `produce` in rows, in order."""
    return sorted(int(bytes(row["value"]).rpartition(b"-")[2]) for row in rows)


def in_order(frame: DataFrame) -> list[Row]:
    """Return all rows by partition and offset."""
    return frame.orderBy("topic", "partition", "offset").collect()
