"""The containers at work: `make test-containers`. They need Docker, so they are asked for."""

import asyncio
import concurrent.futures
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import Consumer, Producer

from demo.pipeline.connect import CONNECTORS
from millstream.processes.cluster_layout import free_ports
from millstream.testing.containers import MillstreamContainer
from tests.lib.docker_compose import compose_command
from tests.lib.pipeline_processes import call
from tests.lib.waiting import until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif("MILLSTREAM_TEST_CONTAINERS" not in os.environ, reason="not asked for"),
]

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "build" / "containers.log"
"""What all of them said, of the last run."""
BROKERS = ("broker-1", "broker-2", "broker-3")
PORTS = (
    *(f"KAFKA_{number}" for number in (1, 2, 3)),
    *(f"BROKER_{number}_HTTP" for number in (1, 2, 3)),
    "ORDERS",
    "REGISTRY",
    "CONNECT",
)
ORDER = {
    "customer_id": "c1",
    "lines": [{"product_id": "item-001", "quantity": 2, "unit_price": "2.55"}],
}
ENDED = ("PAID", "FAILED")
END_SECONDS = 240.0
"""A broker and a service have to be started again meanwhile, each in a container."""


class Containers:
    """The compose project, under a name and on ports of its own."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.ports = dict(zip(PORTS, free_ports(), strict=False))
        command = compose_command()
        if command is None:
            pytest.skip("no Docker Compose here")
        self._command = [*command, "-p", f"millstream-test-{os.getpid()}"]
        self._settings = settings

    @property
    def orders_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['ORDERS']}/v1/orders"

    def compose(self, *arguments: str) -> str:
        ports = {f"MILLSTREAM_{name}_PORT": str(port) for name, port in self.ports.items()}
        done = subprocess.run(
            [*self._command, *arguments],
            cwd=ROOT,
            env={**os.environ, **self._settings, **ports},
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def state(self, service: str) -> dict[str, object]:
        container = self.compose("ps", "-a", "-q", service).strip()
        shown = subprocess.run(["docker", "inspect", container], capture_output=True, check=True)
        return json.loads(shown.stdout)[0]["State"]

    def is_healthy(self, service: str) -> bool:
        return self.state(service)["Health"]["Status"] == "healthy"

    def order(self, key: str | None = None) -> str:
        """Place an order, again with the same key while nobody can take it; return its id."""
        headers = {} if key is None else {"Idempotency-Key": key}
        answers = []

        def is_taken() -> bool:
            answers.append(call("POST", self.orders_url, ORDER, headers))
            return answers[-1].status != 503

        until(is_taken)
        assert answers[-1].status in (200, 201), answers[-1]
        return str(answers[-1].body["id"])

    def state_of_order(self, order_id: str) -> str:
        return str(call("GET", f"{self.orders_url}/{order_id}").body.get("state"))

    def found(self) -> Counter[str]:
        """Return the states of all orders that search finds, page by page."""
        states: Counter[str] = Counter()
        place = ""
        while True:
            page = call("GET", f"{self.orders_url}?customer=c1&limit=100{place}").body
            states.update(order["state"] for order in page.get("orders", ()))
            if not page.get("next"):
                return states
            place = f"&cursor={page['next']}"

    def connectors(self) -> dict[str, list[str]]:
        """Return the states of each connector, its tasks' too, as its worker tells them."""
        url = f"http://127.0.0.1:{self.ports['CONNECT']}/connectors?expand=status"
        told = {name: each["status"] for name, each in call("GET", url).body.items()}
        return {
            name: [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
            for name, status in told.items()
        }

    def parquet_files(self) -> int:
        listed = "find /data/files -name '*.parquet' | wc -l"
        return int(self.compose("exec", "-T", "connect", "sh", "-c", listed))

    def mails(self) -> int:
        listed = self.compose("exec", "-T", "email", "sh", "-c", "ls /data/mailbox | wc -l")
        return int(listed)


@pytest.fixture(scope="module")
def containers(docker: dict[str, str]) -> Iterator[Containers]:
    containers = Containers(docker)
    try:
        containers.compose("build")
        containers.compose("up", "-d")
        containers.compose("run", "--rm", "catalogue")
        until(lambda: containers.is_healthy("orders"))
        yield containers
    finally:
        LOGS.write_text(containers.compose("logs", "--no-color", "--timestamps"))
        containers.compose("down", "--volumes")


async def advertised_to_this_machine(port: int) -> list[tuple[str, int]]:
    admin = AIOKafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}")
    await admin.start()
    try:
        return [(one["host"], one["port"]) for one in (await admin.describe_cluster())["brokers"]]
    finally:
        await admin.close()


def test_a_user_of_kafka_container_changes_the_import(containers: Containers) -> None:
    # The image is there since `containers` has built it.
    with MillstreamContainer().with_kraft() as kafka:
        servers = {"bootstrap.servers": kafka.get_bootstrap_server(), "log_level": 0}
        rule = kafka.control.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER").times(2)
        producer = Producer(servers)
        producer.produce("greetings", b"hello")
        assert producer.flush(30) == 0
        assert rule.hits == 2
        consumer = Consumer({**servers, "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe(["greetings"])
        record = consumer.poll(30)
        assert record is not None
        assert record.value() == b"hello"
        consumer.close()


def test_every_order_ends_once_though_a_service_and_a_broker_are_killed(
    containers: Containers,
) -> None:
    told = asyncio.run(advertised_to_this_machine(containers.ports["KAFKA_1"]))
    assert sorted(told) == sorted(
        ("127.0.0.1", containers.ports[f"KAFKA_{number}"]) for number in (1, 2, 3)
    )
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        placing = [pool.submit(containers.order, f"order-{number}") for number in range(500)]
        for count, service in ((100, "fraud"), (250, "broker-2")):
            placing[count].result()
            containers.compose("kill", service)
            containers.compose("up", "-d", service)
        ids = [each.result() for each in placing]
    assert len(set(ids)) == 500
    until(lambda: sum(containers.found()[state] for state in ENDED) == 500, END_SECONDS)
    states = Counter(map(containers.state_of_order, ids))
    assert states == containers.found()
    assert sum(states[state] for state in ENDED) == 500
    assert states["PAID"] > 0
    # One mail for each order and final state, whoever was killed when.
    until(lambda: containers.mails() >= 500)
    assert containers.mails() == 500


def test_the_worker_brings_the_catalogue_in_and_orders_out(containers: Containers) -> None:
    # That products came in by it was waited for by `catalogue`.
    running = {name: ["RUNNING", "RUNNING"] for name in CONNECTORS}
    until(lambda: containers.connectors() == running)
    order = containers.order("for-a-file")
    until(lambda: containers.state_of_order(order) in ENDED)
    until(lambda: containers.parquet_files() > 0)


def test_orders_outlive_all_containers(containers: Containers) -> None:
    before = containers.order("before")
    until(lambda: containers.state_of_order(before) in ENDED)
    containers.compose("stop")
    assert {service: containers.state(service)["ExitCode"] for service in (*BROKERS, "orders")} == {
        **dict.fromkeys(BROKERS, 0),
        "orders": 0,
    }
    containers.compose("rm", "-f")
    containers.compose("up", "-d")
    until(lambda: containers.is_healthy("orders"))
    assert containers.state_of_order(before) in ENDED
