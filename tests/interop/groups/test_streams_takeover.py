"""A Kafka Streams application goes on with a folder that Apache Kafka and this broker had in turn.

It counts, exactly once: whatever it read twice, or lost, would change the counts. Its own state is
deleted before the last broker, so that it reads it anew from the changelog of the others.
"""

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest

from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.java import JAVA, java_program
from tests.lib.our_node import our_node

pytestmark = [pytest.mark.interop, pytest.mark.slow]

VALUES = ("apples", "pears", "plums")
PER_RUN = 30
GIVE_UP_SECONDS = 90


@contextmanager
def counter(libs: str, bootstrap: str, state: Path) -> Iterator[None]:
    """Run the application until the block ends; it then leaves its group and commits."""
    command = [*java_program(libs, JAVA / "RunStreamsCounter.java", "-Xmx256m"), bootstrap]
    with (
        state.with_suffix(".log").open("ab") as log,
        subprocess.Popen(
            [*command, str(state)], stdin=subprocess.PIPE, stdout=log, stderr=log
        ) as application,
    ):
        try:
            yield
            assert application.stdin is not None
            application.stdin.close()
            assert application.wait(GIVE_UP_SECONDS) == 0, state.with_suffix(".log").read_text()
        finally:
            application.kill()


def make_topics(bootstrap: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    new = [confluent_kafka.admin.NewTopic(name, 2, 1) for name in ("orders", "counts")]
    for made in admin.create_topics(new).values():
        made.result(GIVE_UP_SECONDS)


def send_orders(bootstrap: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(PER_RUN):
        producer.produce("orders", VALUES[number % len(VALUES)], partition=number % 2)
    assert producer.flush(GIVE_UP_SECONDS) == 0


class Counts:
    """Everything that was committed to the topic `counts`."""

    def __init__(self) -> None:
        self._offsets = {0: 0, 1: 0}
        self.found: Counter[tuple[str, int]] = Counter()

    def read(self, bootstrap: str, expected: int) -> None:
        """Read on until there are so many."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        consumer.assign(
            [
                confluent_kafka.TopicPartition("counts", partition, offset)
                for partition, offset in self._offsets.items()
            ]
        )
        while self.found.total() < expected:
            message = consumer.poll(GIVE_UP_SECONDS)
            assert message is not None, self.found
            assert message.error() is None, message.error()
            key, value = message.key() or b"", message.value() or b""
            self.found[key.decode(), int(value)] += 1
            self._offsets[message.partition()] = message.offset() + 1
        consumer.close()


def test_the_application_goes_on_where_it_was(tmp_path: Path) -> None:
    libs, counts, state = kafka_libs(), Counts(), tmp_path / "state"
    nodes = (
        running_node(libs, tmp_path, is_dynamic=True),
        our_node(tmp_path),
        running_node(libs, tmp_path, is_dynamic=True),
        our_node(tmp_path),
    )
    for run, node in enumerate(nodes):
        if run == len(nodes) - 1:
            shutil.rmtree(state)
        with node as bootstrap:
            if run == 0:
                make_topics(bootstrap)
            with counter(libs, bootstrap, state):
                send_orders(bootstrap)
                counts.read(bootstrap, (run + 1) * PER_RUN)
            each = (run + 1) * PER_RUN // len(VALUES)
            expected = [(value, count) for value in VALUES for count in range(1, each + 1)]
            assert counts.found == Counter(expected), run
