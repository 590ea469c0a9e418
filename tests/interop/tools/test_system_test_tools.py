"""The tools of system tests: clients that tell what they do, and the latency of records."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from millstream.testing import LocalBroker


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with LocalBroker() as broker:
        broker.create_topic("numbers", 2)
        yield broker.bootstrap_servers


def started(tool: str, bootstrap: str, arguments: str) -> "subprocess.Popen[str]":
    words = ["--bootstrap-server", bootstrap, *arguments.split()]
    command = [sys.executable, "-m", "millstream", tool, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def told(lines: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines.splitlines()]


def test_the_verifiable_clients_tell_what_they_do(bootstrap: str) -> None:
    producer = started(
        "verifiable-producer",
        bootstrap,
        "--topic numbers --max-messages 4 --value-prefix 7 --repeating-keys 2 "
        "--message-create-time 1000",
    )
    first, *sends, done, figures = told(producer.communicate(timeout=60)[0])
    assert producer.returncode == 0
    assert (first["name"], done["name"]) == ("startup_complete", "shutdown_complete")
    assert sorted((one["key"], one["value"]) for one in sends) == [
        *(("0", "7.0"), ("0", "7.2"), ("1", "7.1"), ("1", "7.3"))
    ]
    assert {one["name"] for one in sends} == {"producer_send_success"}
    assert (figures["sent"], figures["acked"], figures["target_throughput"]) == (4, 4, -1)

    consumer = started(
        "verifiable-consumer", bootstrap, "--topic numbers --group-id g --max-messages 3 --verbose"
    )
    events = told(consumer.communicate(timeout=60)[0])
    names = [one["name"] for one in events]
    assert (names[0], names[1], names[-1]) == (
        *("startup_complete", "partitions_assigned", "shutdown_complete"),
    )
    assert names.count("record_data") == 3
    assert {"records_consumed", "partitions_revoked"} < set(names)
    commits = [one for one in events if one["name"] == "offsets_committed"]
    assert all(one["success"] is True for one in commits)


def test_a_signal_ends_a_verifiable_client_with_what_it_has_to_tell(bootstrap: str) -> None:
    for tool, arguments, last in (
        ("verifiable-producer", "--topic numbers --throughput 20", "tool_data"),
        (
            "verifiable-consumer",
            "--topic numbers --group-id h --group-protocol consumer",
            "shutdown_complete",
        ),
    ):
        process = started(tool, bootstrap, arguments)
        assert process.stdout is not None
        read = [process.stdout.readline() for _ in range(3)]
        os.kill(process.pid, signal.SIGTERM)
        rest = process.communicate(timeout=60)[0]
        assert process.returncode == 128 + signal.SIGTERM
        assert told("".join(read) + rest)[-1]["name"] == last


def test_the_latency_of_records_is_measured(bootstrap: str) -> None:
    tool = started(
        "e2e-latency",
        bootstrap,
        "--topic latency --num-records 5 --producer-acks all --record-size 10 --record-key-size 3 "
        "--num-headers 2 --record-header-key-size 2 --record-header-size -1",
    )
    made, first, average, percentiles = tool.communicate(timeout=60)[0].splitlines()
    assert tool.returncode == 0
    assert made.startswith('Topic "latency" does not exist.')
    assert re.fullmatch(r"0\t[0-9.]+", first)
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", average)
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99.9th = \d+", percentiles)
