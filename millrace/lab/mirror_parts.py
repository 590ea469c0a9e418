"""What walks of the mirror are made of: the mirror, orders, who reads them, and who looks."""

import logging
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millrace.lab.programs import start_program
from millrace.lab.steps import StepFailedError

TOPIC: Final = "orders"
PARTITIONS: Final = 3
GROUP: Final = "billing"
_TIMEOUT_SECONDS: Final = 30.0
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
_QUIET: Final = logging.getLogger("millrace.lab.clients")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


class Mirror:
    """Owns the process of `millrace mirror` and its folder; used in a `with` block."""

    def __init__(self, clusters: Mapping[str, str], flows: Iterable[str], **more: str) -> None:
        """`clusters` is alias -> address, a flow is `a->b`; more settings with _ for dots."""
        self._folder = Path(tempfile.mkdtemp(prefix="millrace-mirror-"))
        told = dict.fromkeys(_ONE_NODE, "1")
        told |= {f"{name}.interval.seconds": "1" for name in _EVERY_SECOND}
        told |= {f"{flow}.enabled": "true" for flow in flows}
        told |= {f"{alias}.bootstrap.servers": servers for alias, servers in clusters.items()}
        told |= {name.replace("_", "."): value for name, value in more.items()}
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
        """Start it. Raises StepFailedError when it does not start."""
        log_path = self._folder / "log"
        with log_path.open("w") as log:
            self._process = start_program("connect.mirror", str(self.file), stderr=log)
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
                self._process.wait(_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Orders:
    """Writes orders with numbers, each once, and knows which were read how often."""

    def __init__(self) -> None:
        self.written: list[int] = []
        self.read: dict[int, int] = {}

    def write(self, servers: str, count: int) -> None:
        """Write so many more. Raises StepFailedError when they are not acknowledged."""
        producer = Producer({"bootstrap.servers": servers, "acks": "all", "logger": _QUIET})
        for _ in range(count):
            number = len(self.written)
            self.written.append(number)
            producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS)
        if producer.flush(_TIMEOUT_SECONDS):
            raise StepFailedError("orders were not acknowledged")

    def consume(self, servers: str, until: int) -> int:
        """Read as the group, on from its offsets, until so many different ones were read.

        Returns how many were read that had been read before.
        """
        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 500,
                "logger": _QUIET,
            }
        )
        consumer.subscribe([f"^(.*\\.)?{TOPIC}$"])
        again, silent = 0, 0.0
        try:
            while len(self.read) < until:
                message = consumer.poll(0.2)
                silent = silent + 0.2 if message is None else 0.0
                if silent > _TIMEOUT_SECONDS:
                    missing = sorted(set(self.written) - set(self.read))[:5]
                    raise StepFailedError(f"{GROUP} gets no more orders; first missing {missing}")
                if message is not None and message.error() is None:
                    number = int(message.value() or b"")
                    again += number in self.read
                    self.read[number] = self.read.get(number, 0) + 1
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        return again


def make_topic(servers: str) -> None:
    told: dict[str, Any] = {"bootstrap.servers": servers, "logger": _QUIET}
    admin = AdminClient(told)
    try:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, -1)])[TOPIC].result(_TIMEOUT_SECONDS)
    except KafkaException as error:
        raise StepFailedError(f"topic {TOPIC}: {error}") from error


class Watch:
    """Asks one cluster what it has."""

    def __init__(self, servers: str) -> None:
        told: dict[str, Any] = {"bootstrap.servers": servers, "group.id": GROUP}
        self._consumer = Consumer({**told, "logger": _QUIET})

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
        """Return the topics of orders, under all their names."""
        found = self._consumer.list_topics(timeout=_TIMEOUT_SECONDS).topics
        return sorted(name for name in found if name.split(".")[-1] == TOPIC)

    def lacks(self, topic: str, count: int) -> str:
        """Say how many records a topic lacks; "" is none."""
        if topic not in self.topics():
            return f"there is no topic {topic}"
        found = sum(
            self._consumer.get_watermark_offsets(TopicPartition(topic, n), _TIMEOUT_SECONDS)[1]
            for n in range(PARTITIONS)
        )
        return "" if found >= count else f"{topic} has {found} of {count} records"

    def lacks_offsets(self, topic: str, least: int) -> str:
        """Say what the group's offsets in a topic lack to so many in all; "" is nothing."""
        asked = [TopicPartition(topic, n) for n in range(PARTITIONS)]
        told = self._consumer.committed(asked, timeout=_TIMEOUT_SECONDS)
        total = sum(max(0, each.offset) for each in told)
        return "" if total >= least else f"{GROUP} is at {total} of {least} in {topic}"
