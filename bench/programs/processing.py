"""The choice of a client for a service's processing: consume, produce, commit in one transaction.

A copier from six partitions to six others, three nodes, three replicas; records are sent at a fixed
rate (open loop), and the latency is from the due time of a record until a read_committed consumer
has its copy. The copiers do the same with each client:

    ours-2, ours-1     transactions, transactions of protocol 2 and 1
    aiokafka           its own transactions; no fencing by the generation of the group
    confluent          confluent-kafka's blocking classes, driven from one thread
    confluent-aio      its asyncio classes
"""

import argparse
import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import Consumer, Producer
from confluent_kafka.aio import AIOConsumer, AIOProducer

from bench.lib.node_clusters import NodeCluster, makers
from common.credentials.access import KafkaAccess
from common.kafka.transactions.producer import TransactionalProducer
from common.kafka.transactions.rules import Member
from common.processing.outbox import Outgoing

PARTITIONS = 6
RATES = (100, 400, 1000)
SECONDS = 8.0
SIZE_BYTES = 300
CLIENTS = ("ours-2", "ours-1", "aiokafka", "confluent", "confluent-aio")
_BATCH = 500
_TIMEOUT_MS = 10_000


async def copy_with_aiokafka(bootstrap: str, client: str) -> None:
    """Copy without end, with aiokafka."""
    consumer = AIOKafkaConsumer(
        "source",
        bootstrap_servers=bootstrap,
        group_id=client,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    await consumer.start()
    commit = await (_own if client == "aiokafka" else _ours)(bootstrap, client, consumer)
    while True:
        batches = await consumer.getmany(timeout_ms=250, max_records=_BATCH)
        if batches:
            records = [one for found in batches.values() for one in found]
            await commit(records, {p: found[-1].offset + 1 for p, found in batches.items()})


async def _ours(bootstrap: str, client: str, consumer: Any) -> Any:
    producer = TransactionalProducer(KafkaAccess(bootstrap), client, timeout_ms=_TIMEOUT_MS)
    await producer.start(["target"])
    producer._protocol = int(client[-1])  # noqa: SLF001 - to measure both in one cluster
    await producer.take(range(PARTITIONS))

    async def commit(records: list[Any], offsets: dict[TopicPartition, int]) -> None:
        coordinator = consumer._coordinator  # noqa: SLF001 - as in the processor
        member = Member(client, coordinator.generation, coordinator.member_id)
        copies = [Outgoing("target", one.key, one.value, list(one.headers)) for one in records]
        await producer.commit(copies, offsets, member)

    return commit


async def _own(bootstrap: str, client: str, consumer: Any) -> Any:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=client)
    await producer.start()

    async def commit(records: list[Any], offsets: dict[TopicPartition, int]) -> None:
        async with producer.transaction():
            for one in records:
                await producer.send("target", one.value, one.key, headers=list(one.headers))
            await producer.send_offsets_to_transaction(offsets, client)

    return commit


def _settings(bootstrap: str, client: str) -> tuple[dict[str, Any], dict[str, Any]]:
    consumer = {
        "bootstrap.servers": bootstrap,
        "group.id": client,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    return consumer, {"bootstrap.servers": bootstrap, "transactional.id": client, "linger.ms": 0}


def copy_with_confluent(bootstrap: str, client: str) -> None:
    """Copy without end in one thread."""
    consumer_settings, producer_settings = _settings(bootstrap, client)
    consumer, producer = Consumer(consumer_settings), Producer(producer_settings)
    producer.init_transactions()
    consumer.subscribe(["source"])
    while True:
        first = consumer.poll(0.25)
        if first is None:
            continue
        producer.begin_transaction()
        for one in [first, *consumer.consume(_BATCH - 1, 0)]:
            producer.produce("target", one.value(), one.key(), headers=one.headers())
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )
        producer.commit_transaction()


