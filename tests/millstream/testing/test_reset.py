"""A broker that is brought back to what it was: its topics, groups, time and faults."""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from millstream.testing import LocalBroker, LocalCluster
from millstream.testing.broker_control import BrokerControl, ControlError
from millstream.testing.clean_broker import CleanBroker
from millstream.testing.faults import UnusedFaultError
from millstream.testing.running_brokers import RunningBrokers
from tests.lib.waiting import until

pytestmark = pytest.mark.slow

WAIT_SECONDS = 30


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as started:
        yield started


def produce(broker: LocalBroker, topic: str) -> None:
    producer = Producer({**broker.client_settings(), "log_level": 0})
    producer.produce(topic, "v")
    assert producer.flush(WAIT_SECONDS) == 0


def topics(broker: LocalBroker) -> set[str]:
    client = Producer({**broker.client_settings(), "log_level": 0})
    return {name for name in client.list_topics(timeout=WAIT_SECONDS).topics if name[0] != "_"}


def test_a_restore_brings_back_topics_records_offsets_and_the_time(broker: LocalBroker) -> None:
    broker.create_topic("orders", 2)
    produce(broker, "orders")
    settings = {"group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
    reader = Consumer({**broker.client_settings(), **settings})
    reader.subscribe(["orders"])
    assert reader.poll(WAIT_SECONDS) is not None
    reader.commit(asynchronous=False)
    reader.close()
    broker.clock.advance(hours=1)
    kept, ahead = broker.records("orders"), broker.clock.ahead
    broker.snapshot()
    address, process_id = broker.bootstrap_servers, broker.pid
    for _ in range(2):
        produce(broker, "orders")
        broker.create_topic("of-a-test")
        broker.clock.advance(days=1)
        broker.restore()
        assert topics(broker) == {"orders"}
        assert broker.records("orders") == kept
        assert broker.wait_for_lag("g").lag == 0
        assert broker.clock.ahead == ahead
    assert (broker.bootstrap_servers, broker.pid) == (address, process_id)


def test_clients_are_disconnected_and_go_on_with_the_restored_broker(broker: LocalBroker) -> None:
    broker.create_topic("orders")
    broker.snapshot()
    errors: list[object] = []
    settings = {"log_level": 0, "error_cb": errors.append}
    producer = Producer({**broker.client_settings(), **settings})
    for _ in range(3):
        producer.produce("orders", "v")
        assert producer.flush(WAIT_SECONDS) == 0
        broker.restore()
        assert broker.records("orders") == []
    producer.produce("orders", "v")
    assert producer.flush(WAIT_SECONDS) == 0
    assert len(broker.records("orders")) == 1


def test_a_consumer_that_waits_sees_a_closed_connection_and_the_broker_no_error(
    broker: LocalBroker,
) -> None:
    broker.create_topic("orders")
    broker.snapshot()
    settings = {"group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
    reader = Consumer({**broker.client_settings(), **settings, "fetch.wait.max.ms": 1_000})
    reader.subscribe(["orders"])
    until(lambda: reader.poll(0.1) is None and bool(reader.assignment()), WAIT_SECONDS)
    broker.restore()
    produce(broker, "orders")
    until(lambda: reader.poll(0.2) is not None, WAIT_SECONDS)
    reader.close()
    assert "Traceback" not in broker.log()
    assert "ERROR" not in broker.log()


def test_at_a_new_port_clients_of_before_do_not_find_the_broker(broker: LocalBroker) -> None:
    broker.snapshot()
    before = broker.bootstrap_servers
    broker.restore(new_port=True)
    assert broker.bootstrap_servers != before
    produce(broker, "orders")
    old = Producer({"bootstrap.servers": before, "log_level": 0, "message.timeout.ms": 1_000})
    old.produce("orders", "v")
    old.flush(WAIT_SECONDS)
    assert len(broker.records("orders")) == 1


def test_a_broker_that_ended_or_is_frozen_is_restored_too(broker: LocalBroker) -> None:
    broker.create_topic("orders")
    broker.snapshot()
    broker.kill()
    broker.restore()
    assert topics(broker) == {"orders"}
    broker.pause()
    broker.restore()
    assert topics(broker) == {"orders"}


def test_the_time_of_a_broker_outlives_its_process(broker: LocalBroker) -> None:
    broker.clock.advance(hours=1)
    kept = broker.clock.ahead
    broker.snapshot()
    broker.clock.advance(hours=1)
    broker.kill()
    broker.start()
    assert broker.clock.ahead == 2 * kept
    broker.restore()
    assert broker.clock.ahead == kept
    broker.kill()
    broker.start()
    assert broker.clock.ahead == kept


def test_faults_and_the_calls_end_with_a_restore(broker: LocalBroker) -> None:
    broker.snapshot()
    rule = broker.faults.error("Metadata", "LEADER_NOT_AVAILABLE").always()
    unused = broker.faults.delay("Produce", ms=1).once()
    client = Producer({**broker.client_settings(), "log_level": 0})
    threading.Thread(target=client.poll, args=(0.2,)).start()
    rule.wait_hit(WAIT_SECONDS)
    broker.restore()
    assert rule.hits > 0
    assert topics(broker) == set()
    with pytest.raises(UnusedFaultError, match="Produce"):
        broker.check()
    assert unused.hits == 0


def test_a_clean_broker_is_one_process_for_all_tests() -> None:
    with CleanBroker() as clean:
        first = clean.next()
        process_id, address = first.pid, first.bootstrap_servers
        first.create_topic("orders")
        first.registry_url = "http://localhost:1"
        clean.end()
        second = clean.next()
        assert (second.pid, topics(second), second.registry_url) == (process_id, set(), "")
        assert second.bootstrap_servers != address
        second.close()
        assert topics(clean.next()) == set()


def test_without_a_snapshot_or_as_a_part_of_a_cluster_there_is_no_restore(
    broker: LocalBroker,
) -> None:
    with pytest.raises(ControlError, match="There is no snapshot"):
        broker.restore()
    assert topics(broker) == set()
    with LocalCluster(brokers=2) as cluster, pytest.raises(ControlError, match="whole cluster"):
        cluster.node(1).snapshot()


def test_a_broker_that_somebody_else_started_is_moved_and_restored(broker: LocalBroker) -> None:
    broker.create_topic("orders")
    with RunningBrokers([broker.http_url]) as running:
        running.snapshot()
        running.clock.advance(hours=1)
        assert broker.clock.ahead.total_seconds() == 3_600
        broker.create_topic("of-a-test")
        running.restore()
        assert (topics(broker), broker.clock.ahead.total_seconds()) == ({"orders"}, 0)


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("/restore", {"new_ports": 1}, "new_ports is not bool"),
        ("/restore", {"ports": True}, "'ports' is none of: new_ports"),
        ("/restore", [], "no JSON object"),
        ("/clock", {"advance_ms": True}, "advance_ms is not int"),
        ("/clock", {}, "advance_ms is missing"),
        ("/clock", {"advance_ms": -1}, "cannot be moved"),
    ],
)
def test_a_wrong_request_is_refused_in_words(
    kafka_broker: LocalBroker, path: str, body: object, why: str
) -> None:
    control = BrokerControl(lambda: kafka_broker.http_url)
    with pytest.raises(ControlError, match=why):
        control.call("POST", path, body=body)


def test_a_broker_without_testing_has_none_of_this() -> None:
    with LocalBroker(is_testing=False) as broker:
        for path in ("/clock", "/snapshot", "/restore"):
            request = urllib.request.Request(broker.http_url + path, b"{}", method="POST")
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=WAIT_SECONDS)
            with refused.value:
                assert refused.value.code == 405
