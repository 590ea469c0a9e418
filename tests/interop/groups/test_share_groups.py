"""Share groups with Apache Kafka's own tools: its consumer, and its administration."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import cast
from urllib.request import urlopen

import confluent_kafka
import pytest

from broker.cli import share_groups
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages import describe_share_group_offsets as describing
from millstream.testing import LocalBroker
from tests.lib.apache_kafka import TOOLS, Tool, kafka_libs, run_tools
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

JOBS = 20
AT_ONCE_SECONDS = 5
"""Far less than the time for which a coordinator that moves is waited for."""
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


VIEWS = (
    ("--list",),
    ("--list", "--state"),
    ("--list", "--state", "Stable"),
    *(
        ("--describe", "--group", group, view, *more)
        for group in ("packers", "idlers")
        for view in ("--offsets", "--members", "--state")
        for more in ((), ("--verbose",))
    ),
    *(
        ("--reset-offsets", "--group", "idlers", *scope, rule, "--dry-run")
        for scope in (("--all-topics",), ("--topic", "jobs:0,2"), ("--topic", "jobs"))
        for rule in ("--to-earliest", "--to-latest")
    ),
    (
        *("--reset-offsets", "--group", "idlers", "--topic", "jobs", "--dry-run"),
        *("--to-datetime", "2020-01-01T00:00:00.000"),
    ),
    ("--delete-offsets", "--group", "idlers", "--topic", "jobs"),
    ("--delete", "--group", "idlers"),
)


def test_our_tool_prints_what_apaches_prints(
    broker: LocalBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create_topic("jobs", 3)
    to = ("--bootstrap-server", broker.bootstrap_servers)
    with ShareMember(broker.bootstrap_servers, "packers"):
        with ShareMember(broker.bootstrap_servers, "idlers"):
            pass
        # What changes something is done by Apache's tool alone, and last.
        theirs = run_tools(kafka_libs(), [Tool(GROUPS, (*to, *view)) for view in VIEWS])
        with ShareMember(broker.bootstrap_servers, "idlers"):
            pass
        for view, their in zip(VIEWS, theirs, strict=True):
            capsys.readouterr()
            status = share_groups.main([*to, *view])
            assert lines(capsys.readouterr().out) == lines(their.output), view
            assert status == their.status == 0, view


SHOWN = tuple(
    f"--formatter-property=print.{part}=true" for part in ("delivery", "offset", "epoch", "key")
)
AS_NUMBER = "--value-deserializer=org.apache.kafka.common.serialization.LongDeserializer"
IDLE = ("--timeout-ms", "4000")
RUNS = (
    ("--release", "--max-messages", "3", *SHOWN),
    ("--max-messages", "2", *SHOWN),
    (AS_NUMBER, *IDLE),
    ("--reject", "--max-messages", "1", *SHOWN),
    ("--reject-message-on-error", AS_NUMBER, *IDLE),
    (*IDLE, *SHOWN),
)


def test_our_share_consumers_do_what_apaches_do(broker: LocalBroker) -> None:
    broker.create_topic("jobs", 1)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(6):
        producer.produce("jobs", b"job %d" % number)
    assert producer.flush(30) == 0
    to = ("--bootstrap-server", broker.bootstrap_servers)
    where = (*to, "--topic", "jobs")
    perf = (*where, "--num-records", "6", "--timeout", "20000", "--threads", "2")
    perf += ("--show-consumer-stats", "--group")
    config = ("--alter", "--entity-type", "groups", "--entity-name")
    first = ("--add-config", "share.auto.offset.reset=earliest")
    results = run_tools(
        kafka_libs(),
        [
            *(
                Tool("kafka.admin.ConfigCommand", (*to, *config, group, *first))
                for group in ("ours", "theirs", "our-perf", "their-perf")
            ),
            *(Tool(CONSUMER, (*where, "--group", "theirs", *run)) for run in RUNS),
            Tool(f"{TOOLS}.ShareConsumerPerformance", (*perf, "their-perf")),
        ],
    )[4:]
    for run, their in zip(RUNS, results, strict=False):
        our = program("console-share-consumer", *where, "--group", "ours", *run)
        printed = [line for line in their.output.splitlines() if line.startswith("Offset")]
        assert our.stdout.splitlines() == printed, run
        assert our.returncode == their.status, run
        (counted,) = re.findall("Processed a total of .*", their.errors)
        assert counted in our.stderr, run
    our = program("share-consumer-perf-test", *perf, "our-perf")
    their = results[-1]
    assert our.returncode == their.status == 0
    numbers = re.compile(r"\d([\d:. -]*\d)?")
    shape = [numbers.sub("N", line) for line in their.output.splitlines()]
    assert [numbers.sub("N", line) for line in our.stdout.splitlines()] == shape


@pytest.mark.parametrize("mode", ["auto", "sync", "async"])
def test_a_verifiable_share_consumer_tells_what_apaches_tells(
    broker: LocalBroker, mode: str
) -> None:
    broker.create_topic("jobs", 1)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(5):
        producer.produce("jobs", b"job %d" % number, b"key")
    assert producer.flush(30) == 0
    to = ("--bootstrap-server", broker.bootstrap_servers, "--topic", "jobs", "--verbose")
    more = ("--max-messages", "5", "--offset-reset-strategy", "earliest")
    arguments = (*to, *more, "--acknowledgement-mode", mode, "--group-id")
    (their,) = run_tools(
        kafka_libs(), [Tool(f"{TOOLS}.VerifiableShareConsumer", (*arguments, "theirs"))]
    )
    our = program("verifiable-share-consumer", *arguments, "ours")
    assert our.returncode == their.status == 0, our.stderr
    assert events(our.stdout) == events(their.output)


def events(output: str) -> dict[str, object]:
    """Return the keys of each kind of event, in their order, and what the events say together."""
    told = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    kinds: dict[str, object] = {event["name"]: list(event) for event in told}
    for name in ("records_consumed", "offsets_acknowledged"):
        parts = [part for event in told if event["name"] == name for part in event["partitions"]]
        kinds[f"offsets of {name}"] = sorted(one for part in parts for one in part["offsets"])
        kinds[f"parts of {name}"] = {tuple(part) for part in parts}
    kinds["records"] = [
        {**event, "timestamp": 0} for event in told if event["name"] == "record_data"
    ]
    return kinds


@pytest.mark.parametrize(
    ("tool", "more"),
    [("console-share-consumer", ()), ("share-consumer-perf-test", ("--num-records", "9"))],
)
def test_a_share_consumer_leaves_its_group_when_it_is_stopped(
    broker: LocalBroker, capsys: pytest.CaptureFixture[str], tool: str, more: tuple[str, ...]
) -> None:
    broker.create_topic("jobs", 1)
    to = ("--bootstrap-server", broker.bootstrap_servers)

    def members() -> int:
        capsys.readouterr()
        share_groups.main([*to, "--describe", "--group", "packers", "--members"])
        return capsys.readouterr().out.count("share-consumer")

    command = [sys.executable, "-m", "broker", tool, *to, "--topic", "jobs", "--group", "packers"]
    with subprocess.Popen(
        [*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        until(lambda: members() == 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    assert members() == 0


def test_the_metrics_of_the_coordinators_have_kafkas_names(broker: LocalBroker) -> None:
    broker.create_topic("jobs", 1)
    with ShareMember(broker.bootstrap_servers, "packers"):
        assert broker.http_url is not None
        page = urlopen(f"{broker.http_url}/metrics").read().decode()
    groups, states = "kafka_server_group_coordinator", "kafka_server_share_coordinator"
    for line in (
        f'{groups}_metrics_group_count{{protocol="share"}} 1.0',
        f'{groups}_metrics_share_group_count{{state="stable"}} 1.0',
        f'{groups}_metrics_share_group_count{{state="empty"}} 0.0',
        f"{states}_metrics_write_latency_count",
        f"{states}_metrics_write_latency_avg",
    ):
        assert line in page, line
    # A first epoch for the member, and one for the partition that has got its state.
    assert number(page, f"{groups}_metrics_share_group_rebalance_total") == 2
    # The leader of the partition has written where it begins.
    assert number(page, f"{states}_metrics_write_total") >= 1


def test_the_offsets_of_a_cluster_without_share_groups_are_known_at_once() -> None:
    with LocalBroker() as broker, RawConnection(broker.bootstrap_servers) as connection:
        broker.create_topic("jobs", 2)
        connection.find_coordinator("packers")
        topic = describing.DescribeShareGroupOffsetsRequestTopic(
            topic_name="jobs", partitions=[0, 1]
        )
        group = describing.DescribeShareGroupOffsetsRequestGroup(group_id="packers", topics=[topic])
        began = time.monotonic()
        response = cast(
            describing.DescribeShareGroupOffsetsResponse,
            connection.ask(
                ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
                1,
                describing.DescribeShareGroupOffsetsRequest(groups=[group]),
            ),
        )
        assert time.monotonic() - began < AT_ONCE_SECONDS
        (described,) = response.groups
        assert described.error_code == ErrorCode.NONE, described
        (of_topic,) = described.topics
        assert [
            (each.partition_index, each.start_offset, each.lag, each.error_code)
            for each in of_topic.partitions
        ] == [(0, -1, -1, ErrorCode.NONE), (1, -1, -1, ErrorCode.NONE)]


def number(page: str, name: str) -> float:
    (found,) = re.findall(rf"^{name} (\S+)$", page, re.MULTILINE)
    return float(found)


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "broker", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def lines(output: str) -> list[list[str]]:
    """Return the words of the lines; epochs differ, for a group was used once more."""
    numbers_of = re.compile(r"(?<= )\d+(?= +\d+ +\d+$)|(?<= )\d+(?= +\d+$)")
    found = [numbers_of.sub("N", line).split() for line in output.splitlines() if line.strip()]
    return sorted(found)


class ShareMember:
    """A member of a share group that has its partitions, and leaves at the end."""

    def __init__(self, bootstrap: str, group_id: str) -> None:
        self._consumer = confluent_kafka.ShareConsumer(
            {"bootstrap.servers": bootstrap, "group.id": group_id, "log_level": 0}
        )
        self._consumer.subscribe(["jobs"])

    def __enter__(self) -> None:
        for _ in range(20):
            self._consumer.poll(0.1)

    def __exit__(self, *_: object) -> None:
        self._consumer.close()
