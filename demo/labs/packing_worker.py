"""A worker of `millstream lab work-queue`: it packs orders of a share group until it is stopped.

A process of its own, so that it can be killed. It prints what it does as lines of JSON: `takes`
before it packs an order, `packs` when that is acknowledged, `fails` when it gives the order back,
and `sets-aside` when it was the last delivery: the order is then in the dead-letter topic.
"""

import json
import logging
import sys
import time
from typing import Any

from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer

from demo.labs.work_orders import (
    BROKEN,
    DEAD_LETTERS,
    DELIVERY_LIMIT,
    GROUP,
    HEAVY,
    PACK_SECONDS,
    QUIET,
    STUCK_SECONDS,
    TOPIC,
    Order,
)

_POLL_SECONDS = 0.2
_WAIT_SECONDS = 30.0


class _CannotPackError(Exception):
    """The order cannot be packed."""


class _Worker:
    """Takes one order after the other."""

    def __init__(self, servers: str) -> None:
        told: dict[str, Any] = {"bootstrap.servers": servers, "logger": QUIET}
        self._producer = Producer({**told, "enable.idempotence": True})
        self._consumer = ShareConsumer(
            {
                **told,
                "group.id": GROUP,
                "share.acknowledgement.mode": "explicit",
                # A worker takes no more than what it can pack at once.
                "max.poll.records": 1,
            }
        )

    def work(self) -> None:
        """Pack orders for ever."""
        self._consumer.subscribe([TOPIC])
        while True:
            for message in self._consumer.poll(_POLL_SECONDS):
                if message.error() is None:
                    self._take(message)

    def _take(self, message: Message) -> None:
        order = Order.parse(message.value() or b"")
        delivery = message.delivery_count() or 0
        _tell("takes", order, delivery)
        try:
            _pack(order, delivery)
        except _CannotPackError:
            if delivery < DELIVERY_LIMIT:
                self._acknowledge(message, AcknowledgeType.RELEASE)
                _tell("fails", order, delivery)
                return
            self._set_aside(message)
            self._acknowledge(message, AcknowledgeType.REJECT)
            _tell("sets-aside", order, delivery)
            return
        self._acknowledge(message, AcknowledgeType.ACCEPT)
        _tell("packs", order, delivery)

    def _set_aside(self, message: Message) -> None:
        self._producer.produce(DEAD_LETTERS, message.value(), message.key())
        if self._producer.flush(_WAIT_SECONDS):
            raise SystemExit("the dead letter was not acknowledged")

    def _acknowledge(self, message: Message, how: AcknowledgeType) -> None:
        self._consumer.acknowledge(message, how)
        for error in self._consumer.commit_sync(_WAIT_SECONDS).values():
            if error is not None:
                raise SystemExit(f"the order was not acknowledged: {error}")


def _pack(order: Order, delivery: int) -> None:
    if order.kind == BROKEN:
        raise _CannotPackError
    is_stuck = order.kind == HEAVY and delivery == 1
    time.sleep(STUCK_SECONDS if is_stuck else PACK_SECONDS)


def _tell(what: str, order: Order, delivery: int) -> None:
    print(json.dumps({"what": what, "order": order.number, "delivery": delivery}), flush=True)


if __name__ == "__main__":
    logging.disable()
    _Worker(sys.argv[1]).work()
