"""Clients of librdkafka beside a broker that fails, in few words, on the topic `orders`."""

from typing import Any

from confluent_kafka import Consumer, Producer

from millstream.testing import LocalBroker


def producer(broker: LocalBroker, **settings: object) -> Producer:
    return Producer({**broker.client_settings(), "linger.ms": 0, "log_level": 0, **settings})


def send(sender: Producer, value: bytes = b"value") -> str:
    """Produce a record, and return the name of the error, "" if it was delivered."""
    told: list[str] = []
    sender.produce(
        "orders", value, on_delivery=lambda error, _: told.append(error.name() if error else "")
    )
    sender.flush(20)
    return told[0]


def consumer(broker: LocalBroker, **settings: object) -> Consumer:
    return Consumer(
        {
            **broker.client_settings(),
            "group.id": "fraud",
            "enable.auto.commit": False,
            "log_level": 0,
            **settings,
        }
    )


def read(reader: Consumer) -> bytes:
    """Return the value of the next record."""
    for _ in range(200):
        message = reader.poll(0.1)
        if message is not None and message.error() is None:
            value = message.value()
            assert isinstance(value, bytes)
            return value
    raise AssertionError("no record")


def values(broker: LocalBroker) -> list[Any]:
    return [record.value for record in broker.records("orders")]
