"""Kafka clients without a broker: few lines."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from common.kafka.quiet_clients import QUIET_SECONDS, Seldom

ROOT = Path(__file__).parents[3]
PROGRAMS = (
    "common/processing/runner.py",
    "connect/start.py",
    "connect/worker/isolation/__main__.py",
    "mirror/__main__.py",
    "rest_proxy/__main__.py",
    "schemas/registry/__main__.py",
    "streams/__main__.py",
)
"""Where the programs that use aiokafka begin."""


def record(name: str, message: str) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "", 0, message, (), None)


def test_a_message_of_aiokafka_is_logged_once_a_minute() -> None:
    now = 0.0
    seldom = Seldom(lambda: now)
    said = [seldom.filter(record("aiokafka.client", "no broker")) for _ in range(3)]
    assert said == [True, False, False]
    assert seldom.filter(record("aiokafka.client", "another"))
    assert all(seldom.filter(record("schemas.registry", "no broker")) for _ in range(3))
    now = QUIET_SECONDS
    assert seldom.filter(record("aiokafka.client", "no broker"))


def test_refused_connections_of_librdkafka_are_logged_once_a_minute_for_each_client() -> None:
    handler, logger = Kept(), logging.getLogger("of librdkafka")
    handler.addFilter(Seldom(lambda: 0.0))
    logger.addHandler(handler)
    logger.propagate = False
    try:
        for count in (1, 2):
            refused(logger, lambda count=count: len(handler.texts) >= count)
    finally:
        logger.removeHandler(handler)
    assert len(handler.texts) == 2
    assert len({text.split("]")[0] for text in handler.texts}) == 2


class Kept(logging.Handler):
    """Keeps the refused connections that it is told of."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("FAIL "):
            self.texts.append(record.getMessage())


def refused(logger: logging.Logger, is_said: Callable[[], bool]) -> None:
    """Look for a coordinator where nobody listens until it is said, and half a second more."""
    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "logger": logger}
    consumer = Consumer(settings)
    consumer.subscribe(["t"])
    deadline = time.monotonic() + 20
    while not is_said():
        assert time.monotonic() < deadline
        consumer.poll(0.1)
    consumer.poll(0.5)
    consumer.close()


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_that_uses_aiokafka_is_quiet(program: str) -> None:
    assert "    quiet_clients()" in (ROOT / program).read_text()
