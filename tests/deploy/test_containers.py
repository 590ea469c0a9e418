"""The containers at work. Needs Docker, so it is asked for: MILLRACE_TEST_CONTAINERS=1."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from millrace.cluster_layout import free_ports
from tests.lib.docker_compose import compose_command
from tests.lib.pipeline_processes import call
from tests.lib.waiting import until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.skipif("MILLRACE_TEST_CONTAINERS" not in os.environ, reason="not asked for"),
]

ROOT = Path(__file__).parents[2]
PORTS = ("KAFKA", "ORDERS", "REGISTRY", "BROKER_HTTP")
ORDER = {
    "customer_id": "c1",
    "lines": [{"product_id": "item-001", "quantity": 2, "unit_price": "2.55"}],
}


class Containers:
    """The compose project, under a name and on ports of its own."""

    def __init__(self) -> None:
        self.ports = dict(zip(PORTS, free_ports(), strict=False))
        command = compose_command()
        assert command is not None, "no Docker Compose here"
        self._command = [*command, "-p", f"millrace-test-{os.getpid()}"]

    @property
    def orders_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['ORDERS']}/v1/orders"

    def compose(self, *arguments: str) -> str:
        ports = {f"MILLRACE_{name}_PORT": str(port) for name, port in self.ports.items()}
        done = subprocess.run(
            [*self._command, *arguments],
            cwd=ROOT,
            env={**os.environ, **ports},
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

    def order(self) -> str:
        """Place an order and return its id when it is judged good."""
        order_id = call("POST", self.orders_url, ORDER).body["id"]
        assert self.verdict(order_id) == "VALIDATED"
        return order_id

    def verdict(self, order_id: str) -> str:
        return call("GET", f"{self.orders_url}/{order_id}/validated?timeout=30000").body["state"]


@pytest.fixture
def containers() -> Iterator[Containers]:
    containers = Containers()
    try:
        containers.compose("build")
        containers.compose("up", "-d")
        containers.compose("run", "--rm", "catalogue")
        until(lambda: containers.is_healthy("orders"))
        yield containers
    finally:
        containers.compose("down", "--volumes")


async def advertised_to_this_machine(port: int) -> list[tuple[str, int]]:
    admin = AIOKafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}")
    await admin.start()
    try:
        return [(one["host"], one["port"]) for one in (await admin.describe_cluster())["brokers"]]
    finally:
        await admin.close()


def test_orders_outlive_the_brokers_container(containers: Containers) -> None:
    before = containers.order()
    kafka_port = containers.ports["KAFKA"]
    told = asyncio.run(advertised_to_this_machine(kafka_port))
    assert told == [("127.0.0.1", kafka_port)]
    containers.compose("kill", "broker")
    containers.compose("up", "-d")
    containers.order()
    containers.compose("stop")
    assert containers.state("broker")["ExitCode"] == containers.state("orders")["ExitCode"] == 0
    containers.compose("rm", "-f")
    containers.compose("up", "-d")
    until(lambda: containers.is_healthy("orders"))
    assert containers.verdict(before) == "VALIDATED"
