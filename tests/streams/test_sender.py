"""Lists of records sent to a real broker."""

import asyncio

import pytest
from confluent_kafka import Consumer, Producer

from millrace.testing import LocalBroker
from streams.micro_batch import Message
from streams.sender import MAX_BATCH_BYTES, Sender

pytestmark = [pytest.mark.interop]

COUNT = 900
PARTITIONS = 3


def read_all(servers: str, topic: str, count: int) -> list[tuple[int, bytes, bytes]]:
    settings = {"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    found = []
    while len(found) < count:
        for message in consumer.consume(count, 1.0):
            assert message.error() is None
            found.append((message.partition(), message.key(), message.value()))
    consumer.close()
    return found


def test_every_partition_gets_its_records_in_order_however_many_batches_they_make() -> None:
    value = bytes(MAX_BATCH_BYTES // 200)
    messages = [
        Message("out", b"key-%d" % (number % 7), b"%06d" % number + value, [("n", b"1")])
        for number in range(COUNT)
    ]

    async def send(servers: str) -> None:
        sender = Sender(servers)
        await sender.start()
        try:
            await sender.send(messages)
            await sender.send([])
            await sender.send([Message("out", b"key-0", b"last", [], partition=2)])
        finally:
            await sender.close()

    with LocalBroker(num_partitions=PARTITIONS) as broker:
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "partitioner": "murmur2_random"}
        )
        for number in range(7):
            producer.produce("other", b"x", b"key-%d" % number)
        producer.flush()
        by_java_rules = {key: at for at, key, _ in read_all(broker.bootstrap_servers, "other", 7)}
        asyncio.run(send(broker.bootstrap_servers))
        found = read_all(broker.bootstrap_servers, "out", COUNT + 1)

    assert (2, b"key-0", b"last") in found
    sent = [record for record in found if record[2] != b"last"]
    assert {key: at for at, key, _ in sent} == by_java_rules
    for partition in range(PARTITIONS):
        numbers = [int(value[:6]) for at, _, value in sent if at == partition]
        assert numbers == sorted(numbers)
    assert sorted(int(value[:6]) for _, _, value in sent) == list(range(COUNT))
