"""Public bug reports about retries, rebalances and fencing, each made on demand by faults.

The reports are of GitHub. A report that was fixed is shown as its client is today. Each test is
deterministic: with REPORT_RUNS=100 all of them run a hundred times.
"""

import ast
import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import kafka
import pytest
from aiokafka.errors import (
    CorruptRecordException,
    GroupAuthorizationFailedError,
    RequestTimedOutError,
)
from confluent_kafka import KafkaException, Producer, TopicPartition
from kafka.errors import CommitFailedError, KafkaTimeoutError, ProducerFencedError

from millstream.testing import LocalBroker
from tests.lib.orders_clients import consumer, producer, read, send, values

RUNS = int(os.environ.get("REPORT_RUNS", "1"))
MOST_LINES = 20
TIMEOUT_MS = 1_000

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(60 + 60 * RUNS),
    # kafka-python leaves its sockets open when a request is given up.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalBroker]:
    with LocalBroker() as broker:
        broker.snapshot()
        yield broker


@pytest.fixture(params=range(RUNS))
def broker(shared: LocalBroker) -> Iterator[LocalBroker]:
    shared.restore(new_port=True)
    shared.create_topic("orders")
    yield shared
    shared.faults.clear()


def connect(sender: Producer, broker: LocalBroker) -> None:
    """Produce a first record, however often it times out: the next one is sent at once.

    A record may time out while its producer looks for the broker, and asks for its producer id.
    """
    while not values(broker):
        send(sender, b"first")
    assert values(broker) == ["first"]


def test_librdkafka_1958_a_request_without_an_answer_is_repeated_and_written_twice(
    broker: LocalBroker,
) -> None:
    broker.faults.close("Produce", after=True).once()
    assert send(producer(broker)) == ""
    assert values(broker) == ["value", "value"]


def test_librdkafka_1476_a_record_that_timed_out_is_in_the_log(broker: LocalBroker) -> None:
    sender = producer(broker, **{"message.timeout.ms": TIMEOUT_MS})
    connect(sender, broker)
    broker.faults.lose_answer("Produce").once()
    assert send(sender) == "_MSG_TIMED_OUT"
    assert values(broker) == ["first", "value"]


def test_librdkafka_3635_an_idempotent_producer_gives_up_in_spite_of_its_retries(
    broker: LocalBroker,
) -> None:
    settings = {"enable.idempotence": True, "message.timeout.ms": TIMEOUT_MS}
    sender = producer(broker, **settings)
    connect(sender, broker)
    broker.faults.lose_request("Produce").always()
    assert send(sender) == "_MSG_TIMED_OUT"
    assert values(broker) == ["first"]


def test_librdkafka_3584_after_a_wrong_sequence_number_an_idempotent_producer_is_dead(
    broker: LocalBroker,
) -> None:
    broker.faults.error("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER").once()
    sender = producer(broker, **{"enable.idempotence": True})
    sender.produce("orders", b"value")
    with pytest.raises(KafkaException, match="OUT_OF_ORDER_SEQUENCE_NUMBER") as raised:
        sender.flush(20)
    assert raised.value.args[0].fatal()
    with pytest.raises(KafkaException, match="_FATAL"):
        sender.produce("orders", b"another")


def test_librdkafka_3928_a_producer_that_is_alone_is_fenced(broker: LocalBroker) -> None:
    broker.faults.error("InitProducerId", "CONCURRENT_TRANSACTIONS").times(2)
    broker.faults.error("InitProducerId", "PRODUCER_FENCED").once()
    with pytest.raises(KafkaException) as raised:
        producer(broker, **{"transactional.id": "pay"}).init_transactions(20)
    assert raised.value.args[0].name() == "_FENCED"
    assert raised.value.args[0].fatal()


def test_librdkafka_3003_an_old_epoch_ends_the_producer(broker: LocalBroker) -> None:
    broker.faults.error("AddOffsetsToTxn", "INVALID_PRODUCER_EPOCH").once()
    reader, sender = consumer(broker), producer(broker, **{"transactional.id": "pay"})
    sender.init_transactions(20)
    sender.begin_transaction()
    with pytest.raises(KafkaException) as raised:
        sender.send_offsets_to_transaction(
            [TopicPartition("orders", 0, 1)], reader.consumer_group_metadata(), 20
        )
    assert raised.value.args[0].fatal()
    reader.close()


