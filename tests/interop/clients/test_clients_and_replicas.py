"""Stock clients with replicas: each reads in its own rack, and loses nothing when a leader dies."""

import asyncio
import gc
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path

import aiokafka
import kafka
import kafka.errors
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from millstream.testing import LocalCluster
from tests.lib.apache_kafka import Tool, kafka_libs, run_tools
from tests.lib.replicated_load import Partition, consumed
from tests.lib.scraped_metrics import metrics_of
from tests.lib.stock_clients import CLIENTS, Record
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
RECORDS = [Record(b"%d" % number, b"value %d" % number) for number in range(500)]
PARTITIONS = 3
BATCH = 20


class ClusterInRacks(LocalCluster):
    """Broker n stands in rack-n."""

    def _make_node(self, folder: Path, node_id: int) -> None:
        super()._make_node(folder, node_id)
        self.node(node_id).settings["broker.rack"] = f"rack-{node_id}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with ClusterInRacks(has_links=False, replica_selector_class=SELECTOR) as started:
        yield started


def create(cluster: LocalCluster, topic: str, *replicas: list[int]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    wanted = NewTopic(topic, len(replicas), replica_assignment=list(replicas))
    admin.create_topics([wanted])[topic].result()


def sent_bytes(cluster: LocalCluster, broker_id: int) -> float:
    """Give how many bytes of batches consumers have had of a broker."""
    return metrics_of(cluster, broker_id)[
        'kafka_server_brokertopicmetrics_bytesout_total{topic=""}'
    ]


def bytes_of(cluster: LocalCluster, read: Callable[[], None]) -> list[float]:
    """Give how many bytes each broker has sent to consumers while something was read."""
    before = [sent_bytes(cluster, broker_id) for broker_id in cluster.broker_ids]
    read()
    after = [sent_bytes(cluster, broker_id) for broker_id in cluster.broker_ids]
    return [late - early for late, early in zip(after, before, strict=True)]


@pytest.fixture(scope="module")
def near(cluster: LocalCluster) -> str:
    """Give a topic of one partition that broker 1 leads, with records."""
    create(cluster, "near", [1, 2, 3])
    CLIENTS["confluent-kafka"].produce(cluster.bootstrap_servers, "near", RECORDS, "none")
    return "near"


def read_with_librdkafka(bootstrap: str, topic: str, rack: str) -> int:
    return len(consumed(bootstrap, topic, 1, client_rack=rack))


def read_with_kafka_python(bootstrap: str, topic: str, rack: str) -> int:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", client_rack=rack
    )
    consumer.assign([kafka.TopicPartition(topic, 0)])
    count = 0
    while count < len(RECORDS):
        count += sum(map(len, consumer.poll(timeout_ms=1000).values()))
    consumer.close()
    return count


def read_with_aiokafka(bootstrap: str, topic: str, rack: str) -> int:
    async def read() -> int:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", client_rack=rack
        )
        consumer.assign([aiokafka.TopicPartition(topic, 0)])
        await consumer.start()
        count = 0
        while count < len(RECORDS):
            count += sum(map(len, (await consumer.getmany(timeout_ms=1000)).values()))
        await consumer.stop()
        return count

    return asyncio.run(read())


def read_with_java(bootstrap: str, topic: str, rack: str) -> int:
    line = f"--bootstrap-server {bootstrap} --topic {topic} --from-beginning --timeout-ms 30000"
    in_rack = ("--command-property", f"client.rack={rack}")
    count = ("--max-messages", str(len(RECORDS)))
    (done,) = run_tools(kafka_libs(), [Tool(CONSOLE_CONSUMER, (*line.split(), *in_rack, *count))])
    return len(done.output.splitlines())


@pytest.mark.parametrize(
    ("read", "own"),
    [
        (read_with_librdkafka, 2),
        (read_with_kafka_python, 3),
        (read_with_aiokafka, 2),
        (read_with_java, 3),
    ],
)
def test_consumers_read_from_the_replica_in_their_own_rack(
    cluster: LocalCluster, near: str, read: Callable[[str, str, str], int], own: int
) -> None:
    size_bytes = sum(len(record.key or b"") + len(record.value or b"") for record in RECORDS)
    counts: list[int] = []

    def read_all() -> None:
        counts.append(read(cluster.bootstrap_servers, near, f"rack-{own}"))

    sent = dict(zip(cluster.broker_ids, bytes_of(cluster, read_all), strict=True))
    assert counts == [len(RECORDS)]
    assert sent.pop(own) > size_bytes
    assert set(sent.values()) == {0}


