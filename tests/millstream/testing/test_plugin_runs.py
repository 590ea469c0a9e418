"""Runs of pytest with the plugin: clean brokers, parallel workers, coroutines, Apache Kafka."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.testing.apache_kafka import ApacheBroker, OnlyMillstreamError
from tests.lib.apache_kafka import kafka_libs

pytestmark = pytest.mark.slow

CLEAN = """
import pytest
from confluent_kafka import Producer

SEEN = []

@pytest.mark.parametrize("number", range(4))
def test_is_clean(kafka_broker, number):
    assert kafka_broker.bootstrap_servers not in SEEN
    SEEN.append(kafka_broker.bootstrap_servers)
    producer = Producer({**kafka_broker.client_settings(), "log_level": 0})
    assert "orders" not in producer.list_topics(timeout=30).topics
    producer.produce("orders", b"v")
    assert producer.flush(30) == 0
    assert len(kafka_broker.wait_for_records("orders", 1)) == 1
"""
UNUSED = """
def test_arms_a_fault_that_hits_nothing(kafka_broker):
    kafka_broker.faults.delay("Produce", ms=1).once()

def test_fails_and_shows_the_log_of_its_own_broker(kafka_broker):
    assert False
"""
AWAITED = """
import asyncio
from confluent_kafka import Producer

def test_awaits(async_kafka_broker):
    async def run():
        broker = async_kafka_broker
        await broker.create_topic("orders")
        producer = Producer(broker.client_settings())
        waiting = asyncio.ensure_future(broker.wait_for_records("orders", 1))
        producer.produce("orders", b"v")
        await asyncio.to_thread(producer.flush, 30)
        assert len(await waiting) == 1
        await broker.clock.advance(hours=1)
        assert broker.bootstrap_servers.startswith("127.0.0.1:")
    asyncio.run(run())
"""
BOTH = """
import pytest
from confluent_kafka import Producer

@pytest.fixture
def hours_later(kafka_broker):
    kafka_broker.clock.advance(hours=1)

def test_of_any_kafka(kafka_broker):
    kafka_broker.create_topic("orders")
    producer = Producer({**kafka_broker.client_settings(), "log_level": 0})
    producer.produce("orders", b"v")
    assert producer.flush(30) == 0
    assert [each.value for each in kafka_broker.wait_for_records("orders", 1)] == ["v"]

def test_of_faults(kafka_broker):
    kafka_broker.create_topic("faults")
    rule = kafka_broker.faults.close("Produce", after=True).once()
    producer = Producer({**kafka_broker.client_settings(), "enable.idempotence": True})
    producer.produce("faults", b"v")
    assert producer.flush(30) == 0
    assert rule.hits == 1
    assert kafka_broker.requests.count(api="Produce") == 2
    assert len(kafka_broker.records("faults")) == 1

def test_of_time(hours_later):
    pass

def test_of_a_cluster(kafka_cluster):
    pass
"""


def run(folder: Path, text: str, *arguments: str, libraries: str = "") -> tuple[int, str]:
    """Run pytest on a file of tests; return the exit status and what it printed."""
    (folder / "test_theirs.py").write_text(text)
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    environment["MILLSTREAM_KAFKA_LIBS"] = libraries
    plain = ("-p", "no:cacheprovider", "-p", "no:schemathesis", "-q", "-rs", f"--rootdir={folder}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plain, *arguments, str(folder)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("workers", ["0", "2"])
def test_each_test_has_a_clean_broker_in_every_worker(tmp_path: Path, workers: str) -> None:
    status, said = run(tmp_path, CLEAN, "-n", workers)
    assert status == 0, said
    assert "4 passed" in said


def test_a_fault_that_hit_nothing_fails_its_test_and_a_failure_shows_its_log(
    tmp_path: Path,
) -> None:
    status, said = run(tmp_path, UNUSED)
    assert status == 1
    assert "1 failed, 1 passed, 1 error" in said
    assert "hit nothing" in said
    _, _, log = said.partition("log of kafka_broker")
    assert "starting node_id=1" in log


def test_coroutines_await_the_calls_of_a_broker(tmp_path: Path) -> None:
    status, said = run(tmp_path, AWAITED)
    assert status == 0, said


def test_without_apache_kafka_its_option_is_refused_in_words(tmp_path: Path) -> None:
    status, said = run(tmp_path, BOTH, "--kafka=apache")
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "--kafka=apache: MILLSTREAM_KAFKA_LIBS has to name the folder" in said
    status, said = run(tmp_path, BOTH, "--kafka=apache", libraries=str(tmp_path))
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "there is no kafka_2*.jar in this folder" in said


@pytest.mark.interop
def test_the_same_tests_run_against_apache_kafka(tmp_path: Path) -> None:
    status, said = run(tmp_path, BOTH, "--kafka=apache", libraries=str(kafka_libs()))
    assert status == 0, said
    assert "2 passed, 2 skipped" in said
    assert "the clock of Apache Kafka cannot be moved" in said
    assert "kafka_cluster is made of Millstream" in said


def test_what_only_millstream_has_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.testing.apache_kafka.kafka_libraries", lambda: Path("libs"))
    apache = ApacheBroker()
    for use, words in (
        (lambda: apache.faults.disk("full"), "the disk of Apache Kafka does not fail on demand"),
        (lambda: apache.clock, "the clock of Apache Kafka cannot be moved"),
        (apache.snapshot, "no snapshots"),
    ):
        with pytest.raises(OnlyMillstreamError, match=words):
            use()
