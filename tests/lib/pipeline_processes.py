"""The pipeline as processes, for end-to-end tests: start, kill, ask, and look into the topics."""

import asyncio
import json
import signal
import sqlite3
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Container, Iterable
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import ConsumerRecord, TopicPartition

from common.credentials.access import kafka_access
from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.topics import describe_topics
from common.registry import loader
from common.registry.wire import EventReader, EventWriter, schema_id_of
from millstream.launch import program_environment
from millstream.processes.cluster_layout import free_ports
from millstream.processes.forked_process import SERVICES as FORKED_SERVICES
from millstream.processes.forked_process import ForkServer

JUDGES = ("orders", "fraud", "inventory", "order_details", "aggregator")
"""What it takes to judge an order; nobody asks for money."""
SERVICES = (*JUDGES, "payments", "email", "search")
ADMIN = "admin"
BOOKS, MAILBOX, INDEX = "books.sqlite", "mailbox", "orders.sqlite"
"""What services keep in files, in the pipeline's folder."""


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]


def call(method: str, url: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
    """Make one HTTP request; an error status is an answer like any other."""
    request = urllib.request.Request(
        url,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **(headers or {})},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return Answer(response.status, json.loads(response.read()), dict(response.headers))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, json.loads(error.read()), dict(error.headers))


class Program:
    """One program as a process, with its log in a file."""

    def __init__(
        self, log_file: Path, module: str, *arguments: str, server: ForkServer = FORKED_SERVICES
    ) -> None:
        self._log_file = log_file
        with log_file.open("ab") as log:
            self._process = server.start(
                module, arguments, program_environment(), log, is_bound=True
            )
        self._process.stdin.close()

    def wait_ready(self) -> str:
        """Return the address it says it is ready on."""
        line = self._process.stdout.readline()
        assert " ready on " in line, self._log_file.read_text()
        return line.strip().partition(" ready on ")[2]

    def end(self, *, kill: bool = False) -> None:
        if self._process.poll() is None:
            if kill:
                self._process.kill()
            else:
                self._process.terminate()
        self._process.wait(60)
        self._process.stdout.close()

    def poll(self) -> int | None:
        """Return the exit status; None while it runs."""
        return self._process.poll()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        return self._process.returncode


