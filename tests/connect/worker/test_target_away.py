"""A sink whose target is away for a while, on a worker: nothing is lost, and it is told.

`MILLSTREAM_TEST_AWAY_SECONDS=60` has it away for a minute.
"""

import json
import os
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from millstream.testing import LocalBroker
from tests.lib.busy_elasticsearch import BusyElasticsearch
from tests.lib.connect_worker import ConnectWorker, eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

AWAY_SECONDS = float(os.environ.get("MILLSTREAM_TEST_AWAY_SECONDS", "3"))
COUNT = 500


def test_a_sink_waits_for_its_target_and_writes_everything_then(tmp_path: Path) -> None:
    """It runs and tries again; when it has tried often enough it is FAILED, and starts again."""
    with LocalBroker() as broker, BusyElasticsearch([]) as target:
        told = {
            "bootstrap.servers": broker.bootstrap_servers,
            "offset.storage.file.filename": str(tmp_path / "offsets"),
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "consumer.auto.offset.reset": "earliest",
        }
        config = {
            "connector.class": "ElasticsearchSink",
            "topics": "orders",
            "connection.url": target.url,
            "max.retries": "3",
            "retry.backoff.ms": "50",
            "errors.task.restart.max.delay.ms": "1000",
        }
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

        def produce(first: int, end: int) -> None:
            for number in range(first, end):
                producer.produce("orders", json.dumps({"n": number}), str(number))
            assert producer.flush(30) == 0

        produce(0, 10)
        with ConnectWorker(tmp_path, told) as worker:
            assert worker.call("PUT", "/connectors/index/config", config).status == 201
            eventually(lambda: len(target.documents) == 10)
            target.stop()
            seen: set[str] = set()
            produce(10, COUNT)
            until = time.monotonic() + AWAY_SECONDS

            def is_over() -> bool:
                states = worker.states("index")
                assert states["connector"] == "RUNNING"
                seen.add(states["0"])
                return time.monotonic() >= until and "FAILED" in seen

            eventually(is_over, AWAY_SECONDS + 30)
            target.start()
            eventually(lambda: len(target.documents) == COUNT, 60)
            worker.wait_for("index", connector="RUNNING", t0="RUNNING")
            assert {each["n"] for each in target.documents.values()} == set(range(COUNT))
            body = worker.call("GET", "/connectors/index/status").body
            assert body["tasks"][0]["restarts"] > 0
        assert seen <= {"RUNNING", "FAILED", "RESTARTING", "UNASSIGNED"}
