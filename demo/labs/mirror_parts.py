"""The parts of the mirror's walks: the mirror process, topics, and the checks of a cluster."""

import logging
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

from confluent_kafka import Consumer, Producer, TopicPartition

from common.kafka.admin.client import AdminClient
from common.kafka.admin.groups import delete_groups
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.topics import create_topic, delete_topics
from common.kafka.errors import KafkaError
from demo.labs.programs import start_program
from demo.labs.steps import StepFailedError

TOPIC: Final = "orders"
PRICES: Final = "prices"
PARTITIONS: Final = 3
GROUP: Final = "billing"
TIMEOUT_SECONDS: Final = 30.0
_TOLD_CHARACTERS: Final = 6_000
"""The number of lines of the mirror's log that are printed if a step fails."""
_ONE_NODE: Final = (
    "replication.factor",
    "offset-syncs.topic.replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset.storage.replication.factor",
    "config.storage.replication.factor",
    "status.storage.replication.factor",
)
_EVERY_SECOND: Final = (
    "refresh.topics",
    "refresh.groups",
    "emit.checkpoints",
    "sync.group.offsets",
)
QUIET: Final = logging.getLogger("demo.labs.clients")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


class Mirror:
    """Owns the process of `millstream mirror` and its folder, during a `with` block."""

    def __init__(
        self,
        clusters: Mapping[str, str],
        flows: Iterable[str],
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`clusters` maps aliases to bootstrap servers; a flow is `a->b`."""
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-mirror-"))
        told = dict.fromkeys(_ONE_NODE, "1")
        told |= {f"{name}.interval.seconds": "1" for name in _EVERY_SECOND}
        told |= {f"{flow}.enabled": "true" for flow in flows}
        told |= {f"{alias}.bootstrap.servers": servers for alias, servers in clusters.items()}
        told |= more
        told |= {
            "clusters": ",".join(clusters),
            "sync.group.offsets.enabled": "true",
            "offset.flush.interval.ms": "500",
            "listeners": "http://127.0.0.1:0",
        }
        self.file = self._folder / "mm2.properties"
        self.file.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Start the mirror. Raise StepFailedError if it does not start."""
        log_path = self._folder / "log"
        with log_path.open("w") as log:
            self._process = start_program("mirror", str(self.file), stderr=log)
        assert self._process.stdout is not None
        if "ready on" not in self._process.stdout.readline():
            raise StepFailedError(f"the mirror did not start: {log_path.read_text()[-500:]}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
        if isinstance(error, StepFailedError):
            # The mirror's log may show the cause of the failure.
            error.args = (f"{error}\n{(self._folder / 'log').read_text()[-_TOLD_CHARACTERS:]}",)
        shutil.rmtree(self._folder, ignore_errors=True)


def make_topic(servers: str, topic: str = TOPIC) -> None:
    try:
        with AdminClient(AdminSettings.of(servers)) as admin:
            create_topic(admin, topic, partition_count=PARTITIONS)
    except KafkaError as error:
        raise StepFailedError(f"topic {topic}: {error}") from error


def remove_traces(servers: str) -> None:
    """Remove the walk's topic and group from a cluster of the user. Raise StepFailedError."""
    try:
        with AdminClient(AdminSettings.of(servers)) as admin:
            refused = delete_groups(admin, [GROUP])[GROUP]
            if refused is not None:
                raise refused
            delete_topics(admin, [TOPIC])
    except KafkaError as error:
        raise StepFailedError(
            f"topic {TOPIC} and group {GROUP} could not be removed: {error}"
        ) from error


def write_prices(servers: str, count: int) -> None:
    """Write prices. Raise StepFailedError if they are not acknowledged."""
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "logger": QUIET})
    for number in range(count):
        producer.produce(PRICES, b"%d" % number, partition=number % PARTITIONS)
    if producer.flush(TIMEOUT_SECONDS):
        raise StepFailedError("prices were not acknowledged")


class Watch:
    """Reads the topics, records and offsets of one cluster."""

    def __init__(self, servers: str) -> None:
        told: dict[str, Any] = {"bootstrap.servers": servers, "group.id": GROUP}
        self._consumer = Consumer({**told, "logger": QUIET})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._consumer.close()

    def topics(self) -> list[str]:
        """Return the topics with orders and prices, including their copies."""
        found = self._consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
        return sorted(name for name in found if name.split(".")[-1] in (TOPIC, PRICES))

    def lacks(self, topic: str, count: int) -> str:
        """Return a text if a topic has fewer than `count` records; "" otherwise."""
        if topic not in self.topics():
            return f"topic {topic} does not exist"
        found = sum(
            self._consumer.get_watermark_offsets(TopicPartition(topic, n), TIMEOUT_SECONDS)[1]
            for n in range(PARTITIONS)
        )
        return "" if found >= count else f"{topic} has {found} of {count} records"

    def offsets(self, topic: str) -> list[int]:
        """Return the group's offset in each partition."""
        asked = [TopicPartition(topic, n) for n in range(PARTITIONS)]
        told = self._consumer.committed(asked, timeout=TIMEOUT_SECONDS)
        return [max(0, each.offset) for each in sorted(told, key=lambda each: each.partition)]

    def lacks_offsets(self, topic: str, least: int) -> str:
        """Return a text if the sum of the group's offsets is less than `least`; "" otherwise."""
        total = sum(self.offsets(topic))
        return "" if total >= least else f"{GROUP} is at {total} of {least} records in {topic}"

    def values(self, topic: str) -> list[list[int]]:
        """Return the numbers of all orders in a topic, by partition."""
        ends = [
            self._consumer.get_watermark_offsets(TopicPartition(topic, n), TIMEOUT_SECONDS)[1]
            for n in range(PARTITIONS)
        ]
        self._consumer.assign([TopicPartition(topic, n, 0) for n in range(PARTITIONS)])
        found: list[list[int]] = [[] for _ in ends]
        while any(len(read) < end for read, end in zip(found, ends, strict=True)):
            message = self._consumer.poll(TIMEOUT_SECONDS)
            if message is None or message.error() is not None:
                raise StepFailedError(f"{topic} cannot be read to its end")
            found[message.partition() or 0].append(int(message.value() or b""))
        return found
