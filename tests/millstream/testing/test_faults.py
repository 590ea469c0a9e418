"""Faults on demand, as a test in Python uses them, with a stock client."""

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from millstream.launch import program_command, program_environment
from millstream.testing import (
    LocalBroker,
    LocalCluster,
    LocalStack,
    RunningBrokers,
    UnusedFaultError,
)
from millstream.testing.broker_control import ControlError

PATIENCE = 30.0


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalBroker]:
    with LocalBroker(auto_create_topics_enable=False) as broker:
        broker.create_topic("orders", partitions=3)
        yield broker


@pytest.fixture
def broker(shared: LocalBroker) -> Iterator[LocalBroker]:
    shared.requests.clear()
    yield shared
    shared.faults.clear()


def producer(broker: LocalBroker, **settings: object) -> Producer:
    return Producer(
        {
            **broker.client_settings(),
            "enable.idempotence": True,
            "linger.ms": 0,
            "log_level": 0,
            "socket.timeout.ms": 2_000,
            **settings,
        }
    )


def send(sender: Producer, partition: int = 1, topic: str = "orders") -> Any:
    """Produce one record, and return its delivery error, None if it was written."""
    told: list[Any] = []
    sender.produce(
        topic, b"value", partition=partition, on_delivery=lambda error, _: told.append(error)
    )
    assert sender.flush(PATIENCE) == 0
    return told[0]


def end_offset(broker: LocalBroker, partition: int = 1, topic: str = "orders") -> int:
    from confluent_kafka import TopicPartition

    consumer = Consumer({**broker.client_settings(), "group.id": "offsets"})
    try:
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE)
        return int(high)
    finally:
        consumer.close()


def test_an_error_of_one_partition_is_retried_and_the_other_calls_are_seen(
    broker: LocalBroker,
) -> None:
    rule = broker.faults.error(
        "Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=1
    ).times(2)
    before = end_offset(broker)
    assert send(producer(broker, **{"client.id": "payments"})) is None
    rule.wait_hit(count=2)
    assert rule.hits == 2
    assert end_offset(broker) == before + 1
    calls = broker.requests.list(api=("InitProducerId", "Produce"), client_id="payments")
    assert [call.api for call in calls] == ["InitProducerId", *["Produce"] * 3]
    assert [list(call.errors) for call in calls[1:]] == [["NOT_LEADER_OR_FOLLOWER"]] * 2 + [[]]
    assert calls[1].topics == {"orders": [1]}
    assert broker.requests.count(api="Produce", topic="orders") == 3


def test_the_other_partitions_of_a_request_are_written(broker: LocalBroker) -> None:
    rule = broker.faults.error("Produce", "MESSAGE_TOO_LARGE", topic="orders", partition=2).always()
    before = [end_offset(broker, number) for number in range(3)]
    sender = producer(broker)
    errors = [send(sender, number) for number in range(3)]
    assert errors[:2] == [None, None]
    assert errors[2].name() == "MSG_SIZE_TOO_LARGE"
    assert rule.hits >= 1
    rule.remove()
    after = [end_offset(broker, number) for number in range(3)]
    assert after == [before[0] + 1, before[1] + 1, before[2]]


@pytest.mark.parametrize("kind", ["close", "reset", "tear", "lose_answer"])
def test_a_lost_answer_does_not_write_twice(broker: LocalBroker, kind: str) -> None:
    before = end_offset(broker)
    more: dict[str, Any] = {"after": True} if kind in ("close", "reset") else {}
    rule = getattr(broker.faults, kind)("Produce", topic="orders", **more).once()
    assert send(producer(broker)) is None
    assert rule.hits == 1
    assert end_offset(broker) == before + 1


@pytest.mark.parametrize("kind", ["close", "reset", "lose_request"])
def test_a_lost_request_is_sent_again(broker: LocalBroker, kind: str) -> None:
    before = end_offset(broker)
    rule = getattr(broker.faults, kind)("Produce").once()
    assert send(producer(broker)) is None
    assert rule.hits == 1
    assert end_offset(broker) == before + 1


def test_a_delay_is_seen_in_the_duration(broker: LocalBroker) -> None:
    broker.faults.delay("Produce", ms=300).once()
    assert send(producer(broker)) is None
    (call,) = broker.requests.list(api="Produce")
    assert call.duration_ms is not None
    assert call.duration_ms >= 299  # The loop's timers have whole milliseconds.


