"""Share groups with Apache Kafka's own tools: its consumer, and its administration."""

import re
from collections.abc import Iterator

import pytest

from millrace.testing import LocalBroker
from tests.lib.apache_kafka import TOOLS, Tool, kafka_libs, run_tools

pytestmark = pytest.mark.interop

JOBS = 20
GROUPS = f"{TOOLS}.consumer.group.ShareGroupCommand"
CONSUMER = f"{TOOLS}.consumer.ConsoleShareConsumer"


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(num_partitions=3) as started:
        yield started


def rows(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines() if line.strip()][1:]


def test_apaches_tools_use_a_share_group(broker: LocalBroker) -> None:
    broker.create_topic("jobs", 3)
    to = ("--bootstrap-server", broker.bootstrap_servers)
    group = ("--group", "packers")
    jobs = "".join(f"job {number}\n" for number in range(JOBS)).encode()
    consume = Tool(
        CONSUMER,
        (*to, "--topic", "jobs", *group, "--max-messages", str(JOBS), "--timeout-ms", "20000"),
    )
    results = run_tools(
        kafka_libs(),
        [
            Tool(
                "kafka.admin.ConfigCommand",
                (
                    *(*to, "--alter", "--entity-type", "groups", "--entity-name", "packers"),
                    *("--add-config", "share.auto.offset.reset=earliest"),
                ),
            ),
            Tool(f"{TOOLS}.ConsoleProducer", (*to, "--topic", "jobs"), jobs),
            consume,
            Tool(GROUPS, (*to, "--list", "--state")),
            Tool(GROUPS, (*to, "--describe", *group, "--state", "--verbose")),
            Tool(
                GROUPS,
                (*to, "--reset-offsets", *group, "--to-earliest", "--topic", "jobs", "--execute"),
            ),
            Tool(GROUPS, (*to, "--describe", *group)),
            consume,
            Tool(GROUPS, (*to, "--delete-offsets", *group, "--topic", "jobs")),
            Tool(GROUPS, (*to, "--describe", *group)),
            Tool(GROUPS, (*to, "--delete", *group)),
            Tool(GROUPS, (*to, "--list")),
        ],
    )
    assert [result.status for result in results] == [0] * len(results), results
    _, _, consumed, listed, state, reset, described, again, _, without, deleted, last = results
    everything = sorted(f"job {number}" for number in range(JOBS))
    assert sorted(consumed.output.splitlines()) == everything
    assert rows(listed.output) == [["packers", "Empty"]]
    assert re.search(r"packers +127\.0\.0\.1:\d+ +\(1\) +Empty +\d+ +\d+ +0", state.output)
    assert sorted(rows(reset.output)) == [["packers", "jobs", str(n), "0"] for n in range(3)]
    lags = [int(row[-1]) for row in rows(described.output)]
    assert sum(lags) == JOBS
    assert sorted(again.output.splitlines()) == everything, "a reset is seen by the leaders"
    assert "has no offset information" in without.output + without.errors
    assert "was successful" in deleted.output
    assert not last.output.strip()