class Pipeline:
    """Registry and services against one Kafka. Instances are named `orders`, `orders-2`, ..."""

    def __init__(
        self,
        bootstrap_servers: str,
        folder: Path,
        *,
        session_ms: int = 6_000,
        client_file: Callable[[str], str] = lambda _: "",
    ) -> None:
        """A session of less than 6 s must be allowed by the brokers.

        `client_file` returns the file of client settings of a program, of a secured cluster; of
        ADMIN the test's own.
        """
        self.bootstrap_servers = bootstrap_servers
        self._client_file = client_file
        self.kafka = kafka_access(bootstrap_servers, client_file(ADMIN))
        self._session = ("--session-timeout-ms", str(session_ms))
        self.programs: dict[str, Program] = {}
        self.urls: dict[str, str] = {}
        self.folder = folder
        self._commands: dict[str, tuple[str, ...]] = {}
        self._schemas: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Services are told its address, so a new one must be found at the same.
        self.add("registry", "schemas.registry", "--http-port", str(next(free_ports())))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for program in reversed(self.programs.values()):
            program.end(kill=True)

    def start(self, *names: str, arguments: tuple[str, ...] = ()) -> None:
        """Start instances side by side and return when all are ready."""
        for name in names:
            service = name.partition("-")[0]
            registry = ("--registry-url", self.urls["registry"])
            self._begin(name, f"services.{service}", *registry, *self._session, *arguments)
        for name in names:
            self._await(name)

    def start_all(self, *arguments: str) -> None:
        """Start every service, each with what it keeps in the pipeline's folder."""
        search = str(next(free_ports()))
        own = {
            # A machine that does much else holds up an acknowledgement for seconds.
            "orders": (
                *("--search-url", f"http://127.0.0.1:{search}"),
                *("--produce-timeout-ms", "15000"),
            ),
            "payments": ("--provider-books", str(self.folder / BOOKS)),
            "email": ("--mailbox", str(self.folder / MAILBOX)),
            "search": ("--index", str(self.folder / INDEX), "--http-port", search),
        }
        registry = ("--registry-url", self.urls["registry"])
        for name in SERVICES:
            told = (*registry, *self._session, *own.get(name, ()), *arguments)
            self._begin(name, f"services.{name}", *told)
        for name in SERVICES:
            self._await(name)

    def add(self, name: str, module: str, *arguments: str) -> None:
        """Start any other program of the project, and return when it is ready."""
        self._begin(name, module, *arguments)
        self._await(name)

    def _begin(self, name: str, module: str, *arguments: str) -> None:
        self._commands[name] = (module, *arguments)
        self.programs[name] = Program(self.folder / f"{name}.log", *self.command(name))

    def command(self, name: str) -> list[str]:
        """Return the module and the arguments that an instance was started with."""
        module, *arguments = self._commands[name]
        where = ["--bootstrap-servers", self.bootstrap_servers]
        file = self._client_file(name.replace("_", "-"))
        if file:
            where += ["--command-config", file]
        return [module, *where, *arguments]

    def _await(self, name: str) -> None:
        self.urls[name] = self.programs[name].wait_ready()

    def end(self, name: str, *, kill: bool = False) -> Program:
        program = self.programs.pop(name)
        program.end(kill=kill)
        return program

    def restart(self, *names: str, kill: bool) -> None:
        for name in names:
            self.end(name, kill=kill)
        self.start_again(*names)

    def start_again(self, *names: str) -> None:
        """Start instances that were ended side by side, with the arguments they had."""
        for name in names:
            self._begin(name, *self._commands[name])
        for name in names:
            self._await(name)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    # -- REST

    def post(self, order: dict[str, Any], name: str = "orders", **headers: str) -> Answer:
        return call("POST", self.urls[name] + "/v1/orders", order, headers)

    def get(self, path: str, name: str = "orders") -> Answer:
        return call("GET", self.urls[name] + path)

    def validated(self, order_id: str, name: str = "orders", timeout_ms: int = 30_000) -> Answer:
        return self.get(f"/v1/orders/{order_id}/validated?timeout={timeout_ms}", name)

    # -- files

    def charges(self) -> dict[str, tuple[Decimal, bool]]:
        """Return by order the amount in the payment provider's books, and whether it went back."""
        with closing(sqlite3.connect(f"file:{self.folder / BOOKS}?mode=ro", uri=True)) as books:
            rows = books.execute("SELECT order_id, amount, is_refunded FROM charges")
            return {one: (Decimal(amount), bool(back)) for one, amount, back in rows}

    def documents(self) -> dict[str, tuple[int, str]]:
        """Return version and state of every order in the search index."""
        with closing(sqlite3.connect(f"file:{self.folder / INDEX}?mode=ro", uri=True)) as index:
            rows = index.execute("SELECT order_id, version, state FROM orders")
            return {order_id: (version, state) for order_id, version, state in rows}

    # -- topics

    def put_customers(self, customer_ids: Iterable[str]) -> None:
        """Make these customers known, each with an address for mails."""
        customer = self.writer("customers", "customers/customer", 2)
        about = {"country": None, "level": None, "updated_at": datetime.now(UTC)}
        records: list[tuple[str, str, bytes]] = []
        for one in customer_ids:
            event = {"customer_id": one, "name": one, "email": f"{one}@example.com", **about}
            records.append(("customers", one, customer.encode(event)))
        self.produce(records)

    def put_stock(self, stock: dict[str, int]) -> None:
        """Make these products known, with this much of each in the warehouse."""
        now = datetime.now(UTC)
        product = self.writer("products", "catalogue/product")
        level = self.writer("warehouse-inventory", "inventory/stock_level")
        records: list[tuple[str, str, bytes]] = []
        for product_id, quantity in stock.items():
            about = {"product_id": product_id, "updated_at": now}
            records += [
                ("products", product_id, product.encode({**about, "description": "x"})),
                ("warehouse-inventory", product_id, level.encode({**about, "quantity": quantity})),
            ]
        self.produce(records)

    def writer(self, topic: str, schema_name: str, version: int = 1) -> EventWriter:
        schema = loader.load(schema_name, version)
        url = f"{self.urls['registry']}/subjects/{topic}-value/versions"
        answer = call("POST", url, {"schema": json.dumps(schema)})
        return EventWriter(schema, answer.body["id"])

    def produce(self, records: Iterable[tuple[str, str, bytes]]) -> None:
        async def run() -> None:
            producer = AIOKafkaProducer(**self.kafka.aiokafka(), acks="all")
            await producer.start()
            try:
                for future in [
                    await producer.send(topic, value, key.encode()) for topic, key, value in records
                ]:
                    await future
            finally:
                await producer.stop()

        asyncio.run(run())

    def read(self, topic: str) -> list[ConsumerRecord]:
        """Return every committed record of a topic, partition by partition."""

        async def run() -> list[ConsumerRecord]:
            consumer = AIOKafkaConsumer(
                **self.kafka.aiokafka(),
                auto_offset_reset="earliest",
                isolation_level="read_committed",
            )
            await consumer.start()
            try:
                partitions = [TopicPartition(topic, each) for each in numbers]
                ends = await consumer.end_offsets(partitions)
                consumer.assign(partitions)
                await consumer.seek_to_beginning()
                found: list[ConsumerRecord] = []
                while any([await consumer.position(p) < end for p, end in ends.items()]):
                    # Nobody is told of the ends of transactions, with which most topics end.
                    for records in (await consumer.getmany(timeout_ms=20)).values():
                        found += records
                return sorted(found, key=lambda one: (one.partition, one.offset))
            finally:
                await consumer.stop()

        access = self.kafka.bootstrap_servers, self.kafka.security
        with AdminClient(AdminSettings.of(*access)) as admin:
            (found,) = describe_topics(admin, [topic])
        numbers = [each.partition for each in found.partitions]
        return asyncio.run(run())

    def reader(self, schema_name: str) -> EventReader:
        return EventReader(loader.load(schema_name))

    def decode(self, reader: EventReader, value: bytes) -> dict[str, Any]:
        """Decode an event, whatever schema it was written with."""
        schema_id = schema_id_of(value)
        if schema_id not in self._schemas:
            answer = call("GET", f"{self.urls['registry']}/schemas/ids/{schema_id}")
            self._schemas[schema_id] = json.loads(answer.body["schema"])
        reader.learn(schema_id, self._schemas[schema_id])
        return reader.decode(value)

    def events(
        self, topic: str, schema_name: str, order_ids: Container[str] | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        """Return a topic's events by order id, each in its order; by default of all orders."""
        reader = self.reader(schema_name)
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for record in self.read(topic):
            if order_ids is None or record.key.decode() in order_ids:
                event = self.decode(reader, record.value)
                found[event["order_id"]].append(event)
        return found
