"""Producers and transactions are brought into a state, and explained."""

import pytest

from common.kafka.admin.transactions import describe_transactions, list_transactions
from explain.asking.questions import admin_client
from tests.lib.coordinator_requests import Asks
from tests.lib.explained import GIVE_UP_SECONDS, Explained
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop


def producer_id(kafka: Explained, transactional_id: str) -> int:
    with admin_client(kafka.access) as client:
        found = describe_transactions(client, [transactional_id])[transactional_id]
        assert list_transactions(client)
    assert not isinstance(found, Exception)
    return found.producer_id


def test_a_transaction_that_is_not_there(kafka: Explained, name: str) -> None:
    kafka.transactional(name)
    found = kafka.transaction(f"{name}x")
    assert [one.code for one in found.problems] == ["transaction-missing"]
    assert f"Similar: {name}" in found.findings[0].sentence


def test_a_transaction_from_its_beginning_to_its_end(kafka: Explained, name: str) -> None:
    kafka.create(name)
    producer = kafka.transactional(name)
    idle = kafka.transaction(name)
    assert idle.codes == {"transaction-closed"}
    producer.begin_transaction()
    producer.produce(name, b"mine", partition=0)
    producer.flush(GIVE_UP_SECONDS)
    found = kafka.transaction(name)
    assert found.codes == {"transaction-ongoing"}
    assert 0 < found.findings[0].figures["left"] <= 60_000
    assert f"in [{name}-0]" in found.findings[0].sentence
    producer.commit_transaction(GIVE_UP_SECONDS)
    until(lambda: kafka.transaction(name).codes == {"transaction-closed"})


def test_a_transaction_that_is_past_its_time_out(kafka: Explained, name: str) -> None:
    kafka.create(name, 2)
    with RawConnection(kafka.bootstrap) as connection:
        asks = Asks(connection)
        producer = asks.producer_of(name, 1)
        assert asks.add_partitions(name, producer, name) == 0
        with kafka.later(60_000):
            (problem,) = kafka.transaction(name).problems
        assert problem.code == "transaction-overdue"
        assert problem.figures["timeout"] == 1
        assert "transaction-overdue" not in kafka.transaction(name).codes


def test_a_producer_that_nobody_knows(kafka: Explained) -> None:
    assert [one.code for one in kafka.producer(2**40).problems] == ["producer-unknown"]


def test_a_producer_that_was_replaced(kafka: Explained, name: str) -> None:
    kafka.create(name, 2)
    old = kafka.transactional(name)
    old.begin_transaction()
    old.produce(name, b"mine", partition=0)
    old.flush(GIVE_UP_SECONDS)
    its_id = producer_id(kafka, name)
    assert kafka.producer(its_id, 0).codes == {"producer-wrote", "transaction-ongoing"}
    kafka.transactional(name)  # The newer one aborts what the older one has begun.
    until(lambda: "producer-fenced" in kafka.producer(its_id, 0).codes)
    (problem,) = kafka.producer(its_id, 0).problems
    assert problem.figures["newest"] > 0
    assert f"of {name}" in problem.sentence


def test_a_producer_whose_transaction_hangs(kafka: Explained, name: str) -> None:
    kafka.create(name, 2)
    with RawConnection(kafka.bootstrap) as connection:
        asks = Asks(connection)
        producer = asks.producer_of(name)
        assert asks.produce(name, producer, 9, topic=name) == 0
    found = kafka.producer(producer[0])
    assert [one.code for one in found.problems] == ["producer-transaction-hangs"]
    assert "producer-idle" in found.codes  # by the time of its record
