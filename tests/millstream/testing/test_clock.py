"""Hours that pass in milliseconds: what expires by a broker's clock, seen by stock clients."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import (
    Consumer,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicPartition,
)

from broker.__main__ import main as tool
from millstream.testing import LocalBroker, LocalCluster
from millstream.testing.broker_control import ControlError
from tests.lib.waiting import until

pytestmark = pytest.mark.slow

WAIT_SECONDS = 30


@pytest.fixture
def broker(kafka_broker: LocalBroker) -> LocalBroker:
    return kafka_broker


def produce(broker: LocalBroker, topic: str, count: int = 1) -> None:
    producer = Producer(broker.client_settings())
    for number in range(count):
        producer.produce(topic, str(number))
    producer.flush(WAIT_SECONDS)


def consumer(broker: LocalBroker, group: str, **more: Any) -> Consumer:
    return Consumer(
        {
            **broker.client_settings(),
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **more,
        }
    )


def test_both_times_go_forward_together(broker: LocalBroker) -> None:
    before, ahead = broker.clock.now, broker.clock.ahead
    broker.clock.advance(hours=1, minutes=1, seconds=1, ms=1)
    by = timedelta(hours=1, minutes=1, seconds=1, milliseconds=1)
    assert broker.clock.ahead - ahead == by
    assert broker.clock.now - before >= by
    with pytest.raises(ControlError, match="cannot be moved"):
        broker.clock.advance(days=40_000)
    with pytest.raises(ControlError, match=r"advance_ms|cannot"):
        broker.clock.advance(ms=-1)


def test_records_older_than_the_retention_are_deleted(broker: LocalBroker) -> None:
    broker.create_topic("kept-an-hour", settings={"retention.ms": "3600000"})
    produce(broker, "kept-an-hour")
    broker.clock.advance(minutes=30)
    assert len(broker.records("kept-an-hour")) == 1
    broker.clock.advance(hours=2)
    assert broker.records("kept-an-hour") == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_whose_session_ends_is_thrown_out_and_comes_back(
    broker: LocalBroker, protocol: str
) -> None:
    topic = f"session-{protocol}"
    broker.create_topic(topic)
    produce(broker, topic)
    lost: list[str] = []
    member = consumer(broker, topic, **{"group.protocol": protocol})
    member.subscribe([topic], on_lost=lambda _, partitions: lost.append("lost"))
    assert member.poll(WAIT_SECONDS) is not None
    assert broker.group(topic).state == "Stable"
    broker.clock.advance(minutes=1)
    assert broker.group(topic).members == ()

    def is_back() -> bool:
        member.poll(0.1)
        return bool(lost) and len(broker.group(topic).members) == 1

    until(is_back, WAIT_SECONDS)
    member.close()


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(
    broker: LocalBroker,
) -> None:
    broker.create_topic("payments")
    settings = {"transactional.id": "p", "transaction.timeout.ms": 60_000, "log_level": 0}
    producer = Producer({**broker.client_settings(), **settings})
    producer.init_transactions(WAIT_SECONDS)
    producer.begin_transaction()
    producer.produce("payments", "v")
    producer.flush(WAIT_SECONDS)
    assert [each.transaction for each in broker.records("payments")] == ["open"]
    broker.clock.advance(minutes=2)
    until(lambda: [each.transaction for each in broker.records("payments")] == ["aborted"], 10)
    with pytest.raises(KafkaException, match=r"(?i)fenced|epoch"):
        producer.commit_transaction(WAIT_SECONDS)


def test_offsets_of_a_group_without_members_expire(broker: LocalBroker) -> None:
    broker.create_topic("read")
    produce(broker, "read")
    reader = consumer(broker, "readers")
    partition = TopicPartition("read", 0, 1)
    reader.commit(offsets=[partition], asynchronous=False)
    broker.clock.advance(days=6)
    assert broker.group("readers").offsets[0].offset == 1
    broker.clock.advance(days=2)
    assert reader.committed([partition], WAIT_SECONDS)[0].offset < 0
    reader.close()


def test_a_lock_of_a_share_group_ends_and_another_member_gets_the_record(
    broker: LocalBroker,
) -> None:
    broker.create_topic("work")
    until(
        lambda: (
            tool(
                [
                    *("configs", "--bootstrap-server", broker.bootstrap_servers, "--alter"),
                    *("--entity-type", "groups", "--entity-name", "workers"),
                    *("--add-config", "share.auto.offset.reset=earliest"),
                ]
            )
            == 0
        ),
        WAIT_SECONDS,
    )
    produce(broker, "work")

    def worker() -> ShareConsumer:
        settings = {"group.id": "workers", "share.acknowledgement.mode": "explicit"}
        made = ShareConsumer({**broker.client_settings(), **settings, "log_level": 0})
        made.subscribe(["work"])
        return made

    def next_value(made: ShareConsumer) -> bytes:
        found: list[Any] = []

        def is_there() -> bool:
            found.extend(made.poll(0.2))
            return bool(found)

        until(is_there, WAIT_SECONDS)
        return bytes(found[0].value())

    slow, other = worker(), worker()
    assert next_value(slow) == b"0"
    assert list(other.poll(0.5)) == []
    broker.clock.advance(seconds=31)
    assert next_value(other) == b"0"
    slow.close()
    other.close()


def test_a_delegation_token_expires(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalBroker(security="sasl_plaintext", delegation_token_secret_key="s") as secured:
        where = ["--bootstrap-server", secured.bootstrap_servers]
        where += ["--command-config", secured.client_file()]
        made = ["delegation-tokens", *where, "--create", "--max-life-time-period", "3600000"]
        assert tool(made) == 0
        described = ["delegation-tokens", *where, "--describe"]

        def count() -> str:
            capsys.readouterr()
            assert tool(described) == 0
            return capsys.readouterr().out

        assert "Total number of tokens : 1" in count()
        secured.clock.advance(hours=2)
        assert "Total number of tokens : 0" in count()


def test_a_client_that_waits_needs_not_know(broker: LocalBroker) -> None:
    async def run() -> None:
        settings = broker.client_settings("aiokafka")
        waiting = AIOKafkaConsumer("quiet", **settings, auto_offset_reset="earliest")
        await waiting.start()
        try:
            getting = asyncio.ensure_future(waiting.getone())
            await asyncio.to_thread(broker.clock.advance, days=1)
            await asyncio.to_thread(produce, broker, "quiet")
            assert (await asyncio.wait_for(getting, WAIT_SECONDS)).value == b"0"
        finally:
            await waiting.stop()

    broker.create_topic("quiet")
    asyncio.run(run())


def test_a_cluster_goes_on_while_its_time_is_moved() -> None:
    with LocalCluster(brokers=3) as cluster:
        cluster.create_topic("orders", settings={"retention.ms": "3600000"})
        controller = cluster.active_controller()
        producer = Producer({**cluster.client_settings(), "acks": "all"})
        for _ in range(3):
            producer.produce("orders", "v")
            assert producer.flush(WAIT_SECONDS) == 0
            cluster.clock.advance(hours=2)
        assert cluster.active_controller() == controller
        assert cluster.records("orders") == []
        logs = "".join(cluster.log(each) for each in cluster.node_ids)
        assert "fenc" not in logs.lower().replace("unfenc", "")
