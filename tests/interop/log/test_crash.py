"""kill -9 under load: what was acknowledged is there again, and groups go on where they were."""

import threading
import time

import confluent_kafka
import confluent_kafka.admin
import pytest

from millstream.testing import LocalBroker
from tests.lib.stock_clients import CLIENTS, Record

pytestmark = pytest.mark.interop

ROUNDS = 3


class Load:
    """Produces numbered records until told to stop and remembers which were acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.topic = topic
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 1,
                "reconnect.backoff.max.ms": 100,
                "message.timeout.ms": 60_000,
            }
        )
        self._is_stopping = threading.Event()
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _on_delivery(self, error: object, message: confluent_kafka.Message) -> None:
        if error is None:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self.acknowledged[partition, offset] = message.value() or b""
            if len(self.acknowledged) % 2000 == 0:
                self._enough.set()

    def _run(self) -> None:
        number = 0
        while not self._is_stopping.is_set():
            try:
                self._producer.produce(
                    self.topic,
                    b"%012d" % number,
                    b"%d" % (number % 50),
                    on_delivery=self._on_delivery,
                )
                number += 1
            except BufferError:
                self._producer.poll(0.05)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0

    def start(self) -> None:
        self._thread.start()

    def wait_for_more(self) -> None:
        self._enough.clear()
        assert self._enough.wait(30), "no acknowledgements come"

    def stop(self) -> None:
        self._is_stopping.set()
        self._thread.join()


def everything(bootstrap: str, topic: str) -> dict[tuple[int, int], bytes]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in partitions])
    found: dict[tuple[int, int], bytes] = {}
    left = len(partitions)
    deadline = time.monotonic() + 30
    while left:
        assert time.monotonic() < deadline, f"{left} partitions were not read to their ends"
        # Not for a whole batch: that is waited for.
        for message in consumer.consume(10_000, timeout=0.2):
            error = message.error()
            if error is not None:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                left -= 1
                continue
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            found[partition, offset] = message.value() or b""
    consumer.close()
    return found


@pytest.mark.slow
def test_every_acknowledged_record_survives_kill_9_under_load() -> None:
    with LocalBroker(num_partitions=3) as broker:
        load = Load(broker.bootstrap_servers, "orders")
        load.start()
        for _ in range(ROUNDS):
            load.wait_for_more()
            broker.kill()
            broker.start()
        load.wait_for_more()
        load.stop()
        found = everything(broker.bootstrap_servers, "orders")
        assert load.acknowledged
        missing = {place for place in load.acknowledged if place not in found}
        assert missing == set()
        assert {place: found[place] for place in load.acknowledged} == load.acknowledged
        # Idempotent: nothing twice, although the producer sent again after every crash.
        assert len(set(found.values())) == len(found)


@pytest.mark.parametrize("name", [name for name in CLIENTS if name != "kcat"])
def test_a_group_goes_on_after_kill_9(name: str) -> None:
    client = CLIENTS[name]
    records = [Record(b"key", b"%d" % number) for number in range(40)]
    with LocalBroker() as broker:
        client.produce(broker.bootstrap_servers, "orders", records[:25], "none")
        assert client.consume(broker.bootstrap_servers, "orders", "group", 25) == records[:25]
        broker.kill()
        broker.start()
        client.produce(broker.bootstrap_servers, "orders", records[25:], "none")
        assert client.consume(broker.bootstrap_servers, "orders", "group", 15) == records[25:]


def test_topics_and_their_settings_survive_a_restart() -> None:
    with LocalBroker() as broker:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        topic = confluent_kafka.admin.NewTopic("kept", 4, config={"retention.ms": "12345"})
        admin.create_topics([topic])["kept"].result(60)
        broker.kill()
        broker.start()
        assert len(admin.list_topics("kept", 10).topics["kept"].partitions) == 4
        resource = confluent_kafka.admin.ConfigResource("topic", "kept")
        settings = admin.describe_configs([resource])[resource].result(60)
        assert settings["retention.ms"].value == "12345"


def test_retention_never_touches_the_metadata() -> None:
    settings = {"log_retention_ms": 1, "log_retention_check_interval_ms": 50}
    with LocalBroker(**settings) as broker:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        topic = confluent_kafka.admin.NewTopic("kept", 1)
        admin.create_topics([topic])["kept"].result(60)
        broker.stop()
        broker.start()
        CLIENTS["confluent-kafka"].produce(
            broker.bootstrap_servers, "kept", [Record(b"key", b"value")], "none"
        )
        deadline = time.monotonic() + 20
        # The topic's own records going shows that retention has passed over every log.
        while not list((broker.data_folder / "kept-0").glob("*.deleted")):
            assert time.monotonic() < deadline, "retention does nothing"
        metadata = broker.data_folder / "__cluster_metadata-0"
        assert list(metadata.glob("*.deleted")) == []
        broker.stop()
        broker.start()
        assert "kept" in admin.list_topics(timeout=60).topics
