"""Java's exactly-once programs on three brokers, which are killed meanwhile: nothing twice or lost.

`TransactionalMessageCopier` is what Apache Kafka's own system tests copy with; `WordCountDemo` is
the example of Kafka Streams, run with `exactly_once_v2`.
"""

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest

from millstream.testing import LocalCluster
from tests.lib.apache_kafka import kafka_libs
from tests.lib.java import java
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

PARTITION_COUNT = 2
STEP_COUNT = 500
MESSAGE_COUNT = 7 * STEP_COUNT
"""One step before the first kill, then two for each of three brokers."""
WORDS = [f"word{number}" for number in range(7)]
IDLE_SECONDS = 3.0
GIVE_UP_SECONDS = 120.0
COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
WORD_COUNT = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
INPUT, OUTPUT = "streams-plaintext-input", "streams-wordcount-output"


class Reader:
    """Reads what is committed of a topic, from its beginning, as far as it goes."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        self.consumer.assign(
            [confluent_kafka.TopicPartition(topic, n, 0) for n in range(PARTITION_COUNT)]
        )
        self.messages: list[tuple[bytes | None, bytes]] = []

    def read(self) -> int:
        for message in self.consumer.consume(10_000, 0.2):
            # While a broker is away its partitions cannot be read for a moment.
            if message.error() is None:
                self.messages.append((message.key(), message.value()))
        return len(self.messages)

    def read_on(self) -> int:
        """Read until nothing has come for a while: what is too much must be seen, too."""
        while True:
            before = len(self.messages)
            found = self.consumer.consume(10_000, IDLE_SECONDS)
            self.messages += [(each.key(), each.value()) for each in found if each.error() is None]
            if len(self.messages) == before:
                return before


@contextmanager
def running(libs: str, main_class: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [*java(libs, "-Xmx256m"), main_class, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def make_topics(cluster: LocalCluster, *names: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    new = [confluent_kafka.admin.NewTopic(name, PARTITION_COUNT) for name in names]
    for made in admin.create_topics(new).values():
        made.result(GIVE_UP_SECONDS)


def fill(cluster: LocalCluster, topic: str, values: list[str]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number, value in enumerate(values):
        producer.produce(topic, value.encode(), partition=number % PARTITION_COUNT)
    assert producer.flush(GIVE_UP_SECONDS) == 0


def kill_each(cluster: LocalCluster, go_on: Callable[[], None]) -> None:
    """Kill one broker after the other; work goes on without each, and with it again."""
    for node_id in cluster.node_ids:
        cluster.kill(node_id)
        go_on()
        cluster.start(node_id)
        go_on()


def wait_for_more(reader: Reader, step: int, whole: int) -> None:
    """Wait until `step` messages more have come, or all."""
    wanted = min(reader.read() + step, whole)
    until(lambda: reader.read() >= wanted, GIVE_UP_SECONDS)


def test_transactional_copiers_copy_everything_once_while_brokers_are_killed() -> None:
    libs = kafka_libs()
    values = [str(number) for number in range(MESSAGE_COUNT)]
    with LocalCluster(has_links=False) as cluster:
        make_topics(cluster, "in", "out")
        fill(cluster, "in", values)

        def copier(number: int) -> tuple[str, ...]:
            return (
                *("--broker-list", cluster.bootstrap_servers, "--input-topic", "in"),
                *("--output-topic", "out", "--input-partition", str(number)),
                *("--consumer-group", "copiers", "--transactional-id", f"copier-{number}"),
                *("--transaction-size", "25", "--enable-random-aborts", "--use-group-metadata"),
            )

        reader = Reader(cluster.bootstrap_servers, "out")
        with running(libs, COPIER, *copier(0)) as first, running(libs, COPIER, *copier(1)) as other:
            kill_each(cluster, lambda: wait_for_more(reader, 100, MESSAGE_COUNT))
            for process in (first, other):
                assert process.wait(GIVE_UP_SECONDS) == 0
        reader.read_on()
    copied = sorted(int(value) for _, value in reader.messages)
    assert copied == list(range(MESSAGE_COUNT))


def test_kafka_streams_counts_every_word_once_while_brokers_are_killed(tmp_path: Path) -> None:
    libs = kafka_libs()
    lines = [f"{WORDS[number % 7]} {WORDS[number % 5]}" for number in range(MESSAGE_COUNT)]
    expected = Counter(word for line in lines for word in line.split())
    with LocalCluster(has_links=False) as cluster:
        make_topics(cluster, INPUT, OUTPUT)
        properties = tmp_path / "streams.properties"
        properties.write_text(
            f"bootstrap.servers={cluster.bootstrap_servers}\n"
            f"state.dir={tmp_path}/state\n"
            "application.id=word-count\n"
            "processing.guarantee=exactly_once_v2\n"
            "commit.interval.ms=50\n"
            "statestore.cache.max.bytes=0\n"
            "auto.offset.reset=earliest\n"
        )
        reader = Reader(cluster.bootstrap_servers, OUTPUT)
        with running(libs, WORD_COUNT, str(properties)):
            sent = 0

            def count_some_more() -> None:
                nonlocal sent
                fill(cluster, INPUT, lines[sent : sent + STEP_COUNT])
                sent += STEP_COUNT
                until(lambda: reader.read() >= 2 * sent, GIVE_UP_SECONDS)

            count_some_more()
            kill_each(cluster, count_some_more)
            assert sent == MESSAGE_COUNT
        reader.read_on()
    counts: dict[str, list[int]] = {word: [] for word in WORDS}
    for key, value in reader.messages:
        assert key is not None
        counts[key.decode()].append(int.from_bytes(value, "big"))
    # Without a cache every word that is read is one new count: none is missing, none comes twice.
    assert counts == {word: list(range(1, expected[word] + 1)) for word in WORDS}
