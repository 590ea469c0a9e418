"""Records for tests of a worker, and readers of topics and files."""

from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer

from millstream.testing import LocalBroker
from tests.lib.connect_worker import ConnectWorker, eventually


def put(worker: ConnectWorker, name: str, **config: str) -> None:
    told = {key.replace("__", "."): value for key, value in config.items()}
    status, body, _ = worker.call("PUT", f"/connectors/{name}/config", told)
    assert status in (200, 201), body


def produce(broker: LocalBroker, topic: str, *values: str | bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def consumed(broker: LocalBroker, topic: str, count: int) -> list[Any]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": f"reads-{topic}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    try:
        found: list[Any] = []

        def more() -> bool:
            found.extend(each for each in consumer.consume(1000, 0.2) if not each.error())
            return len(found) >= count

        eventually(more)
        return found
    finally:
        consumer.close()


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