async def copy_with_confluent_aio(bootstrap: str, client: str) -> None:
    """Copy without end with the asyncio classes."""
    consumer_settings, producer_settings = _settings(bootstrap, client)
    consumer, producer = AIOConsumer(consumer_settings), AIOProducer(producer_settings)
    await producer.init_transactions()
    await consumer.subscribe(["source"])
    while True:
        first = await consumer.poll(0.25)
        if first is None:
            continue
        await producer.begin_transaction()
        for one in [first, *await consumer.consume(_BATCH - 1, 0)]:
            # The asyncio `produce` refuses headers.
            plain = producer._producer  # noqa: SLF001
            plain.produce("target", one.value(), one.key(), headers=one.headers())
        await producer.send_offsets_to_transaction(
            await consumer.position(await consumer.assignment()),
            await consumer.consumer_group_metadata(),
        )
        await producer.commit_transaction()


class Load:
    """Sends records and measures the time until each is read."""

    def __init__(self, bootstrap: str) -> None:
        self.latencies: list[float] = []
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self._reader = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"}
        )
        self._reader.subscribe(["target"])
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while not self._is_over.is_set():
            for message in self._reader.consume(1, 0.2):
                self.latencies.append(time.monotonic() - float(message.key() or b""))
        self._reader.close()

    def offer(self, rate: float, seconds: float) -> list[float]:
        """Send records at a fixed rate; return their latencies in order."""
        self.latencies.clear()
        begin = time.monotonic()
        count = int(rate * seconds)
        for number in range(count):
            due_at = begin + number / rate
            time.sleep(max(0.0, due_at - time.monotonic()))
            headers: dict[str, str | bytes | None] = {"traceparent": b"0" * 55}
            key = repr(due_at).encode()
            self._producer.produce("source", b"x" * SIZE_BYTES, key, headers=headers)
            self._producer.poll(0)
        self._producer.flush()
        deadline = time.monotonic() + 60
        while len(self.latencies) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(self.latencies) == count, (len(self.latencies), count)
        return sorted(self.latencies)

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()


def measure(cluster: NodeCluster, client: str, rates: Iterable[int], seconds: float) -> None:
    """Print one row for each rate."""
    for topic in ("source", "target"):
        cluster.create_topic(topic, PARTITIONS, 3)
    command = [sys.executable, "-m", "bench.programs.processing", "--copy", client]
    copier = subprocess.Popen([*command, "--bootstrap", cluster.bootstrap])
    load = Load(cluster.bootstrap)
    try:
        load.offer(100, 3)
        for rate in rates:
            before = cluster.cpu_seconds(), _cpu_seconds(copier.pid)
            found = load.offer(rate, seconds)
            after = cluster.cpu_seconds(), _cpu_seconds(copier.pid)
            nodes, own = (1000 * (b - a) / len(found) for a, b in zip(before, after, strict=True))
            p50, p99 = (1000 * found[int(len(found) * share)] for share in (0.5, 0.99))
            print(
                f"| {client} | {rate} | {own:.2f} | {nodes:.2f} | {p50:.1f} | {p99:.1f} |",
                flush=True,
            )
    finally:
        copier.kill()
        copier.wait()
        load.close()


def _cpu_seconds(process_id: int) -> float:
    with open(f"/proc/{process_id}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main(arguments: list[str] | None = None) -> int:
    """Measure every client on a new cluster."""
    parser = argparse.ArgumentParser(prog="python -m bench processing", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--clients", nargs="+", default=CLIENTS, choices=CLIENTS)
    parser.add_argument("--rates", nargs="+", type=int, default=RATES)
    parser.add_argument("--copy", choices=CLIENTS, help=argparse.SUPPRESS)
    parser.add_argument("--bootstrap", help=argparse.SUPPRESS)
    parsed = parser.parse_args(arguments)
    if parsed.copy == "confluent":
        copy_with_confluent(parsed.bootstrap, parsed.copy)
    elif parsed.copy == "confluent-aio":
        asyncio.run(copy_with_confluent_aio(parsed.bootstrap, parsed.copy))
    elif parsed.copy:
        asyncio.run(copy_with_aiokafka(parsed.bootstrap, parsed.copy))
    print("| client | records/s | CPU, ms a record | of the nodes | p50, ms | p99, ms |")
    print("|---|---|---|---|---|---|", flush=True)
    for client in parsed.clients:
        for make in makers(None, 3, {"millstream"}):
            with make() as cluster:
                measure(cluster, client, parsed.rates, parsed.seconds)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
