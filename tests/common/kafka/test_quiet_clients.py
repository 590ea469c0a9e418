"""Kafka clients without a broker: few attempts, few lines."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient
from confluent_kafka import Consumer

from common.kafka import quiet_clients
from common.kafka.quiet_clients import QUIET_SECONDS, Seldom, calm_aiokafka

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


def test_a_failed_update_is_followed_by_a_pause_also_when_the_topics_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts = 0

    async def fail(client: Any, metadata: Any, topics: Any) -> bool:
        nonlocal attempts
        attempts += 1
        client._topics = {f"topic-{attempts}"}
        await asyncio.sleep(0)
        return False

    monkeypatch.setattr(AIOKafkaClient, "_metadata_update", AIOKafkaClient._metadata_update)
    monkeypatch.setattr(quiet_clients, "_update_at_once", fail)
    monkeypatch.setattr(quiet_clients, "PAUSE_SECONDS", 0.05)
    calm_aiokafka()

    async def run() -> None:
        client = AIOKafkaClient(bootstrap_servers="127.0.0.1:1", metadata_max_age_ms=1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client._md_synchronizer(), 0.3)

    asyncio.run(run())
    assert 2 <= attempts <= 7


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
def test_every_program_that_uses_aiokafka_is_calm(program: str) -> None:
    assert "    calm_aiokafka()" in (ROOT / program).read_text()
