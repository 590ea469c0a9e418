"""Apache's tools set quotas on our broker, and unmodified clients are held to them."""

import re
import time

import pytest
from confluent_kafka import Producer

from bench.broker.quotas import configure
from millstream.testing import LocalBroker
from tests.lib.apache_kafka import TOOLS, Tool, kafka_libs, run_tools

pytestmark = pytest.mark.interop
CONFIGS = "kafka.admin.ConfigCommand"


def test_apaches_tool_sets_quotas_and_its_producer_is_held() -> None:
    with LocalBroker() as broker:
        broker.create_topic("t")
        where = ("--bootstrap-server", broker.bootstrap_servers)
        client = ("--entity-type", "clients", "--entity-name", "held")
        anybody = ("--entity-type", "ips", "--entity-default")
        load = ("--topic", "t", "--num-records", "6000", "--record-size", "1000")
        speed = ("--throughput", "-1", "--producer-props")
        servers = f"bootstrap.servers={broker.bootstrap_servers}"
        told = run_tools(
            kafka_libs(),
            [
                Tool(
                    CONFIGS, (*where, "--alter", *client, "--add-config=producer_byte_rate=1000000")
                ),
                Tool(
                    CONFIGS,
                    (*where, "--alter", "--add-config=connection_creation_rate=1000", *anybody),
                ),
                Tool(CONFIGS, (*where, "--describe", *client)),
                Tool(
                    f"{TOOLS}.ProducerPerformance",
                    (*load, *speed, servers, "client.id=held", "linger.ms=0"),
                ),
                Tool(f"{TOOLS}.ProducerPerformance", (*load, *speed, servers, "client.id=free")),
            ],
        )
    assert [result.status for result in told] == [0] * len(told), told
    described, held, free = told[2:]
    assert "producer_byte_rate=1000000.0" in described.output
    # A window's worth is sent before the first wait: 6 MB at 1 MB/s take 5 s or more.
    assert records_per_second(held.output) < 1_250
    assert records_per_second(free.output) > 3_000


def records_per_second(output: str) -> float:
    found = re.search(r"6000 records sent, ([\d.]+) records/sec", output)
    assert found is not None, output
    return float(found[1])


def test_confluent_kafka_is_held_and_loses_nothing() -> None:
    with LocalBroker() as broker:
        broker.create_topic("t")
        admin = broker.client_settings("confluent-kafka")
        entity = ("--entity-type", "clients", "--entity-name", "held")
        configure(broker, "--add-config", "producer_byte_rate=1000000", *entity)
        producer = Producer({**admin, "client.id": "held", "linger.ms": 5})
        failures: list[object] = []
        begun = time.monotonic()
        for _ in range(5_000):
            producer.produce("t", b"x" * 1_000, on_delivery=lambda e, _: failures.append(e))
        producer.flush(30)
        taken = time.monotonic() - begun
    assert failures == [None] * 5_000
    assert taken > 3.5
