"""The console on a large cluster: `python -m bench console`.

One node has 10,000 topics of three partitions, 1,000 groups, and a topic of a million records of
100 bytes. Measured are the start, the memory at rest, every page with nothing remembered from the
one before, a search through all records, one whose client goes away, and 1,000 browsers that watch
one topic. Every answer is checked. The times are those of a client; the load of the machine is
printed with them.
"""

import argparse
import asyncio
import json
import os
import time
import urllib.request
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import Any, NamedTuple

import aiohttp
from confluent_kafka import Producer

from bench.lib.first_record import wait_for_first_record
from bench.lib.results import spread
from bench.lib.servers import ROOT, Millstream, Server
from common.credentials.access import kafka_access
from common.kafka.admin.client import AdminClient, To, raise_for
from common.kafka.admin.group_offsets import set_offsets
from common.kafka.admin.topic_requests import creatable_topic
from common.kafka.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from common.kafka.topics import TopicPartition
from explain.asking.questions import admin_client

TOPICS, GROUPS, RECORDS, VIEWERS, WATCHED = 10_000, 1_000, 1_000_000, 1_000, 50
PARTITIONS = 3
TOPICS_A_REQUEST = 500
LARGE = "t-00000"
FORGOTTEN_SECONDS = 2.2
"""The console remembers answers for two seconds."""
REST_SECONDS = 2.0
MEGABYTE = 1_000_000
GOAL_SECONDS = 1.0


class Console(Server):
    """A console as a process."""

    name = "console"

    def __init__(self, bootstrap_servers: str) -> None:
        self._of = bootstrap_servers

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        python = str(ROOT / ".venv/bin/python")
        where = ["--bootstrap-server", self._of, "--port", str(self.port)]
        return [python, "-P", "-m", "millstream", "console", *where]

    def wait_until_ready(self) -> float:
        """Return the seconds from the start to the first answer of the cluster."""
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/api/overview", timeout=5) as answer:
                    assert json.load(answer)["brokers"] == 1
                    return time.monotonic() - self.started_at
            except OSError:
                time.sleep(0.01)


def fill(client: AdminClient, bootstrap: str, topic_count: int) -> None:
    """Create topics, groups and records."""
    names = [f"t-{number:05}" for number in range(topic_count)]
    for at in range(0, topic_count, TOPICS_A_REQUEST):
        topics = [creatable_topic(name, partition_count=PARTITIONS, replication_factor=1)
                  for name in names[at : at + TOPICS_A_REQUEST]]  # fmt: skip
        request = CreateTopicsRequest(topics=topics, timeout_ms=60_000)
        for each in client.ask(request, CreateTopicsResponse, To.CONTROLLER).topics:
            raise_for(each.error_code, each.error_message)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in range(RECORDS):
        while True:
            try:
                producer.produce(LARGE, f'{{"id": {number}, "text": "{"x" * 70}"}}', f"k{number}")
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0
    for number in range(GROUPS):
        topic = names[number * 7 % topic_count]
        offsets = {TopicPartition(topic, each): 0 for each in range(PARTITIONS)}
        set_offsets(client, f"g-{number:04}", offsets)


class Page(NamedTuple):
    """An address, and what its answer has to have."""

    path: str
    key: str
    wanted: Any


