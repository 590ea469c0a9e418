"""What a record and a transaction cost three brokers in Python calls, which no machine changes.

`python -m bench cluster-counts`, `--checkout PATH` for another tree. The three nodes share one
process and one loop, so that every call of theirs is counted; the client is librdkafka's, in
threads of its own, and is not. What the nodes do of themselves meanwhile (heartbeats, fetches that
find nothing) is counted too, and is little: the transactions follow each other without a pause.
"""

import argparse
import asyncio
import logging
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import uvloop

ROOT = Path(__file__).parent.parent.parent
ROUNDS = 150
TOPIC = "counted"


def main(arguments: list[str]) -> int:
    """Count in a process of the tree."""
    parser = argparse.ArgumentParser(prog="python -m bench cluster-counts", description=__doc__)
    parser.add_argument("--checkout", type=Path, default=ROOT, help="the tree that is counted")
    parsed = parser.parse_args(arguments)
    command = [sys.executable, __file__, "--serve", str(parsed.checkout)]
    return subprocess.run(command, cwd=parsed.checkout, check=False).returncode


class _Cluster:
    """Three nodes on the loop of this thread."""

    def __init__(self, folder: Path) -> None:
        from broker.config.broker_config import BrokerConfig
        from broker.server.node import Node, Stop

        self.loop = uvloop.new_event_loop()
        ports = _free_ports(6)
        voters = ",".join(f"{n}@127.0.0.1:{ports[n + 2]}" for n in (1, 2, 3))
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports[:3])
        opening = []
        for node_id in (1, 2, 3):
            broker, controller = ports[node_id - 1], ports[node_id + 2]
            config = BrokerConfig.from_settings(
                {
                    "process.roles": "broker,controller",
                    "node.id": str(node_id),
                    "listeners": f"PLAINTEXT://127.0.0.1:{broker},"
                    f"CONTROLLER://127.0.0.1:{controller}",
                    "controller.listener.names": "CONTROLLER",
                    "controller.quorum.voters": voters,
                    "log.dir": str(folder / str(node_id)),
                    "default.replication.factor": "3",
                    "min.insync.replicas": "2",
                    "offsets.topic.replication.factor": "3",
                    "transaction.state.log.replication.factor": "3",
                    "transaction.state.log.min.isr": "2",
                    "transaction.state.log.num.partitions": "3",
                }
            )
            opening.append(Node(config, cluster_id="counted-cluster-id-123").open(Stop()))

        async def open_all() -> None:
            async with asyncio.timeout(60):
                await asyncio.gather(*opening)

        self.loop.run_until_complete(open_all())

    def calls_of(self, work: Callable[[], None]) -> int:
        """Count the Python calls of the nodes while a thread works."""
        calls, failures = 0, []

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal calls
            calls += event == "call"

        def run() -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - passed on below
                failures.append(error)
            self.loop.call_soon_threadsafe(self.loop.stop)

        thread = threading.Thread(target=run)
        thread.start()
        sys.setprofile(count)
        self.loop.run_forever()
        sys.setprofile(None)
        thread.join()
        if failures:
            raise failures[0]
        return calls


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        servers = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [server.getsockname()[1] for server in servers]


def serve(tree: str) -> None:
    """Count and print."""
    sys.path[0] = tree
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
        cluster = _Cluster(Path(folder))
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient, NewTopic

        settings: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap, "linger.ms": 0}
        plain = Producer({**settings, "acks": "all"})
        transactional = Producer({**settings, "transactional.id": "counted"})
        failures: list[object] = []

        def delivered(error: object, message: object) -> None:
            if error is not None:
                failures.append(error)

        def prepare() -> None:
            admin = AdminClient(settings)
            for made in admin.create_topics([NewTopic(TOPIC, 1, 3)]).values():
                made.result(60)
            transactional.init_transactions(60)
            transactions(5)
            records(5)

        def records(count: int = ROUNDS) -> None:
            for _ in range(count):
                plain.produce(TOPIC, b"x" * 100, on_delivery=delivered)
                assert not plain.flush(30)

        def transactions(count: int = ROUNDS) -> None:
            for _ in range(count):
                transactional.begin_transaction()
                transactional.produce(TOPIC, b"x" * 100, on_delivery=delivered)
                transactional.commit_transaction(30)

        cluster.calls_of(prepare)
        for name, work in (("a record, acks=all", records), ("a transaction", transactions)):
            print(f"{name}: {cluster.calls_of(work) / ROUNDS:.0f} Python calls", flush=True)
        assert not failures, failures[0]


if __name__ == "__main__":
    serve(sys.argv[2])
