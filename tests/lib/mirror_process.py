"""The mirror as a process, with its properties file."""

import json
import subprocess
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.topics import list_topics
from millstream.launch import program_environment
from millstream.processes.forked_process import ForkedProcess
from tests.lib.connect_worker import eventually
from tests.lib.forked import CONNECT

END_SECONDS = 60
QUICK = {
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "config.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset.storage.partitions": "3",
    "offset.flush.interval.ms": "300",
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
    "scheduled.rebalance.max.delay.ms": "0",
    "listeners": "http://127.0.0.1:0",
}


def properties_file(folder: Path, clusters: dict[str, str], settings: dict[str, str]) -> Path:
    """Write mm2.properties; `clusters` maps aliases to addresses."""
    addresses = {f"{alias}.bootstrap.servers": to for alias, to in clusters.items()}
    told = {"clusters": ",".join(clusters), **addresses, **QUICK, **settings}
    path = folder / "mm2.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
    return path


class MirrorProcess:
    """Owns the mirror's process."""

    def __init__(self, properties: Path, *arguments: str) -> None:
        self._arguments = [str(properties), *arguments]
        self._log = properties.with_suffix(".log")
        self.url = ""
        self.process: ForkedProcess | None = None

    def start(self) -> Self:
        with self._log.open("a") as log:
            self.process = CONNECT.start(
                "mirror", self._arguments, program_environment(), log, is_bound=True
            )
        self.process.stdin.close()
        for line in self.process.stdout:
            if "ready on" in line:
                self.url = line.split("ready on ")[1].split(": ")[0]
                return self
        raise AssertionError(f"the mirror did not start:\n{self.log()}")

    def log(self) -> str:
        return self._log.read_text()

    def text(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def get(self, path: str) -> Any:
        return json.loads(self.text(path))

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    def stop(self) -> int:
        """End the mirror by SIGTERM; return its exit status."""
        if self.process is None:
            return 0
        self.process.terminate()
        try:
            return self.process.wait(30)
        finally:
            self.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def run_mirror(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the mirror until it ends by itself."""
    with TemporaryFile("w+") as errors:
        process = CONNECT.start("mirror", arguments, program_environment(), errors)
        process.stdin.close()
        with process.stdout:
            said = process.stdout.read()
        status = process.wait(END_SECONDS)
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, status, said, errors.read())


Found = tuple[bytes | None, bytes | None, int, Any, int]
"""Key, value, partition, headers, timestamp."""


def records(bootstrap_servers: str, topic: str) -> list[Found]:
    """Read a whole topic, in the order of each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "reads-all",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        found = consumer.list_topics(topic, timeout=60).topics[topic]
        if found.error is not None:
            return []
        ends = {
            number: _end(consumer, TopicPartition(topic, number)) for number in found.partitions
        }
        consumer.assign([TopicPartition(topic, number, 0) for number in ends])
        read: list[Found] = []
        while any(
            each.offset < ends[each.partition]
            for each in consumer.position([TopicPartition(topic, number) for number in ends])
            if ends[each.partition] > 0
        ):
            for message in consumer.consume(1000, 0.1):
                assert message.error() is None, message.error()
                read.append(
                    (
                        message.key(),
                        message.value(),
                        message.partition(),
                        message.headers(),
                        message.timestamp()[1],
                    )
                )
        return sorted(read, key=lambda each: each[2])
    finally:
        consumer.close()


def _end(consumer: Consumer, partition: TopicPartition) -> int:
    """Return the end offset of a partition; repeat the request while a new one has no leader."""
    deadline = time.monotonic() + 10
    while True:
        try:
            return int(consumer.get_watermark_offsets(partition, timeout=60)[1])
        except KafkaException as error:
            is_early = error.args[0].code() in {
                KafkaError.NOT_LEADER_FOR_PARTITION,
                KafkaError.LEADER_NOT_AVAILABLE,
            }
            if not is_early or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def produce(bootstrap_servers: str, topic: str, values: range, partitions: int = 1) -> None:
    """Write numbers as values, with a key, headers and a timestamp."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 5})
    for number in values:
        producer.produce(
            topic,
            str(number).encode(),
            b"key-%d" % (number % 7),
            partition=number % partitions,
            headers=[("n", b"%d" % number), ("n", b"\xff\x00"), ("none", None)],
            timestamp=1_700_000_000_000 + number,
        )
    assert producer.flush(20) == 0


def consume_some(bootstrap_servers: str, topic: str, group: str, count: int) -> list[int]:
    """Read so many numbers as a group, commit, and return them."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    read: list[int] = []

    def enough() -> bool:
        messages = consumer.consume(count - len(read), 0.5)
        read.extend(int(each.value()) for each in messages if each.error() is None)
        return len(read) >= count

    try:
        eventually(enough)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return read


def topic_names(bootstrap_servers: str) -> set[str]:
    with AdminClient(AdminSettings.of(bootstrap_servers)) as admin:
        return {topic.name for topic in list_topics(admin)}