def test_librdkafka_521_an_offset_out_of_range_skips_what_is_there(broker: LocalBroker) -> None:
    sender = producer(broker)
    assert send(sender, b"skipped") == ""
    rule = broker.faults.error("Fetch", "OFFSET_OUT_OF_RANGE").once()
    reader = consumer(broker)
    reader.assign([TopicPartition("orders", 0, 0)])
    reader.poll(0)
    rule.wait_hit()
    broker.requests.wait_count(1, api="ListOffsets", topic="orders")
    broker.requests.clear()
    broker.requests.wait_count(1, api="Fetch", topic="orders")
    assert send(sender, b"later") == ""
    assert read(reader) == b"later"
    reader.close()


def test_confluent_kafka_python_368_a_commit_is_refused_for_its_generation(
    broker: LocalBroker,
) -> None:
    assert send(producer(broker)) == ""
    broker.faults.error("OffsetCommit", "ILLEGAL_GENERATION").once()
    reader = consumer(broker, **{"auto.offset.reset": "earliest"})
    reader.subscribe(["orders"])
    assert read(reader) == b"value"
    with pytest.raises(KafkaException, match="ILLEGAL_GENERATION"):
        reader.commit(asynchronous=False)
    assert read(reader) == b"value", "it joins again and reads from what it had committed"
    reader.close()


def test_librdkafka_2630_a_commit_finds_the_coordinator_again(broker: LocalBroker) -> None:
    assert send(producer(broker)) == ""
    broker.faults.error("OffsetCommit", "NOT_COORDINATOR").once()
    reader = consumer(broker, **{"auto.offset.reset": "earliest"})
    reader.subscribe(["orders"])
    assert read(reader) == b"value"
    committed = reader.commit(asynchronous=False)
    assert [(each.offset, each.error) for each in committed or []] == [(1, None)]
    reader.close()


def test_aiokafka_197_a_request_that_times_out_fails_though_it_was_written(
    broker: LocalBroker,
) -> None:
    async def run() -> None:
        address = broker.bootstrap_servers
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=address, request_timeout_ms=1_000
        ) as sender:
            broker.faults.lose_answer("Produce").once()
            with pytest.raises(RequestTimedOutError):
                await sender.send_and_wait("orders", b"value")

    asyncio.run(run())
    assert values(broker) == ["value"]


def test_aiokafka_321_a_damaged_record_stops_the_reading(broker: LocalBroker) -> None:
    async def run() -> None:
        address = broker.bootstrap_servers
        async with aiokafka.AIOKafkaConsumer(
            "orders", bootstrap_servers=address, auto_offset_reset="earliest"
        ) as reader:
            with pytest.raises(CorruptRecordException):
                await reader.getone()

    assert send(producer(broker)) == ""
    broker.faults.damage_records(topic="orders").once()
    asyncio.run(run())


def test_aiokafka_294_an_error_of_the_coordinator_reaches_the_program(broker: LocalBroker) -> None:
    async def run() -> None:
        address = broker.bootstrap_servers
        reader = aiokafka.AIOKafkaConsumer("orders", bootstrap_servers=address, group_id="fraud")
        with pytest.raises(GroupAuthorizationFailedError):
            await reader.start()
        await reader.stop()

    broker.faults.error("FindCoordinator", "GROUP_AUTHORIZATION_FAILED").always()
    asyncio.run(run())


def test_kafka_python_1118_a_record_arrives_after_the_program_gave_up(broker: LocalBroker) -> None:
    broker.faults.delay("Produce", ms=1_000).once()
    sender = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    with pytest.raises(KafkaTimeoutError):
        sender.send("orders", b"value").get(timeout=0.3)
    sender.flush()
    sender.close()
    assert values(broker) == ["value"]


def test_kafka_python_544_a_commit_of_an_old_generation_fails(broker: LocalBroker) -> None:
    assert send(producer(broker)) == ""
    broker.faults.error("OffsetCommit", "ILLEGAL_GENERATION").once()
    reader = kafka.KafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="fraud",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    assert next(reader).value == b"value"
    with pytest.raises(CommitFailedError):
        reader.commit()
    assert next(reader).value == b"value", "it is processed a second time"
    reader.close()


def test_kafka_python_2885_an_old_epoch_is_a_fenced_producer(broker: LocalBroker) -> None:
    broker.faults.error("EndTxn", "INVALID_PRODUCER_EPOCH").once()
    sender = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="pay")
    sender.init_transactions()
    sender.begin_transaction()
    sender.send("orders", b"value").get(timeout=20)
    with pytest.raises(ProducerFencedError):
        sender.commit_transaction()
    sender.close(timeout=1)


def test_each_report_takes_less_than_twenty_lines() -> None:
    tree = ast.parse(Path(__file__).read_text())
    sizes = {
        each.name: (each.end_lineno or 0) - each.lineno + 1
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and re.match(r"test_[a-z_]+_\d+_", each.name)
    }
    assert len(sizes) == 15
    assert max(sizes.values()) < MOST_LINES
