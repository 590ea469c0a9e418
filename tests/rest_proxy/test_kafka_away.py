"""Kafka is dead, frozen, or has no room on its disk: every call ends in time, and says why."""

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from millstream.testing import LocalBroker, LocalCluster, LocalRestProxy
from millstream.testing.chaos.schedule import FULL_DISK
from tests.chaos.disk_shim import DISK_ORDERS, SWITCH, build_shim
from tests.lib.rest_calls import JSON, V2, Answer, RestCalls, records_type

pytestmark = pytest.mark.slow

JSON_RECORDS = records_type("json")
RECORDS = {"records": [{"value": 1}]}
V3_RECORD = {"value": {"type": "JSON", "data": 1}}
PLACE = {"partitions": [{"topic": "t", "partition": 0}]}
SETTINGS = {"producer.delivery.timeout.ms": "2000", "consumer.join.timeout.ms": "2000"}
LONGEST_SECONDS = 25.0
"""Fifteen are documented; other tests share the processors."""


class Call(NamedTuple):
    method: str
    path: str
    body: Any = None
    kind: str | None = None


class Ended(NamedTuple):
    call: Call
    answer: Answer
    seconds: float


def all_at_once(rest: RestCalls, calls: list[Call]) -> list[Ended]:
    """Make calls side by side, because each takes the whole time that it may."""

    def one(call: Call) -> Ended:
        began = time.monotonic()
        answer = rest.call(*call)
        return Ended(call, answer, time.monotonic() - began)

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, calls))


def instances(rest: RestCalls) -> Callable[[], str]:
    """Return a function that makes an instance which has read, and not committed, one record."""
    numbers = count()

    def make() -> str:
        told = {"format": "json", "auto.offset.reset": "earliest", "fetch.min.bytes": 1}
        place: str = rest.post(f"/consumers/g{next(numbers)}", told).body["base_uri"]
        assert rest.post(f"{place}/assignments", PLACE).status == 204
        assert len(rest.get(f"{place}/records?timeout=30000").body) == 1
        return place.removeprefix(rest.url)

    return make


def of_instances(make: Callable[[], str]) -> list[Call]:
    offset = {"offsets": [{"topic": "t", "partition": 0, "offset": 0}]}
    return [
        Call("GET", f"{make()}/records"),
        Call("POST", f"{make()}/offsets", None, V2),
        Call("POST", f"{make()}/offsets", offset, V2),
        Call("GET", f"{make()}/offsets", PLACE, V2),
        Call("POST", f"{make()}/positions/beginning", PLACE, V2),
        Call("POST", f"{make()}/positions/end", PLACE, V2),
        Call("DELETE", f"{make()}/subscription"),
    ]


def of_the_cluster(cluster: str) -> list[Call]:
    cases: list[tuple[Any, ...]] = [
        ("POST", "/topics/t/partitions/0", RECORDS, JSON_RECORDS),
        *(("GET", path) for path in ("/topics", "/topics/t", "/brokers", "/v3/clusters")),
        ("GET", "/topics/t/partitions/0/offsets"),
        *(("GET", f"{cluster}{path}") for path in (
            "", "/brokers", "/brokers/1/configs", "/topics", "/topics/t", "/topics/t/configs",
            "/topics/t/partitions/0/offset", "/topics/-/partitions/-/reassignment",
            "/consumer-groups", "/consumer-groups/g1", "/consumer-groups/g1/lag-summary", "/acls",
        )),
        ("POST", f"{cluster}/topics", {"topic_name": "q"}, JSON),
        ("PATCH", f"{cluster}/topics/t", {"partitions_count": 3}, JSON),
        ("DELETE", f"{cluster}/topics/t"),
        ("DELETE", f"{cluster}/consumer-groups/g1"),
    ]  # fmt: skip
    return [Call(*case) for case in cases]


@pytest.mark.parametrize("is_frozen", [False, True], ids=["dead", "frozen"])
def test_every_call_ends_with_503(is_frozen: bool) -> None:
    with (
        LocalBroker(num_partitions=1) as broker,
        LocalRestProxy(broker.bootstrap_servers, settings=SETTINGS) as proxy,
    ):
        rest = RestCalls(proxy.url)
        assert rest.post("/topics/t", RECORDS, JSON_RECORDS).status == 200
        cluster = "/v3/clusters/" + rest.get("/v3/clusters").body["data"][0]["cluster_id"]
        assert rest.get(f"{cluster}/topics").status == 200
        make = instances(rest)
        deleted = Call("DELETE", make())
        calls = [*of_instances(make), *of_the_cluster(cluster), deleted]
        produced = Call("POST", "/topics/t", RECORDS, JSON_RECORDS)
        streamed = Call("POST", f"{cluster}/topics/t/records", V3_RECORD, JSON)
        entries = {"entries": [{"id": "1", **V3_RECORD}]}
        batch = Call("POST", f"{cluster}/topics/t/records:batch", entries, JSON)
        broker.pause() if is_frozen else broker.kill()
        ended = all_at_once(rest, [*calls, produced, streamed, batch])
        slow = [each for each in ended if each.seconds > LONGEST_SECONDS]
        assert not slow
        found = {f"{each.call.method} {each.call.path}": each.answer for each in ended}
        assert found.pop(f"DELETE {deleted.path}").status == 204
        assert [each["error_code"] for each in found.pop(f"POST {streamed.path}").body] == [50003]
        assert [
            each["error_code"] for each in found.pop(f"POST {batch.path}").body["failures"]
        ] == [50003]
        not_stored = found["POST /topics/t"]
        assert [each["error_code"] for each in not_stored.body["offsets"]] == [50003]
        assert "producer.delivery.timeout.ms" in not_stored.body["message"]
        wrong = {call: a for call, a in found.items() if (a.status, a.code) != (503, 50302)}
        assert not wrong
        assert proxy.log_tail().count("librdkafka") < 10
        began = time.monotonic()
        proxy.stop()
        assert time.monotonic() - began < LONGEST_SECONDS
        if is_frozen:
            broker.resume()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="the shim for the disk needs gcc")
def test_a_record_that_finds_no_room_on_the_disk_is_refused(tmp_path: Path) -> None:
    environment = {"LD_PRELOAD": str(build_shim(tmp_path))}
    with (
        LocalCluster(1, environment=environment) as cluster,
        LocalRestProxy(cluster.bootstrap_servers, settings=SETTINGS) as proxy,
    ):
        rest = RestCalls(proxy.url)
        assert rest.post("/topics/t", RECORDS, JSON_RECORDS).status == 200
        (cluster.node(1).data_folder / SWITCH).write_text(DISK_ORDERS[FULL_DISK])
        began = time.monotonic()
        refused = rest.post("/topics/t", RECORDS, JSON_RECORDS)
        assert time.monotonic() - began < LONGEST_SECONDS
        assert (refused.status, refused.code) == (503, 50302)
        assert [each["error_code"] for each in refused.body["offsets"]] == [50003]
