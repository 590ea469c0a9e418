"""What tests can ask of their brokers: a port, topics, and one broker for a whole run."""

from itertools import islice

import confluent_kafka
import pytest

from millstream.processes.cluster_layout import free_ports
from millstream.testing import LocalBroker, LocalCluster
from millstream.testing.local_broker import LocalBroker as Broker

STARTED: list[int] = []


def leaders(address: str, topic: str) -> list[int]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": "any"})
    found = consumer.list_topics(topic, timeout=60).topics[topic].partitions
    consumer.close()
    return [each.leader for each in found.values()]


def test_a_broker_listens_on_the_port_that_it_is_given() -> None:
    (port,) = islice(free_ports(), 1)
    with LocalBroker(port=port) as broker:
        assert broker.bootstrap_servers == f"127.0.0.1:{port}"
        broker.kill()
        broker.start()
        assert broker.bootstrap_servers == f"127.0.0.1:{port}"


def test_a_topic_is_there_with_its_settings(kafka_broker: LocalBroker) -> None:
    kafka_broker.create_topic("orders", 3, settings={"cleanup.policy": "compact"})
    assert leaders(kafka_broker.bootstrap_servers, "orders") == [1, 1, 1]
    assert len(list(kafka_broker.data_folder.glob("orders-*"))) == 3
    with pytest.raises(confluent_kafka.KafkaException, match="TOPIC_ALREADY_EXISTS"):
        kafka_broker.create_topic("orders")


def test_every_broker_of_a_cluster_knows_a_new_topic() -> None:
    with LocalCluster(has_links=False) as cluster:
        cluster.create_topic("orders", 3)
        for broker in cluster.broker_ids:
            assert sorted(leaders(cluster.address(broker), "orders")) == [1, 2, 3]
        cluster.kill(3)
        cluster.create_topic("two", replication_factor=2)
        assert leaders(cluster.address(1), "two") in ([1], [2])


@pytest.mark.parametrize("turn", [1, 2])
def test_a_broker_of_the_session_is_the_same_for_all_tests(
    session_kafka_broker: Broker, turn: int
) -> None:
    STARTED.append(session_kafka_broker.pid)
    assert len(set(STARTED)) == 1, turn