class Talk(ABC):
    """A client that produces and consumes at the same time, until it is told to stop."""

    def __init__(self, cluster: LocalCluster, topic: str) -> None:
        self.bootstrap = cluster.bootstrap_servers
        self.topic = topic
        self.stopped = threading.Event()
        self.acknowledged: set[bytes] = set()
        self.consumed: set[bytes] = set()
        self._threads = [threading.Thread(target=work) for work in self.work()]

    @abstractmethod
    def work(self) -> list[Callable[[], None]]:
        """Give what to do, each in a thread of its own."""

    def __enter__(self) -> "Talk":
        for thread in self._threads:
            thread.start()
        self.goes_on()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stopped.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def goes_on(self) -> None:
        """Wait until more is acknowledged, and all of that is consumed."""
        count = len(self.acknowledged) + 5 * BATCH
        until(lambda: len(self.acknowledged) >= count)
        wanted = set(self.acknowledged)
        until(lambda: wanted <= self.consumed)


class KafkaPythonTalk(Talk):
    """kafka-python, idempotent as it is by default."""

    def work(self) -> list[Callable[[], None]]:
        return [self.produce, self.consume]

    def produce(self) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=self.bootstrap, acks="all")
        number = 0
        while not self.stopped.is_set():
            sent = []
            for _ in range(BATCH):
                value = b"%d" % number
                sent.append(
                    (value, producer.send(self.topic, value, partition=number % PARTITIONS))
                )
                number += 1
            for value, future in sent:
                future.get(60)
                self.acknowledged.add(value)
        producer.close()

    def consume(self) -> None:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap, auto_offset_reset="earliest"
        )
        consumer.assign([kafka.TopicPartition(self.topic, n) for n in range(PARTITIONS)])
        while not self.stopped.is_set():
            for messages in consumer.poll(timeout_ms=200).values():
                self.consumed |= {message.value for message in messages}
        consumer.close()


class AiokafkaTalk(Talk):
    """aiokafka, idempotent."""

    def work(self) -> list[Callable[[], None]]:
        return [lambda: asyncio.run(self.produce()), lambda: asyncio.run(self.consume())]

    async def produce(self) -> None:
        number = 0
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.bootstrap, enable_idempotence=True
        ) as producer:
            while not self.stopped.is_set():
                sent = []
                for _ in range(BATCH):
                    value = b"%d" % number
                    future = await producer.send(self.topic, value, partition=number % PARTITIONS)
                    sent.append((value, future))
                    number += 1
                for value, future in sent:
                    await future
                    self.acknowledged.add(value)

    async def consume(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, auto_offset_reset="earliest"
        )
        consumer.assign([aiokafka.TopicPartition(self.topic, n) for n in range(PARTITIONS)])
        await consumer.start()
        while not self.stopped.is_set():
            for messages in (await consumer.getmany(timeout_ms=200)).values():
                self.consumed |= {message.value for message in messages}
        await consumer.stop()


# kafka-python drops the socket of a broker that it could not reach without closing it.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("talk", [KafkaPythonTalk, AiokafkaTalk])
def test_a_client_loses_nothing_when_a_leader_is_killed(
    cluster: LocalCluster, talk: type[Talk]
) -> None:
    topic = talk.__name__
    create(cluster, topic, [1, 2, 3], [2, 3, 1], [3, 1, 2])
    with talk(cluster, topic) as talking:
        leader = Partition(cluster, topic, 0).leader
        cluster.kill(leader)
        talking.goes_on()
        assert Partition(cluster, topic, 0).leader != leader
        cluster.start(leader)
        talking.goes_on()
    acknowledged = talking.acknowledged
    assert acknowledged <= set(consumed(cluster.bootstrap_servers, topic, PARTITIONS))
    until(lambda: all(len(Partition(cluster, topic, n).isr) == 3 for n in range(PARTITIONS)))
    del talking  # It holds what is to be collected here, and not in a later test.
    gc.collect()
