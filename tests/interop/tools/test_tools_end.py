"""Tools that are told to stop, or whose output is closed, end at once and leave no processes."""

import signal
import subprocess
import time
from collections.abc import Iterator

import confluent_kafka.admin
import pytest

from millstream.launch import program_command, program_environment
from millstream.testing import LocalBroker
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

SOON_SECONDS = 3.0
TOPIC = "lines"
CONSUMERS = [
    ("console-consumer", ""),
    ("consumer-perf-test", "--num-records 100 --timeout 100000"),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as started:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": started.bootstrap_servers})
        admin.create_topics([confluent_kafka.admin.NewTopic(TOPIC, 4, 1)])[TOPIC].result(30)
        yield started


def start(broker: LocalBroker, tool: str, arguments: str) -> subprocess.Popen[str]:
    at = ["--bootstrap-server", broker.bootstrap_servers]
    return subprocess.Popen(
        program_command("broker", tool, *at, *arguments.split()),
        env=program_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(("tool", "more"), CONSUMERS)
@pytest.mark.parametrize(
    ("told", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_a_consumer_leaves_its_group_when_it_is_stopped(
    broker: LocalBroker, tool: str, more: str, told: signal.Signals, status: int
) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    group = f"{tool}-{told.name}"

    def members() -> int:
        return len(admin.describe_consumer_groups([group])[group].result(30).members)

    process = start(broker, tool, f"--topic {TOPIC} --group {group} {more}")
    until(lambda: members() == 1)
    stopped = time.monotonic()
    process.send_signal(told)
    _, errors = process.communicate(timeout=30)
    until(lambda: members() == 0)
    assert time.monotonic() - stopped < SOON_SECONDS
    assert process.returncode == status
    assert "Traceback" not in errors


def test_a_tool_ends_without_a_word_when_nobody_reads(broker: LocalBroker) -> None:
    process = start(broker, "topics", "--describe")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (141, "")


def test_the_log_of_a_node_has_no_warning_of_the_interpreter(broker: LocalBroker) -> None:
    assert "Warning" not in broker.log()