def test_a_black_hole_swallows_one_client_only(broker: LocalBroker) -> None:
    rule = broker.faults.black_hole(client_id="lost").always()
    settings = {"message.timeout.ms": 1_500, "socket.timeout.ms": 500}
    error = send(producer(broker, **{"client.id": "lost", **settings}))
    assert error is not None
    assert send(producer(broker, **{"client.id": "other"})) is None
    assert rule.hits >= 1


def test_a_throttled_client_is_told_to_wait(broker: LocalBroker) -> None:
    told: list[int] = []
    rule = broker.faults.throttle("Produce", ms=250).once()
    sender = producer(broker, throttle_cb=lambda event: told.append(event.throttle_time))
    assert send(sender) is None
    sender.poll(1)
    assert rule.hits == 1
    assert told
    assert 0.2 < told[0] < 0.3


def test_damaged_records_are_noticed_and_read_again(broker: LocalBroker) -> None:
    broker.create_topic("damaged")
    assert send(producer(broker), 0, "damaged") is None
    rule = broker.faults.damage_records(topic="damaged").once()
    consumer = Consumer(
        {
            **broker.client_settings(),
            "group.id": "damage",
            "auto.offset.reset": "earliest",
            "check.crcs": True,
            "log_level": 0,
        }
    )
    consumer.subscribe(["damaged"])
    try:
        errors, values = [], []
        while not values:
            message = consumer.poll(PATIENCE)
            assert message is not None
            if message.error():
                errors.append(message.error().name())
            else:
                values.append(message.value())
    finally:
        consumer.close()
    assert errors == ["_BAD_MSG"]
    assert values == [b"value"]
    assert rule.hits == 1