def pages(topic_count: int) -> list[Page]:
    """Return the pages whose answers grow with the cluster, and some that do not."""
    last = -(-topic_count // 50)
    return [
        Page("/api/topics", "count", topic_count + 1),
        Page(f"/api/topics?page={last}", "count", topic_count + 1),
        Page("/api/topics?q=0777", "count", sum("0777" in f"{n:05}" for n in range(topic_count))),
        Page(f"/api/topics/{LARGE}", "partitions", PARTITIONS),
        Page(f"/api/topics/{LARGE}/records", "rows", 50),
        Page(f"/api/topics/{LARGE}/records?from=oldest&count=500", "rows", 500),
        Page(f"/api/topics/{LARGE}/explain?partition=0&offset=1", "problems", None),
        Page("/api/explain", "subject", "The cluster"),
        Page("/api/groups", "count", GROUPS),
        Page("/api/groups?page=20", "count", GROUPS),
        Page("/api/groups/g-0000", "partitions", PARTITIONS),
        Page("/api/groups/g-0000/reset?to=latest", "partitions", PARTITIONS),
        Page("/api/groups/g-0000/explain", "problems", None),
        Page("/api/brokers", "offline_partitions", 0),
        Page("/api/brokers/1", "id", 1),
        Page("/api/quorum", "leader", 1),
        Page("/api/transactions", "count", 0),
        Page("/api/users", "users", 0),
        Page("/api/quotas", "quotas", 0),
        Page("/api/client-metrics", "subscriptions", 0),
    ]


async def ask(session: aiohttp.ClientSession, page: Page) -> None:
    """Ask for a page, and check its answer."""
    async with session.get(page.path) as response:
        found = await response.json(content_type=None)
    got = found.get(page.key)
    got = len(got) if isinstance(got, list) else got
    assert got is not None, (page, found)
    assert page.wanted in (None, got), (page, got)


async def events(
    session: aiohttp.ClientSession, path: str
) -> AsyncGenerator[tuple[str, Any], None]:
    """Yield the events of a stream."""
    async with session.get(path) as response:
        assert response.status == 200, await response.text()
        name = ""
        async for line in response.content:
            kind, _, rest = line.decode().strip().partition(": ")
            if kind == "event":
                name = rest
            elif kind == "data":
                yield name, json.loads(rest)


async def first_picture(session: aiohttp.ClientSession) -> None:
    """Open the live view, and wait for its first picture."""
    async with aclosing(events(session, "/api/watch")) as found:
        async for name, told in found:
            if name == "picture" and "picture" in told:
                assert told["picture"]["without_leader"] == 0
                break


Costs = dict[str, list[tuple[float, float, float]]]


async def timed(
    servers: tuple[Server, Server], costs: Costs, path: str, asked: Awaitable[None]
) -> None:
    """Note the seconds of an answer, as its client sees them and of both servers' processors."""
    await asyncio.sleep(FORGOTTEN_SECONDS)
    began, used = time.monotonic(), [each.cpu_seconds() for each in servers]
    await asked
    seconds = time.monotonic() - began
    ours, nodes = (each.cpu_seconds() - at for each, at in zip(servers, used, strict=True))
    costs.setdefault(path, []).append((seconds, ours, nodes))


async def search_all(session: aiohttp.ClientSession, console: Console) -> None:
    """Search all records for one of them, and stop a search early."""
    at_rest = console.resident_bytes()
    console.forget_peak()
    began, used, looks, found = time.monotonic(), console.cpu_seconds(), 0, []
    path = f"/api/topics/{LARGE}/search?kind=path&in=value&q=id%20%3D%3D%20{RECORDS - 1}"
    progress: dict[str, Any] = {}
    async for name, told in events(session, path):
        if name == "progress":
            progress, looks = told, looks + 1
        elif name == "row":
            found.append(told["key"]["text"])
    seconds, used = time.monotonic() - began, console.cpu_seconds() - used
    assert found == [f"k{RECORDS - 1}"]
    assert progress["is_done"]
    assert progress["records"] == str(RECORDS), progress
    grown = (console.peak_bytes() - at_rest) / MEGABYTE
    print(f"search of {RECORDS:,} records: {seconds:.1f} s with {used:.1f} s of CPU, "
          f"{looks} reports of progress, {grown:.0f} MB more memory at most")  # fmt: skip
    async with aclosing(events(session, f"/api/topics/{LARGE}/search?q=none")) as stopped:
        async for name, _ in stopped:
            if name == "progress":
                break
    await asyncio.sleep(1)
    used = console.cpu_seconds()
    await asyncio.sleep(1)
    used = console.cpu_seconds() - used
    assert used < 0.2, used
    print(f"a second after its client has gone, a search uses {used:.2f} s of CPU in a second")


async def watch_all(session: aiohttp.ClientSession, console: Console, bootstrap: str) -> None:
    """Have many browsers watch one topic."""
    topic = "t-00001"
    watching = asyncio.Semaphore(0)

    async def watch() -> list[str]:
        values: list[str] = []
        async with aclosing(events(session, f"/api/topics/{topic}/tail")) as found:
            async for name, told in found:
                if name == "begin":
                    watching.release()
                elif name == "row" and told["value"]["text"] != "before":
                    values.append(told["value"]["text"])
                if len(values) == WATCHED:
                    break
        return values

    at_rest = console.resident_bytes()
    console.forget_peak()
    tasks = [asyncio.create_task(watch()) for _ in range(VIEWERS)]
    for _ in range(VIEWERS):
        await watching.acquire()
    before = await reads(session)
    await asyncio.sleep(1)
    after = await reads(session)
    producer = Producer({"bootstrap.servers": bootstrap})
    used, began = console.cpu_seconds(), time.monotonic()
    for number in range(WATCHED):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(30) == 0
    for values in await asyncio.gather(*tasks):
        assert values == [str(number) for number in range(WATCHED)]
    seconds, used = time.monotonic() - began, console.cpu_seconds() - used
    grown = (console.peak_bytes() - at_rest) / MEGABYTE
    assert 0 < after - before <= 4, (before, after)
    print(f"{VIEWERS:,} browsers watch one topic: {after - before:.0f} reads of it in a second; "
          f"{WATCHED} records reach all after {seconds:.2f} s, with {used:.2f} s of CPU "
          f"and {grown:.0f} MB more memory at most")  # fmt: skip


async def reads(session: aiohttp.ClientSession) -> float:
    """Return how often the topics that are watched were read."""
    async with session.get("/metrics") as response:
        lines = (await response.text()).splitlines()
    name = "millstream_console_tail_reads "
    return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))


