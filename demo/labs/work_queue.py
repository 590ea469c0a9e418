"""Walk: a share group as a work queue, with more workers than partitions.

Paid orders are packed by workers that are killed, and one order cannot be packed at all.
"""

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, NamedTuple, Self

from confluent_kafka import Consumer, Producer, TopicPartition

from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import Resource, ResourceType, alter
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.share_groups import describe_share_groups
from common.kafka.admin.topics import create_topic
from common.kafka.errors import KafkaError
from demo.labs.mirror_orders import order_producer, require_written
from demo.labs.mirror_parts import QUIET
from demo.labs.programs import run_program, start_program
from demo.labs.steps import StepFailedError, Steps
from demo.labs.work_orders import (
    BROKEN,
    DEAD_LETTERS,
    DELIVERY_LIMIT,
    GROUP,
    HEAVY,
    PARTITIONS,
    PLAIN,
    TOPIC,
    Order,
)
from millstream.testing import LocalBroker

WORKERS: Final = 5
ORDERS: Final = 60
TOOL_SECONDS: Final = 60.0


class Done(NamedTuple):
    """What a worker has told."""

    worker: int
    what: str
    order: int
    delivery: int


class Workers:
    """The processes of the workers, and what they have told, during a `with` block."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._told: list[Done] = []
        self._threads: list[threading.Thread] = []

    def start(self, count: int) -> None:
        """Start so many workers."""
        for number in range(1, count + 1):
            process = start_program(
                "demo.labs.packing_worker", self._servers, stderr=subprocess.DEVNULL
            )
            self._processes[number] = process
            thread = threading.Thread(target=self._read, args=(number, process), daemon=True)
            thread.start()
            self._threads.append(thread)

    def kill(self, number: int) -> None:
        """Kill a worker, which tells nobody."""
        process = self._processes[number]
        process.kill()
        process.wait()

    def told(self, what: str, order: int | None = None) -> list[Done]:
        """Return what all have told of one kind, of one order or of all."""
        return [one for one in list(self._told) if one.what == what and order in {None, one.order}]

    def _read(self, number: int, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            found = json.loads(line)
            self._told.append(Done(number, found["what"], found["order"], found["delivery"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
        for thread in self._threads:
            thread.join()
        for process in self._processes.values():
            assert process.stdout is not None
            process.stdout.close()


class WorkQueue:
    """The walk; `walk` raises StepFailedError at the first step that fails."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._broker = LocalBroker(is_testing=False)
        self._written: list[Order] = []

    def walk(self) -> None:
        """Do all steps, and remove the broker at the end."""
        try:
            with self._steps.step("start a node, broker and controller"):
                self._broker.start()
            self._create()
            with Workers(self._broker.bootstrap_servers) as workers:
                self._share_out(workers)
                self._kill_one(workers)
                self._set_aside(workers)
                self._count(workers)
            self._describe()
        finally:
            self._broker.close()

    def _create(self) -> None:
        title = f"create topic {TOPIC} with {PARTITIONS} partitions"
        with self._steps.step(title), _refused(), AdminClient(self._settings) as admin:
            create_topic(admin, TOPIC, partition_count=PARTITIONS)
            create_topic(admin, DEAD_LETTERS, partition_count=1)
        title = f"share group {GROUP} begins with the first order, and delivers each "
        with self._steps.step(f"{title}{DELIVERY_LIMIT} times at most"), _refused():
            changes = {
                "share.auto.offset.reset": "earliest",
                "share.delivery.count.limit": str(DELIVERY_LIMIT),
            }
            with AdminClient(self._settings) as admin:
                alter(admin, {Resource(ResourceType.GROUP, GROUP): changes})

    def _share_out(self, workers: Workers) -> None:
        with self._steps.step(f"start {WORKERS} workers, more than there are partitions"):
            workers.start(WORKERS)
            with _refused(), AdminClient(self._settings) as admin:
                self._steps.wait_for(lambda: _without_partitions(admin))
        with self._steps.step(f"write {ORDERS} paid orders; every worker packs some of them"):
            self._write(ORDERS)
            self._steps.wait_for(lambda: self._unpacked(workers))
        shares = Counter(one.worker for one in workers.told("packs"))
        if len(shares) < WORKERS:
            raise StepFailedError(f"only workers {sorted(shares)} have packed orders")
        for worker, count in sorted(shares.items()):
            self._steps.show(f"      worker {worker} has packed {count} orders")

    def _kill_one(self, workers: Workers) -> None:
        with self._steps.step("write an order that keeps a worker busy for very long"):
            heavy = self._write(1, HEAVY)
            self._steps.wait_for(
                lambda: "" if workers.told("takes", heavy) else "no worker has taken it"
            )
        (taken,) = workers.told("takes", heavy)
        with self._steps.step(f"kill worker {taken.worker}, which has it (kill -9)"):
            workers.kill(taken.worker)
        with self._steps.step("the order is given to another worker, which packs it"):
            self._steps.wait_for(lambda: self._unpacked(workers))
        (packed,) = workers.told("packs", heavy)
        self._steps.show(
            f"      worker {packed.worker} has packed it: it was delivery {packed.delivery}"
        )

    def _set_aside(self, workers: Workers) -> None:
        with self._steps.step("write an order that nobody can pack, and 20 more"):
            broken = self._write(1, BROKEN)
            self._write(20)
        with self._steps.step(f"after {DELIVERY_LIMIT} deliveries it is in {DEAD_LETTERS}"):
            self._steps.wait_for(
                lambda: "" if workers.told("sets-aside", broken) else "it is not set aside"
            )
        tries = [one.worker for one in workers.told("fails", broken)]
        (last,) = workers.told("sets-aside", broken)
        self._steps.show(
            f"      workers {', '.join(map(str, tries))} could not pack it and gave it back, "
            f"worker {last.worker} has set it aside"
        )
        dead = self._dead_letters()
        if [order.number for order in dead] != [broken]:
            raise StepFailedError(f"{DEAD_LETTERS} has {dead}")

    def _count(self, workers: Workers) -> None:
        with self._steps.step("all other orders are packed, each of them once"):
            self._steps.wait_for(lambda: self._unpacked(workers))
        packed = Counter(one.order for one in workers.told("packs"))
        again = [order for order, count in packed.items() if count > 1]
        if again:
            raise StepFailedError(f"orders {again} were packed more than once")
        self._steps.show(f"      {len(packed)} orders packed, 1 set aside, none lost")

    def _describe(self) -> None:
        at = self._broker.bootstrap_servers
        command = ["share-groups", "--bootstrap-server", at, "--describe", "--group", GROUP]
        with self._steps.step(f"share group {GROUP} has no lag"):
            self._steps.wait_for(lambda: _lacking_in(self._run(*command)))
        self._steps.show(self._run(*command))

    # The actions of the steps.

    @property
    def _settings(self) -> AdminSettings:
        return AdminSettings.of(self._broker.bootstrap_servers)

    def _write(self, count: int, kind: str = PLAIN) -> int:
        """Write orders, each in a batch of its own, and return the number of the last."""
        producer: Producer = order_producer(self._broker.bootstrap_servers)
        for _ in range(count):
            order = Order(len(self._written), kind)
            self._written.append(order)
            producer.produce(TOPIC, order.encoded(), partition=order.number % PARTITIONS)
            require_written(producer)
        return self._written[-1].number

    def _unpacked(self, workers: Workers) -> str:
        packed = {one.order for one in workers.told("packs")}
        wanted = {order.number for order in self._written if order.kind != BROKEN}
        left = sorted(wanted - packed)
        return f"orders {', '.join(map(str, left[:5]))} are not packed" if left else ""

    def _dead_letters(self) -> list[Order]:
        consumer = Consumer(
            {
                "bootstrap.servers": self._broker.bootstrap_servers,
                "group.id": f"{GROUP}-dead-letters",
                "enable.auto.commit": False,
                "logger": QUIET,
            }
        )
        try:
            consumer.assign([TopicPartition(DEAD_LETTERS, 0, 0)])
            messages = consumer.consume(2, timeout=2.0)
        finally:
            consumer.close()
        return [Order.parse(one.value() or b"") for one in messages if one.error() is None]

    def _run(self, *command: str) -> str:
        done = run_program("broker", *command, timeout_seconds=TOOL_SECONDS)
        if done.returncode:
            raise StepFailedError((done.stdout + done.stderr).strip())
        return done.stdout.rstrip()


@contextmanager
def _refused() -> Iterator[None]:
    """Raise StepFailedError where the broker refuses a request."""
    try:
        yield
    except KafkaError as error:
        raise StepFailedError(str(error)) from error


def _without_partitions(admin: AdminClient) -> str:
    """Return a text about workers that get no orders yet; "" if there are none."""
    found = describe_share_groups(admin, [GROUP])[GROUP]
    members = [] if isinstance(found, KafkaError) else found.members
    count = sum(bool(member.assignment) for member in members)
    return "" if count == WORKERS else f"{count} of {WORKERS} workers have partitions"


def _lacking_in(described: str) -> str:
    """Return a text about partitions with a lag; "" if there are none."""
    rows = [line.split() for line in described.splitlines() if line.startswith(f"{GROUP} ")]
    late = [row[2] for row in rows if row[-1] != "0"]
    return f"partitions {', '.join(late)} have a lag" if late else ""
