"""Workers that know only `compatible` beside those that sign what they ask each other (KIP-507)."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from millstream.testing import LocalBroker
from tests.lib.connect_worker import ConnectWorker, eventually

pytestmark = pytest.mark.slow

NAMES = ("one", "two")
Start = Callable[[str, str], ConnectWorker]


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as started:
        yield started


@pytest.fixture
def start(broker: LocalBroker, tmp_path: Path) -> Iterator[Start]:
    """Start a worker of a name, with a protocol."""
    told = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "workers",
        "scheduled.rebalance.max.delay.ms": "0",
        "heartbeat.interval.ms": "300",
    }
    for kind in ("config", "offset", "status"):
        told[f"{kind}.storage.topic"] = f"connect-{kind}"
        told[f"{kind}.storage.replication.factor"] = "1"
    with ExitStack() as ending:

        def start(name: str, protocol: str) -> ConnectWorker:
            worker = ConnectWorker(tmp_path, {**told, "connect.protocol": protocol}, name=name)
            ending.callback(worker.kill)
            return worker.start()

        yield start


def group(broker: LocalBroker) -> tuple[str, list[int]]:
    """Give the group's protocol and, of each member, the version of what it says of itself."""

    async def described() -> tuple[str, list[int]]:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        await admin.start()
        try:
            (answer,) = await admin.describe_consumer_groups(["workers"])
        finally:
            await admin.close()
        _, _, _, _, protocol, members, *_ = answer.groups[0]
        return protocol, [int.from_bytes(metadata[:2], "big") for *_, metadata, _ in members]

    return asyncio.run(described())


def put(worker: ConnectWorker, folder: Path, topic: str) -> None:
    """Have both connectors make tasks anew; one of them tells a leader that is not its worker."""
    for name in NAMES:
        config = {"connector.class": "FileStreamSource", "file": f"{folder}/none", "topic": topic}

        def is_put(name: str = name, config: dict[str, str] = config) -> bool:
            # While the group decides anew there may be no leader to send it on to.
            return worker.call("PUT", f"/connectors/{name}/config", config).status in (200, 201)

        eventually(is_put)
    for name in NAMES:
        eventually(lambda name=name: topic in json.dumps(tasks(worker, name)))


def tasks(worker: ConnectWorker, name: str) -> object:
    return worker.call("GET", f"/connectors/{name}/tasks").body


def connectors_are_apart(worker: ConnectWorker) -> bool:
    """Say whether both connectors and both tasks run, half of it on each of two workers."""
    shown = worker.call("GET", "/connectors?expand=status").body
    if set(shown) != set(NAMES):
        return False
    found = [shown[name]["status"] for name in NAMES]
    parts = [part for each in found for part in (each["connector"], *each["tasks"])]
    apart = {each["connector"]["worker_id"] for each in found}
    return len(apart) == 2 and [each["state"] for each in parts] == ["RUNNING"] * 4


def test_workers_go_from_compatible_to_sessioned_one_after_the_other(
    broker: LocalBroker, start: Start, tmp_path: Path
) -> None:
    first, second = start("first", "compatible"), start("second", "compatible")
    eventually(lambda: group(broker) == ("compatible", [1, 1]))
    put(first, tmp_path, "of-compatible")
    eventually(lambda: connectors_are_apart(first))

    assert second.stop() == 0
    third = start("third", "sessioned")
    # They talk as the older one can.
    eventually(lambda: group(broker) == ("compatible", [1, 1]))
    eventually(lambda: connectors_are_apart(first))
    put(third, tmp_path, "of-both")

    assert first.stop() == 0
    fourth = start("fourth", "sessioned")
    eventually(lambda: group(broker) == ("sessioned", [2, 2]))
    eventually(lambda: connectors_are_apart(fourth))
    put(fourth, tmp_path, "of-sessioned")
    unsigned = fourth.call("POST", "/connectors/one/tasks", [{"a": "b"}])
    assert (unsigned.status, "signature" in unsigned.body["message"]) == (400, True)
    assert [worker.stop() for worker in (third, fourth)] == [0, 0]