async def measure(console: Console, node: Server, topic_count: int, rounds: int) -> None:
    """Print what is measured of one console."""
    servers = console, node
    timeout = aiohttp.ClientTimeout(total=300)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(console.url, timeout=timeout, connector=connector) as session:
        costs: Costs = {}
        for _ in range(rounds):
            for page in pages(topic_count):
                await timed(servers, costs, page.path, ask(session, page))
            await timed(servers, costs, "/api/watch", first_picture(session))
        print("| page | s | CPU of the console, s | CPU of the node, s |\n|---|---|---|---|")
        for path, found in costs.items():
            seconds, ours, nodes = map(list, zip(*found, strict=True))
            mark = " (too slow)" if min(seconds) > GOAL_SECONDS else ""
            print(f"| {path} | {spread(seconds)}{mark} | {spread(ours)} | {spread(nodes)} |")
        print(f"resident after all pages: {console.resident_bytes() / MEGABYTE:.0f} MB")
        await search_all(session, console)
        await watch_all(session, console, node.bootstrap)


def main(arguments: list[str]) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench console", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--topics", type=int, default=TOPICS)
    options = parser.parse_args(arguments)
    with Millstream() as node:
        wait_for_first_record(node.port, 60)
        began = time.monotonic()
        with admin_client(kafka_access(node.bootstrap, ""), 60_000) as client:
            fill(client, node.bootstrap, options.topics)
        print(f"cluster: {options.topics:,} topics, made in {time.monotonic() - began:.0f} s")
        starts, at_rest, used = [], [], []
        for _ in range(options.rounds):
            with Console(node.bootstrap) as console:
                starts.append(console.wait_until_ready())
                used.append(console.cpu_seconds())
                time.sleep(REST_SECONDS)
                at_rest.append(console.resident_bytes() / MEGABYTE)
        print(f"ready after {spread(starts)} s ({spread(used)} s of CPU), "
              f"{spread(at_rest)} MB at rest; "
              f"load average {os.getloadavg()[0]:.1f}")  # fmt: skip
        with Console(node.bootstrap) as console:
            console.wait_until_ready()
            asyncio.run(measure(console, node, options.topics, options.rounds))
        print(f"load average {os.getloadavg()[0]:.1f}")
    return 0
