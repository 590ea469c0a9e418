"""Tests of librdkafka's own suite that use its mock cluster, by their meaning, on a real broker.

Each names the test that it corresponds to. The answers are the same; where a real broker makes a
difference the test says it. All of them have one broker where librdkafka's have up to three: which
node coordinates is no part of what they look at.
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from millstream.testing import LocalBroker
from tests.lib.orders_clients import consumer, producer, read, send, values
from tests.lib.waiting import until

SECONDS = 60
pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalBroker]:
    with LocalBroker() as broker:
        broker.create_topic("orders")
        broker.snapshot()
        yield broker


@pytest.fixture
def broker(shared: LocalBroker) -> Iterator[LocalBroker]:
    shared.restore(new_port=True)
    yield shared
    shared.faults.clear()


@pytest.fixture
def reader(broker: LocalBroker) -> Iterator[Consumer]:
    made = consumer(broker, **{"auto.offset.reset": "earliest", "session.timeout.ms": 6_000})
    yield made
    made.close()


def fail(broker: LocalBroker, api: str, *errors: str) -> None:
    """Answer the next calls with these errors, one after another."""
    for error in errors:
        broker.faults.error(api, error).once()


def transaction(broker: LocalBroker) -> Producer:
    made = producer(broker, **{"transactional.id": "pay"})
    made.init_transactions(SECONDS)
    made.begin_transaction()
    return made


def commit_offsets(sender: Producer, reader: Consumer) -> None:
    offsets = [TopicPartition("orders", 0, 1)]
    sender.send_offsets_to_transaction(offsets, reader.consumer_group_metadata(), SECONDS)


def refusal(failed: pytest.ExceptionInfo[KafkaException]) -> tuple[str, bool, bool]:
    """Return the name of an error, if it is fatal, and if it requires an abort."""
    error = failed.value.args[0]
    return error.name(), error.fatal(), error.txn_requires_abort()


def test_a_consumer_of_a_deleted_topic_gets_no_record(broker: LocalBroker) -> None:
    """0009-mock_cluster.c, do_test_topic_delete: the mock is asked by Fetch, here Metadata says it.

    librdkafka does not send a Fetch for a topic without a leader, and tells its program nothing.
    """
    admin = AdminClient(broker.client_settings())
    assert send(producer(broker)) == ""
    admin.delete_topics(["orders"])["orders"].result(SECONDS)
    again = admin.delete_topics(["orders"])["orders"]
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        again.result(SECONDS)
    reader = consumer(broker, **{"allow.auto.create.topics": False})
    reader.assign([TopicPartition("orders", 0, 0)])
    told = "UNKNOWN_TOPIC_OR_PARTITION"
    until(lambda: any(told in call.errors for call in broker.requests.list(topic="orders")))
    assert reader.poll(0.5) is None
    reader.close()


@pytest.mark.parametrize(("retries", "told"), [(10, ""), (1, "KAFKA_STORAGE_ERROR")])
def test_a_storage_error_is_retried(broker: LocalBroker, retries: int, told: str) -> None:
    """0117-mock_errors.c, do_test_producer_storage_error."""
    errors = ["KAFKA_STORAGE_ERROR"] * min(retries + 1, 3)
    fail(broker, "Produce", *errors)
    assert send(producer(broker, retries=retries, **{"retry.backoff.ms": 50})) == told
    assert values(broker) == ([] if told else ["value"])


def test_a_coordinator_that_loads_is_no_error_for_the_program(broker: LocalBroker) -> None:
    """0117-mock_errors.c, do_test_joingroup_coordinator_load_in_progress."""
    assert send(producer(broker)) == ""
    fail(broker, "FindCoordinator", "COORDINATOR_LOAD_IN_PROGRESS")
    reader = consumer(broker, **{"auto.offset.reset": "earliest"})
    reader.subscribe(["orders"])
    message = None
    while message is None:
        message = reader.poll(1)
    assert message.error() is None
    reader.close()


def test_an_invalid_message_is_sent_again(broker: LocalBroker) -> None:
    """0076-produce_retry.c, do_test_produce_retry_invalid_msg: two Produce requests.

    What librdkafka calls INVALID_MSG has the name CORRUPT_MESSAGE in Kafka.
    """
    fail(broker, "Produce", "CORRUPT_MESSAGE")
    assert send(producer(broker)) == ""
    assert broker.requests.count(api="Produce") == 2
    assert values(broker) == ["value"]


def test_records_after_one_that_may_be_written_confirm_it(broker: LocalBroker) -> None:
    """0144-idempotence_mock.c, do_test_idempo_success_after_possibly_persisted.

    The mock forgets the record; here it is in the log, and its repetition is recognized.
    """
    broker.faults.error("Produce", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", after=True).once()
    sender = producer(broker, **{"enable.idempotence": True, "batch.num.messages": 1})
    for number in range(5):
        sender.produce("orders", str(number), partition=0)
    assert sender.flush(SECONDS) == 0
    assert values(broker) == list("01234")


def test_a_transaction_survives_errors_that_pass(broker: LocalBroker, reader: Consumer) -> None:
    """0105-transactions_mock.c, do_test_txn_recoverable_errors.

    The offsets of its topics that do not exist are those of `orders` here: a real broker refuses a
    partition that it does not know.
    """
    loading = ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS")
    fail(broker, "InitProducerId", *loading)
    sender = transaction(broker)
    assert send(sender) == ""
    fail(broker, "Produce", "NOT_ENOUGH_REPLICAS")
    assert send(sender) == ""
    fail(broker, "TxnOffsetCommit", "NOT_COORDINATOR", "CONCURRENT_TRANSACTIONS")
    commit_offsets(sender, reader)
    fail(broker, "EndTxn", *loading)
    sender.commit_transaction(SECONDS)
    assert len(broker.records("orders", read_committed=True)) == 2


def test_concurrent_transactions_are_waited_for(broker: LocalBroker, reader: Consumer) -> None:
    """0105-transactions_mock.c, do_test_txns_send_offsets_concurrent_is_retried."""
    sender = transaction(broker)
    assert send(sender) == ""
    rule = broker.faults.error("AddOffsetsToTxn", "CONCURRENT_TRANSACTIONS").times(6)
    commit_offsets(sender, reader)
    sender.commit_transaction(SECONDS)
    assert rule.hits == 6
    assert broker.group("fraud").offsets[0].offset == 1


def test_a_transaction_without_rights_can_only_be_aborted(
    broker: LocalBroker, reader: Consumer
) -> None:
    """0105-transactions_mock.c, do_test_txn_requires_abort_errors: Produce and AddOffsetsToTxn.

    librdkafka counts a refused record, and the mock does not look at sequence numbers. A real
    broker misses that record: it refuses the next one, too, and librdkafka begins a new epoch.
    """
    sender = transaction(broker)
    fail(broker, "Produce", "TOPIC_AUTHORIZATION_FAILED")
    assert send(sender) == "TOPIC_AUTHORIZATION_FAILED"
    with pytest.raises(KafkaException) as failed:
        commit_offsets(sender, reader)
    assert refusal(failed)[1:] == (False, True)
    sender.abort_transaction(SECONDS)
    sender.list_topics("orders", timeout=SECONDS)  # Else the error of the topic is remembered.
    sender.begin_transaction()
    fail(broker, "AddOffsetsToTxn", "GROUP_AUTHORIZATION_FAILED")
    with pytest.raises(KafkaException) as failed:
        commit_offsets(sender, reader)
    assert refusal(failed) == ("GROUP_AUTHORIZATION_FAILED", False, True)
    with pytest.raises(KafkaException):
        sender.commit_transaction(SECONDS)
    sender.abort_transaction(SECONDS)
    sender.begin_transaction()
    assert send(sender) == "_PURGE_QUEUE"
    assert broker.requests.list(api="Produce")[-1].errors == ["OUT_OF_ORDER_SEQUENCE_NUMBER"]
    sender.abort_transaction(SECONDS)
    sender.begin_transaction()
    assert send(sender) == ""
    sender.commit_transaction(SECONDS)
    assert len(broker.records("orders", read_committed=True)) == 1


@pytest.mark.parametrize("error", ["INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"])
def test_a_producer_that_is_fenced_when_it_begins_anew_is_over(
    broker: LocalBroker, error: str
) -> None:
    """0105-transactions_mock.c, do_test_txn_fenced_reinit."""
    sender = transaction(broker)
    assert send(sender) == ""
    fail(broker, "InitProducerId", error)
    fail(broker, "Produce", "UNKNOWN_PRODUCER_ID")
    sender.produce("orders", b"value")
    sender.flush(SECONDS)
    with pytest.raises(KafkaException) as failed:
        sender.abort_transaction(SECONDS)
    assert refusal(failed)[:2] == ("_FENCED", True)


@pytest.mark.parametrize("error", ["STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"])
def test_a_commit_tells_its_error_and_the_next_one_works(broker: LocalBroker, error: str) -> None:
    """0148-offset_fetch_commit_error_mock.c, do_test_OffsetCommit_manual_error."""
    assert send(producer(broker)) == ""
    reader = consumer(broker, **{"auto.offset.reset": "earliest", "group.protocol": "consumer"})
    reader.subscribe(["orders"])
    assert read(reader) == b"value"
    fail(broker, "OffsetCommit", error)
    with pytest.raises(KafkaException, match=error):
        reader.commit(asynchronous=False)
    committed = reader.commit(asynchronous=False)
    assert [(each.offset, each.error) for each in committed or []] == [(1, None)]
    reader.close()


def test_a_consumer_that_may_not_reset_gets_the_reason(broker: LocalBroker) -> None:
    """0034-offset_reset.c, offset_reset_errors: an error of ListOffsets; no committed offset."""
    reader = consumer(broker, **{"auto.offset.reset": "error"})
    assert send(producer(broker)) == ""
    broker.faults.error("ListOffsets", "TOPIC_AUTHORIZATION_FAILED").times(5)
    for offset, reason in ((-2_000 - 1, "authorization failed"), (-1_000, "No offset stored")):
        reader.assign([TopicPartition("orders", 0, offset)])
        error = None
        while error is None or error.name() != "_AUTO_OFFSET_RESET":
            message = reader.poll(1)
            error = message and message.error()
        assert reason.lower() in error.str().lower()
    reader.close()
