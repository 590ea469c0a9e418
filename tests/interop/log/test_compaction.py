"""A compacted topic is cleaned while clients use it, and they see the last value of every key."""

import time

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from millstream.testing import LocalBroker

pytestmark = [pytest.mark.interop, pytest.mark.slow]

KEYS = 1000
SETTINGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.bytes": "1048576",
}


def consume_all(bootstrap: str) -> tuple[int, dict[bytes, bytes]]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True}
    )
    consumer.assign([confluent_kafka.TopicPartition("compacted", 0, 0)])
    count, latest = 0, {}
    while True:
        message = consumer.poll(10)
        assert message is not None
        error = message.error()
        if error is not None:
            assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
            break
        count += 1
        latest[message.key()] = message.value()
    consumer.close()
    return count, latest


def test_a_compacted_topic_keeps_the_last_value_of_every_key() -> None:
    with LocalBroker(log_cleaner_backoff_ms=200) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("compacted", 1, 1, config=SETTINGS)])["compacted"].result(60)
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        total = 60 * KEYS
        for number in range(total):
            producer.produce("compacted", b"%d" % number * 20, b"key-%d" % (number % KEYS))
            if number % 10_000 == 0:
                producer.flush(30)
        assert producer.flush(30) == 0
        deadline = time.monotonic() + 30
        while "log cleaned topic_partition=compacted-0" not in broker.log():
            assert time.monotonic() < deadline, "the log is not cleaned"
        count, latest = consume_all(broker.bootstrap_servers)
        assert count < total
        last = total - KEYS
        assert latest == {b"key-%d" % key: b"%d" % (last + key) * 20 for key in range(KEYS)}
        broker.kill()
        broker.start()
        assert consume_all(broker.bootstrap_servers)[1] == latest
