"""The service that services/README.md shows how to add: added, known, and at work."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from common.registry.client import SchemaRegistryClient
from common.registry.events import Events
from millstream.launch import program_command, program_environment, programs_folder
from millstream.testing import LocalBroker
from services.orders.desk import created_event
from services.orders.requests import OrderRequest

pytestmark = pytest.mark.slow

README = programs_folder() / "services" / "README.md"
FILES = re.compile(r"^`(services/\S+\.py)`\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the services with the files of the README added."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(programs_folder() / "services", tmp_path / "services", ignore=ignored)
    files = FILES.findall(README.read_text())
    assert len(files) == 4
    for name, text in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    """Put the copy before the services themselves."""
    ours = program_environment()
    return ours | {"PYTHONPATH": os.pathsep.join([str(folder), ours["PYTHONPATH"]])}


def test_its_group_and_topics_are_known(folder: Path) -> None:
    command = program_command("common.processing.declared", "services")
    told = subprocess.run(command, env=environment(folder), check=True, capture_output=True)
    declared = {one["group"]: one["topics"] for one in json.loads(told.stdout)}
    assert declared["greetings"] == ["orders", "greetings"]
    assert "fraud-customers-changelog" in declared["fraud"]


def test_it_runs(folder: Path) -> None:
    with LocalBroker() as broker:
        where = ("--bootstrap-servers", broker.bootstrap_servers)
        with (
            running(folder, "schemas.registry", *where) as registry,
            running(folder, "services.greetings", *where, "--registry-url", registry),
        ):
            greetings = asyncio.run(thank(broker.bootstrap_servers, registry))
    assert greetings == [(b"order-2", b"Thank you, ada!")]


@contextmanager
def running(folder: Path, module: str, *arguments: str) -> Iterator[str]:
    """Run a program until the block ends; give its address."""
    log = folder / f"{module}.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            program_command(module, *arguments, "--http-port", "0"),
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert " ready on http" in line, log.read_text()
            yield line.partition(" ready on ")[2].split()[0]
        finally:
            process.terminate()
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()


async def thank(bootstrap_servers: str, registry_url: str) -> list[tuple[bytes, bytes]]:
    """Write an order that is new and one that is paid; return the first text that comes of them."""
    writer = await Events(SchemaRegistryClient(registry_url)).writer("orders", "orders/order_event")
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers)
    consumer = AIOKafkaConsumer(
        "greetings",
        bootstrap_servers=bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        metadata_max_age_ms=5000,
    )
    async with producer, consumer:
        for order_id, state in (("order-1", "CREATED"), ("order-2", "PAID")):
            lines = [{"product_id": "plum", "quantity": 1, "unit_price": Decimal(2)}]
            request = OrderRequest("ada", None, lines, Decimal(2), NOON)
            event = {
                **created_event(order_id, request, None, f"00-{'1' * 32}-{'2' * 16}-01"),
                "state": state,
            }
            await producer.send_and_wait("orders", writer.encode(event), order_id.encode())
        record = await asyncio.wait_for(consumer.getone(), 60)
    return [(record.key, record.value)]
