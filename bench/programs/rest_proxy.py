"""The REST proxy on our broker: `python -m bench rest-proxy --rounds 3`.

Records of 100 bytes, sent one a call on one connection and on eight, a hundred a call, and in one
stream; and read, in the largest reads there are. Records a second as the caller sees them, and the
processor time of the proxy's process, from `/proc`.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp

from bench.lib.results import spread
from millstream.testing import LocalStack

ONE, MANY, STREAMED = 2_000, 40_000, 40_000
PER_CALL = 100
CONNECTIONS = 8
TICKS = os.sysconf("SC_CLK_TCK")
VALUE = "x" * 100
_V2 = {"Content-Type": "application/vnd.kafka.json.v2+json"}
_JSON = {"Content-Type": "application/json"}
_BODY_OF_ONE = json.dumps({"records": [{"value": VALUE}]}).encode()
_BODY_OF_MANY = json.dumps({"records": [{"value": VALUE}] * PER_CALL}).encode()
_RECORD = json.dumps({"value": {"type": "JSON", "data": VALUE}}).encode()


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def one_a_call(session: aiohttp.ClientSession, url: str) -> int:
    for _ in range(ONE):
        await _post(session, f"{url}/topics/one", _BODY_OF_ONE)
    return ONE


async def one_a_call_on_eight(session: aiohttp.ClientSession, url: str) -> int:
    await asyncio.gather(*(one_a_call(session, url) for _ in range(CONNECTIONS)))
    return CONNECTIONS * ONE


async def hundred_a_call(session: aiohttp.ClientSession, url: str) -> int:
    for _ in range(MANY // PER_CALL):
        await _post(session, f"{url}/topics/many", _BODY_OF_MANY)
    return MANY


async def _post(session: aiohttp.ClientSession, url: str, body: bytes) -> None:
    async with session.post(url, data=body, headers=_V2) as response:
        answer = await response.json(content_type=None)
        assert response.status == 200, answer
        assert not any(each["error"] for each in answer["offsets"]), answer


async def one_stream(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(f"{url}/v3/clusters") as response:
        cluster_id = (await response.json())["data"][0]["cluster_id"]

    async def body() -> AsyncIterator[bytes]:
        for _ in range(STREAMED // PER_CALL):
            yield _RECORD * PER_CALL

    path = f"{url}/v3/clusters/{cluster_id}/topics/streamed/records"
    reports = 0
    async with session.post(path, data=body(), headers=_JSON) as response:
        async for line in response.content:
            assert line.startswith(b'{"error_code":200'), line
            reports += 1
    assert reports == STREAMED, reports
    return reports


async def read_all(session: aiohttp.ClientSession, url: str) -> int:
    told = {"format": "json", "auto.offset.reset": "earliest", "fetch.min.bytes": "1"}
    async with session.post(f"{url}/consumers/g{time.time_ns()}", json=told) as response:
        instance = (await response.json(content_type=None))["base_uri"]
    async with session.post(f"{instance}/subscription", json={"topics": ["many"]}):
        pass
    count = 0
    while count < MANY:
        async with session.get(f"{instance}/records") as response:
            count += len(await response.json(content_type=None))
    await session.delete(instance)
    return count


Cell = Callable[[aiohttp.ClientSession, str], Awaitable[int]]
CELLS: dict[str, Cell] = {
    "one record a call, 1 connection": one_a_call,
    "one record a call, 8 connections": one_a_call_on_eight,
    "100 records a call": hundred_a_call,
    "one stream (version 3)": one_stream,
    "read": read_all,
}


async def measure(url: str, pid: int, cell: Cell) -> tuple[float, float]:
    """Return records a second and microseconds of the proxy's processor time for each."""
    timeout = aiohttp.ClientTimeout(total=300)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        began, used = time.monotonic(), cpu_seconds(pid)
        count = await cell(session, url)
        seconds, cpu = time.monotonic() - began, cpu_seconds(pid) - used
    return count / seconds, 1e6 * cpu / count


def main(arguments: list[str]) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench rest-proxy", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in CELLS}
    with LocalStack(parts=["rest-proxy"]) as stack:
        proxy = stack.programs["rest-proxy"]
        asyncio.run(measure(proxy.url, proxy.pid, one_a_call))  # what is loaded by the first
        for number in range(options.rounds):
            print(f"round {number + 1}", file=sys.stderr, flush=True)
            for name, cell in CELLS.items():
                found[name].append(asyncio.run(measure(proxy.url, proxy.pid, cell)))
    print("| cell | records/s | CPU of the proxy, µs a record |\n|---|---|---|")
    for name, rows in found.items():
        rates, costs = zip(*rows, strict=True)
        print(f"| {name} | {spread(list(rates))} | {spread(list(costs))} |")
    return 0