def test_an_error_reaches_a_partition_in_the_session_of_a_fetch(broker: LocalBroker) -> None:
    """Java's client and ours name the partitions once; librdkafka names them in every Fetch."""
    broker.create_topic("sessions")
    rule = broker.faults.error("Fetch", "KAFKA_STORAGE_ERROR", topic="sessions").times(2)
    assert send(producer(broker), 0, "sessions") is None
    consumer = Consumer(
        {**broker.client_settings(), "group.id": "s", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["sessions"])
    try:
        message = consumer.poll(PATIENCE)
        assert message is not None
        assert message.error() is None
        assert message.value() == b"value"
    finally:
        consumer.close()
    rule.wait_hit(count=2)


def test_a_fault_that_hits_nothing_fails_the_test(broker: LocalBroker) -> None:
    broker.faults.error("Heartbeat", "REBALANCE_IN_PROGRESS").once()
    with pytest.raises(UnusedFaultError, match=r"api=Heartbeat .* hit nothing: 0 calls"):
        broker.faults.clear()
    broker.faults.close("Heartbeat")
    with pytest.raises(UnusedFaultError, match=r"never armed: say when, as \.once\(\)"):
        broker.faults.clear()
    broker.faults.close("Heartbeat", allow_unused=True).once()
    broker.faults.clear()
    broker.faults.close("Heartbeat").once()
    broker.faults.clear(allow_unused=True)


def test_the_end_of_the_block_looks_for_unused_faults() -> None:
    def block(divisor: int) -> None:
        with LocalBroker() as broker:
            broker.faults.close("Produce").once()
            assert 1 / divisor

    with pytest.raises(UnusedFaultError):
        block(1)
    with pytest.raises(ZeroDivisionError):  # The test's own failure is the one that counts.
        block(0)


def test_what_can_never_hit_is_refused_at_once(broker: LocalBroker) -> None:
    with pytest.raises(ControlError, match="Kafka has no error 'NOT_LEADER'; did you mean"):
        broker.faults.error("Produce", "NOT_LEADER").once()
    with pytest.raises(ControlError, match="a Heartbeat request names no topic"):
        broker.faults.delay("Heartbeat", ms=5, topic="orders").once()


def test_waiting_for_a_hit_ends() -> None:
    with LocalBroker() as broker:
        rule = broker.faults.close("Produce", allow_unused=True).once()
        with pytest.raises(TimeoutError, match=r"0 hits after 0\.05 s, not 1"):
            rule.wait_hit(0.05)


def test_faults_end_with_the_process_and_what_they_hit_is_kept() -> None:
    with LocalBroker() as broker:
        broker.create_topic("orders", partitions=2)
        rule = broker.faults.close("Produce").once()
        assert send(producer(broker)) is None
        broker.kill()
        assert rule.hits == 1
        broker.start()
        assert send(producer(broker)) is None
        assert broker.requests.count(api="Produce") == 1


def test_a_full_disk_ends_a_broker_as_it_ends_kafka() -> None:
    with LocalBroker() as broker:
        broker.create_topic("orders", partitions=2)
        broker.faults.disk("full", topic="orders", allow_unused=True).once()
        assert send(producer(broker, **{"message.timeout.ms": 2_000})) is not None
        assert "No space left on device" in broker.log()


def test_a_slow_disk_delays_the_answer(broker: LocalBroker) -> None:
    rule = broker.faults.disk("slow", ms=200, topic="orders").once()
    assert send(producer(broker)) is None
    assert rule.hits == 1
    (call,) = broker.requests.list(api="Produce")
    assert call.duration_ms is not None
    assert call.duration_ms >= 200


def test_a_cluster_arms_at_all_brokers_or_at_one() -> None:
    with LocalCluster(brokers=2, has_links=False) as cluster:
        cluster.create_topic("orders", partitions=2, replication_factor=1)
        everywhere = cluster.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER").once()
        at_one = cluster.node(1).faults.delay("Produce", ms=10, allow_unused=True).once()
        sender = Producer({**cluster.client_settings(), "log_level": 0})
        for partition in range(2):
            assert send(sender, partition) is None
        assert 1 <= everywhere.hits <= 2
        assert at_one.hits <= 1
        assert cluster.requests.count(api="Produce", topic="orders") >= 3


def call(broker: LocalBroker, path: str, **headers: str) -> int:
    request = urllib.request.Request(broker.http_url + path, headers=headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_the_control_is_not_there_without_testing() -> None:
    with LocalBroker(is_testing=False) as broker:
        for path in ("/faults", "/requests", "/openapi.json"):
            assert call(broker, path) == 404
        with pytest.raises(AssertionError, match="is_testing=False"):
            broker.faults.close("Produce").once()


def test_the_control_refuses_other_origins(broker: LocalBroker) -> None:
    assert call(broker, "/faults") == 200
    assert call(broker, "/faults", Origin="http://evil.example") == 403
    assert call(broker, "/faults", Host="evil.example") == 421


def test_bodies_are_read_by_pieces_and_limited(broker: LocalBroker) -> None:
    long = json.dumps({"kind": "x" * 100_000}).encode()
    request = urllib.request.Request(broker.http_url + "/faults", data=long, method="POST")
    with pytest.raises(urllib.error.HTTPError, match="413") as refusal:
        urllib.request.urlopen(request)
    refusal.value.close()


def test_faults_in_brokers_that_somebody_else_started(
    broker: LocalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunningBrokers([broker.http_url]) as running:
        rule = running.faults.close("Produce").once()
        assert send(producer(broker)) is None
        assert rule.hits == 1
        assert running.requests.count(api="Produce") == 2
    monkeypatch.setenv("KAFKA_CONTROL_URLS", broker.http_url)
    with pytest.raises(UnusedFaultError), RunningBrokers() as running:
        running.faults.close("Produce").once()
    monkeypatch.delenv("KAFKA_CONTROL_URLS")
    with pytest.raises(ValueError, match="KAFKA_CONTROL_URLS is not set"):
        RunningBrokers()


def test_a_stack_looks_for_unused_faults_but_not_after_a_failure() -> None:
    def block(divisor: int) -> None:
        with LocalStack(parts=[]) as stack:
            stack.faults.close("Produce").once()
            assert stack.requests.list(api="Produce") == []
            assert 1 / divisor

    with pytest.raises(UnusedFaultError):
        block(1)
    with pytest.raises(ZeroDivisionError):
        block(0)


def test_a_node_under_test_that_others_reach_needs_a_password(tmp_path: Path) -> None:
    command = program_command(
        "broker", "start", "--testing", "--override", "http.listener=0.0.0.0:0"
    )
    done = subprocess.run(
        [*command, "--override", f"log.dirs={tmp_path}"],
        env=program_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "needs users and passwords (http.config), or an address of this machine" in done.stderr


def test_a_login_is_refused_once_and_is_among_the_calls() -> None:
    with LocalBroker(security="sasl_plaintext") as broker:
        broker.create_topic("orders", partitions=2)
        broker.requests.clear()
        rule = broker.faults.error("SaslAuthenticate", "SASL_AUTHENTICATION_FAILED").once()
        assert send(producer(broker)) is None
        assert rule.hits == 1
        calls = broker.requests.list(api="SaslAuthenticate")
        assert calls[0].errors == ["SASL_AUTHENTICATION_FAILED"]
        assert not calls[-1].errors
        (call, *_) = broker.requests.list(api="Produce")
        assert call.principal == "User:admin"
