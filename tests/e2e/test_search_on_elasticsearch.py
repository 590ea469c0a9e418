"""The search service as a process, on a real Elasticsearch, while both of them are killed."""

import json
import random
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millstream.testing import LocalBroker
from tests.lib.elasticsearch_server import Elasticsearch
from tests.lib.pipeline_processes import Pipeline, call
from tests.lib.streams_processes import events_of, make_orders
from tests.lib.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

INDEX = "killed-orders"
# The test waits for it when the service is killed.
SESSION_MS = 3_000


@pytest.fixture
def pipeline(tmp_path: Path, elasticsearch: Elasticsearch) -> Iterator[Pipeline]:
    with (
        LocalBroker(**{"group.min.session.timeout.ms": SESSION_MS}) as broker,
        Pipeline(broker.bootstrap_servers, tmp_path, session_ms=SESSION_MS) as running,
    ):
        where = ("--index", elasticsearch.url, "--index-name", INDEX)
        running.start("search", arguments=where)
        yield running


class Feed:
    """Writes the lives of orders into topic `orders`, some of it twice, as nobody should."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._rng = random.Random(3)
        self._writers = (
            pipeline.writer("orders", "orders/order_event"),
            pipeline.writer("order-decisions", "orders/order_decision"),
        )
        self._count = 0

    def send(self, count: int) -> None:
        orders = make_orders(self._rng, count, self._count)
        self._count += count
        events = events_of(orders, *self._writers)
        self._pipeline.produce([*events, *self._rng.sample(events, count // 3)])


def newest(pipeline: Pipeline) -> dict[str, tuple[int, str]]:
    """Return what the topic says of each order: its newest version and state."""
    return {
        order_id: max((event["version"], event["state"]) for event in events)
        for order_id, events in pipeline.events("orders", "orders/order_event").items()
    }


def documents(elasticsearch: Elasticsearch) -> dict[str, tuple[int, str]]:
    """Return what Elasticsearch has, asked without the service."""
    call("POST", f"{elasticsearch.url}/{INDEX}/_refresh")
    question = json.dumps({"size": 5000, "version": True, "query": {"match_all": {}}}).encode()
    request = urllib.request.Request(
        f"{elasticsearch.url}/{INDEX}/_search",
        question,
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        hits: list[Any] = json.load(answer)["hits"]["hits"]
    return {one["_id"]: (one["_version"], one["_source"]["state"]) for one in hits}


def test_the_index_equals_the_topic_though_the_service_and_elasticsearch_are_killed(
    pipeline: Pipeline, elasticsearch: Elasticsearch
) -> None:
    feed = Feed(pipeline)
    feed.send(200)
    pipeline.end("search", kill=True)
    feed.send(100)
    pipeline.start_again("search")
    feed.send(200)
    elasticsearch.kill()
    feed.send(100)
    until(lambda: call("GET", pipeline.urls["search"] + "/v1/orders").status == 503)
    elasticsearch.start()
    feed.send(100)
    wanted = newest(pipeline)
    assert len(wanted) == 700
    until(lambda: documents(elasticsearch) == wanted)
    found = call("GET", pipeline.urls["search"] + "/v1/orders?state=VALIDATED&limit=100").body
    assert len(found["orders"]) == 100
