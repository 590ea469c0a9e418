"""The command-line tools against our broker, and against Apache Kafka beside Kafka's own tools."""

import io
import json
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
import pytest

from common.kafka.protocol.api_keys import API_VERSION_RANGES
from millstream.launch import program_command, program_environment
from millstream.testing import LocalBroker
from tests.lib.apache_kafka import Tool, ToolResult, kafka_libs, run_tools, running_node
from tests.lib.java import java
from tests.lib.running_program import running
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

OURS = program_environment()
TOOLS = "org.apache.kafka.tools"
Run = Callable[..., tuple[int, list[str]]]

MAIN_CLASSES = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
BY_COMMAND = {"cluster"}  # their bootstrap servers are an argument of the command


def arguments_of(tool: str, bootstrap: str, line: str) -> list[str]:
    words = line.split()
    place = 1 if tool in BY_COMMAND else 0
    return [*words[:place], "--bootstrap-server", bootstrap, *words[place:]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[[str], Run]:
    """Runs a tool in this process: `run(bootstrap)("topics", "--list")` gives status and lines."""

    def bound(bootstrap: str) -> Run:
        def run_one(tool: str, line: str) -> tuple[int, list[str]]:
            capsys.readouterr()
            main = import_module(f"broker.cli.{tool.replace('-', '_')}").main
            status = main(arguments_of(tool, bootstrap, line))
            return status, capsys.readouterr().out.splitlines()

        return run_one

    return bound


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with LocalBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def tool(run: Callable[[str], Run], bootstrap: str) -> Run:
    return run(bootstrap)


def test_a_topic_lives_and_dies(tool: Run) -> None:
    created = tool("topics", "--create --topic a.b --partitions 2 --config retention.ms=1000")
    assert created[0] == 0
    assert created[1][-1] == "Created topic a.b."
    status, lines = tool("topics", "--create --topic a.b")
    assert status == 1
    assert lines[-1].startswith("Error while executing topic command : ")
    assert tool("topics", "--create --topic a.b --if-not-exists")[0] == 0
    assert tool("topics", "--alter --topic a.b --partitions 3") == (0, [])
    assert tool("topics", "--list --topic a.*") == (0, ["a.b"])
    status, lines = tool("topics", "--describe --topic a.b")
    assert status == 0
    assert re.match(
        r"Topic: a.b\tTopicId: \S{22}\tPartitionCount: 3\tReplicationFactor: 1", lines[0]
    )
    assert "retention.ms=1000" in lines[0]
    assert [line.split("\t")[2] for line in lines[1:]] == [f"Partition: {n}" for n in range(3)]
    paged = tool("topics", "--describe --topic a.b --partition-size-limit-per-response 1")
    assert paged == (0, lines)
    by_id = tool("topics", f"--describe --topic-id {lines[0].split()[3]}")
    assert by_id[1][0] == lines[0]
    assert tool("topics", "--describe --under-replicated-partitions") == (0, [])
    assert tool("topics", "--delete --topic a.b") == (0, [])
    assert tool("topics", "--delete --topic a.b")[0] == 1
    assert tool("topics", "--delete --topic a.b --if-exists") == (0, [])


def test_settings_of_a_topic_and_a_broker(tool: Run) -> None:
    assert tool("topics", "--create --topic settings")[0] == 0
    done = (0, ["Completed updating config for topic settings."])
    changed = tool(
        "configs", "--alter --topic settings --add-config cleanup.policy=[compact,delete]"
    )
    assert changed == done
    status, lines = tool("configs", "--describe --topic settings")
    assert (status, lines[0]) == (0, "Dynamic configs for topic settings are:")
    assert lines[1].startswith(
        "  cleanup.policy=compact,delete sensitive=false "
        "synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete"
    )
    assert tool("configs", "--alter --topic settings --delete-config cleanup.policy") == done
    assert tool("configs", "--describe --topic settings")[1][1:] == []
    assert tool("configs", "--alter --topic settings --add-config nosuch=1")[0] == 1
    twice = "--alter --topic settings --add-config retention.ms=1 --delete-config retention.ms"
    assert tool("configs", twice)[0] == 1
    gone = ["The topic 'nosuch' doesn't exist and doesn't have dynamic config."]
    assert tool("configs", "--describe --topic nosuch") == (0, gone)
    status, lines = tool("configs", "--describe --broker 1 --all")
    assert status == 0
    assert any(line.startswith("  node.id=1 sensitive=false") for line in lines)


def test_the_cluster_and_moves_that_change_nothing(tool: Run, tmp_path: Path) -> None:
    status, lines = tool("cluster", "cluster-id")
    assert status == 0
    assert re.fullmatch(r"Cluster ID: \S{22}", lines[0])
    status, lines = tool("cluster", "list-endpoints")
    assert (status, lines[1].split()[0]) == (0, "1")
    assert tool("topics", "--create --topic moves --partitions 2")[0] == 0
    partitions = [{"topic": "moves", "partition": n, "replicas": [1]} for n in range(2)]
    file = tmp_path / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    flag = f"--reassignment-json-file {file}"
    assert tool("reassign-partitions", "--list") == (0, ["No partition reassignments found."])
    status, lines = tool("reassign-partitions", f"--verify --preserve-throttles {flag}")
    assert (status, lines[:3]) == (
        0,
        [
            "Status of partition reassignment:",
            "Reassignment of partition moves-0 is completed.",
            "Reassignment of partition moves-1 is completed.",
        ],
    )
    status, lines = tool("leader-election", "--election-type preferred --topic moves --partition 0")
    assert (status, lines) == (0, ["Valid replica already elected for partitions moves-0"])
    status, lines = tool("features", "describe")
    assert status == 0
    assert all(line.startswith("Feature: ") for line in lines)


def test_records_and_groups_come_and_go(tool: Run, bootstrap: str, tmp_path: Path) -> None:
    assert tool("topics", "--create --topic kept --partitions 2")[0] == 0
    produce(bootstrap, "kept")
    file = tmp_path / "offsets.json"
    entries = [
        {"topic": topic, "partition": 0, "offset": offset}
        for topic, offset in (("kept", 40), ("nosuch", 1))
    ]
    file.write_text(json.dumps({"version": 1, "partitions": entries}))
    assert tool("delete-records", f"--offset-json-file {file}") == (
        1,
        [
            "Executing records delete operation",
            "Records delete operation completed:",
            "partition: kept-0\tlow_watermark: 40",
            "partition: nosuch-0\terror: This server does not host this topic-partition.",
        ],
    )
    assert tool("get-offsets", "--topic kept --time earliest") == (0, ["kept:0:40", "kept:1:0"])
    set_back = "--reset-offsets --group readers --topic kept --to-offset 7 --execute"
    status, lines = tool("consumer-groups", set_back)
    assert (status, [line.split()[-1] for line in lines[1:]]) == (0, ["NEW-OFFSET", "40", "0"])
    status, lines = tool("consumer-groups", "--describe --group readers")
    assert (status, [line.split()[3:6] for line in lines[2:]]) == (
        0,
        [["40", "100", "60"], ["0", "0", "0"]],
    )
    deleted = tool("consumer-groups", "--delete-offsets --group readers --topic kept:0")
    assert deleted[1][-1].split() == ["kept", "0", "Successful"]
    assert len(tool("consumer-groups", "--describe --group readers")[1]) == 3
    status, lines = tool("groups", "--list --consumer")
    assert (status, lines[1].split()) == (0, ["readers", "Classic"])
    assert tool("consumer-groups", "--delete --group readers")[0] == 0
    assert tool("consumer-groups", "--describe --group readers")[0] == 1
    assert tool("broker-api-versions", "")[1][0].endswith("(id: 1 rack: null isFenced: false) -> (")


@pytest.fixture
def publish(tool: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bytes], int]:
    """Runs console-producer: `publish("--topic t", b"lines")` gives its status."""

    def publish_lines(line: str, lines: bytes) -> int:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
        return tool("console-producer", line)[0]

    return publish_lines


def test_lines_go_in_and_come_out(tool: Run, publish: Callable[[str, bytes], int]) -> None:
    for topic in ("console", "other"):
        assert tool("topics", f"--create --topic {topic}")[0] == 0
    keyed = "--topic console --reader-property parse.key=true"
    assert publish(f"{keyed} --compression-codec", b"k1\tv1\nk2\tv2\r\nk3\t\n") == 0
    assert publish(f"{keyed} --sync --request-required-acks 1", b"k4\tv4\nbad\nk5\tv5\n") == 1
    assert publish("--topic other --producer-property linger.ms=0", "\u00fc\n".encode()) == 0
    printed = "--formatter-property print.key=true --formatter-property print.offset=true"
    from_1 = f"--topic console --partition 0 --offset 1 --max-messages 3 {printed}"
    assert tool("console-consumer", from_1) == (
        0,
        ["Offset:1\tk2\tv2", "Offset:2\tk3\t", "Offset:3\tk4\tv4"],
    )
    both = "--include console|oth.r --from-beginning --group lines --max-messages"
    first, second = (tool("console-consumer", f"{both} {count}")[1] for count in (2, 3))
    assert sorted(first + second) == ["", "v1", "v2", "v4", "\u00fc"]
    assert tool("console-consumer", f"{both} 1 --timeout-ms 300") == (0, [])
    assert tool("console-consumer", "--topic console --from-beginning --max-messages 0") == (0, [])


def test_a_group_commits_where_it_has_read_nothing(
    tool: Run, publish: Callable[[str, bytes], int]
) -> None:
    """As Kafka's consumer does: the next run, which begins at the end, misses nothing."""
    for topic in ("few-a", "few-b"):
        assert tool("topics", f"--create --topic {topic}")[0] == 0
        assert publish(f"--topic {topic}", f"{topic}\n".encode()) == 0
    both = "--include few-. --group few --timeout-ms 20000"
    first = tool("console-consumer", f"{both} --from-beginning --max-messages 1")[1]
    second = tool("console-consumer", f"{both} --max-messages 1")[1]
    assert sorted(first + second) == ["few-a", "few-b"]


def test_performance_is_measured(tool: Run) -> None:
    assert tool("topics", "--create --topic fast")[0] == 0
    many = "--topic fast --num-records 2000 --throughput"
    status, lines = tool("producer-perf-test", f"{many} -1 --record-size 50 --print-metrics")
    assert status == 0
    sent = r"2000 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), .* \d+ ms 99.9th\."
    assert re.fullmatch(sent, lines[0])
    assert lines[2].startswith("Metric Name")
    slow = "--topic fast --num-records 20 --throughput 200 --payload-monotonic"
    status, lines = tool("producer-perf-test", f"{slow} --warmup-records 10")
    assert (status, lines[2].split()[:3]) == (0, ["10", "steady", "state"])
    assert float(lines[1].split()[3]) <= 220
    status, lines = tool("consumer-perf-test", "--topic fast --num-records 2020")
    assert (status, lines[1].split(", ")[4]) == (0, "2020")


AWAY = "--bootstrap-server 127.0.0.1:1"
SOON = "--command-property max.block.ms=200"
FEW = {
    "producer-perf-test": "--num-records 2 --throughput -1 --record-size 10",
    "consumer-perf-test": "--num-records 2 --timeout 200",
    "console-producer": "",
}


class Told(NamedTuple):
    """How a tool ended, and what it said."""

    status: int
    output: str
    errors: str


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Told]:
    """Runs a tool that says itself whom it asks, with a line on its standard input."""

    def run_one(tool: str, line: str) -> Told:
        main = import_module(f"broker.cli.{tool.replace('-', '_')}").main
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\n")))
        with redirect_stdout(io.StringIO()) as output, redirect_stderr(io.StringIO()) as errors:
            status = main(f"{FEW[tool]} {line}".split())
        return Told(status, output.getvalue(), errors.getvalue())

    return run_one


@pytest.mark.parametrize(
    ("tool_name", "line", "said"),
    [
        ("producer-perf-test", f"{AWAY} {SOON}", "Topic t not present in metadata after 200 ms."),
        ("console-producer", f"{AWAY} --max-block-ms 200", "metadata after 200 ms."),
        ("console-producer", f"{AWAY} --max-block-ms 200 --sync", "metadata after 200 ms."),
        ("producer-perf-test", "--bootstrap-server nonsense", "Invalid url in bootstrap.servers"),
        ("producer-perf-test", "--bootstrap-server 127.0.0.1:x", "Invalid url in bootstrap"),
        ("consumer-perf-test", "--bootstrap-server nonsense", "Invalid url in bootstrap.servers"),
        ("producer-perf-test", f"{AWAY} --command-property acks", "Invalid property: acks"),
    ],
)
def test_who_cannot_be_reached_is_given_up_in_time(
    tell: Callable[[str, str], Told], tool_name: str, line: str, said: str
) -> None:
    told = tell(tool_name, f"--topic t {line}")
    assert (told.status, said in told.errors) == (1, True), told


def test_a_topic_that_there_cannot_be_is_named_and_one_that_may_come_waited_for(
    tell: Callable[[str, str], Told], bootstrap: str
) -> None:
    for name in FEW:
        told = tell(name, f"--topic b@d --bootstrap-server {bootstrap}")
        assert (told.status, "Invalid topics: [b@d]" in told.errors) == (1, True), told
    told = tell("consumer-perf-test", f"--include none --bootstrap-server {bootstrap}")
    assert told.status == 0
    assert "WARNING: Exiting before consuming" in told.output
    assert told.output.splitlines()[-1].split(", ")[4] == "0"


@contextmanager
def open_transaction(bootstrap: str, topic: str) -> Iterator[confluent_kafka.Producer]:
    """Have a producer in the middle of its second transaction, of two records."""
    settings = {"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-id"}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions()
    for is_first in (True, False):
        producer.begin_transaction()
        for number in range(2):
            producer.produce(topic, b"%d" % number, partition=0)
        assert producer.flush(30) == 0
        if is_first:
            producer.commit_transaction()
    yield producer


def test_transactions_are_seen_and_ended(
    tool: Run, bootstrap: str, publish: Callable[[str, bytes], int]
) -> None:
    assert tool("topics", "--create --topic paid")[0] == 0
    where = "--topic paid --partition 0"
    with open_transaction(bootstrap, "paid") as producer:
        status, lines = tool("transactions", "list --transactional-id-pattern paid-.*")
        assert (status, lines[1].split()[-1]) == (0, "Ongoing")
        status, lines = tool("transactions", "describe --transactional-id paid-id")
        assert (status, lines[1].split()[-1]) == (0, "paid-0")
        status, lines = tool("transactions", f"describe-producers {where}")
        assert (status, lines[1].split()[-1]) == (0, "3")
        hanging = tool("transactions", "find-hanging --topic paid --max-transaction-timeout 0")
        assert (hanging[0], len(hanging[1])) == (0, 1)
        assert tool("transactions", f"abort {where} --start-offset 7")[0] == 1
        assert tool("transactions", f"abort {where} --start-offset 3") == (0, [])
        assert tool("transactions", f"describe-producers {where}")[1][1].split()[-1] == "None"
        assert tool("transactions", "force-terminate --transactional-id paid-id") == (0, [])
        with pytest.raises(confluent_kafka.KafkaException, match="FENCED"):
            producer.commit_transaction()
    assert publish("--topic paid", b"after\n") == 0
    read = f"{where} --offset earliest --isolation-level read_committed --max-messages 3"
    assert tool("console-consumer", read) == (0, ["0", "1", "after"])
    assert tool("transactions", "describe --transactional-id nosuch")[0] == 1


def verified(bootstrap: str, start: list[str]) -> list[str]:
    """Run a replica verification, which never ends, until it reports; gives what it printed."""
    command = [*start, "--broker-list", bootstrap, "--time", "-2", "--report-interval-ms", "1"]
    command += ["--topics-include", "same", "--max-wait-ms", "200"]
    with running(command, env=OURS, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            # Without the time of day.
            lines.append(line.rstrip().partition(": ")[2])
            if "at offset 100 " in line:
                break
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(60) == 130
    return [lines[0], lines[-1]]


@pytest.mark.timeout(60)
def test_replicas_are_compared_until_it_is_stopped(bootstrap: str, tool: Run) -> None:
    assert tool("topics", "--create --topic same")[0] == 0
    produce(bootstrap, "same")
    ours = program_command("broker", "replica-verification")
    assert verified(bootstrap, ours) == VERIFIED


VERIFIED = [
    "verification process is started",
    "max lag is 0 for partition same-0 at offset 100 among 1 partitions",
]


def produce(bootstrap: str, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(100):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(60) == 0


def comparable(lines: list[str]) -> list[str]:
    # The epoch of the features grows with every record of the metadata log.
    return [re.sub(r"Epoch: \d+", "Epoch: N", line).rstrip() for line in lines]


class Apache(NamedTuple):
    """A node of Apache Kafka, and what its tools say about it."""

    libs: str
    bootstrap: str

    def say(self, lines: list[tuple[str, str]]) -> list[ToolResult]:
        tools = [
            Tool(MAIN_CLASSES[name], tuple(arguments_of(name, self.bootstrap, line)))
            for name, line in lines
        ]
        return run_tools(self.libs, tools)


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apache]:
    libs = kafka_libs()
    with running_node(libs, tmp_path_factory.mktemp("apache")) as bootstrap:
        yield Apache(libs, bootstrap)


SAME = [
    ("topics", "--describe --topic same"),
    ("configs", "--describe --topic same"),
    ("features", "describe"),
]


@pytest.mark.timeout(120)
def test_kafka_s_tools_and_ours_print_the_same_about_apache_kafka(
    run: Callable[[str], Run], apache: Apache
) -> None:
    tool = run(apache.bootstrap)
    create = "--create --topic same --partitions 3 --config retention.ms=1000"
    assert tool("topics", create) == (0, ["Created topic same."])
    for (name, line), theirs in zip(SAME, apache.say(SAME), strict=True):
        assert theirs.status == 0, theirs.errors
        status, lines = tool(name, line)
        assert (status, comparable(lines)) == (0, comparable(theirs.output.splitlines()))
    assert tool("topics", "--delete --topic same")[0] == 0
    until(lambda: tool("topics", "--create --topic same --partitions 1")[0] == 0)
    produce(apache.bootstrap, "same")
    their_tool = [*java(apache.libs, "-Xmx256m"), f"{TOOLS}.ReplicaVerificationTool"]
    theirs_verified = verified(apache.bootstrap, their_tool)
    ours = program_command("broker", "replica-verification")
    assert verified(apache.bootstrap, ours) == theirs_verified == VERIFIED
    status, lines = tool("metadata-quorum", "describe --status")
    assert status == 0
    assert lines[1].split() == ["LeaderId:", "1"]
    assert len(tool("metadata-quorum", "describe --replication")[1]) == 2


SAME_ABOUT_GROUPS = [
    ("groups", "--list"),
    ("groups", "--list --consumer"),
    ("groups", "--list --group-type consumer"),
    ("consumer-groups", "--list"),
    ("consumer-groups", "--list --state --type"),
    ("consumer-groups", "--list --state empty --type classic"),
    ("consumer-groups", "--describe --all-groups"),
    ("consumer-groups", "--describe --group classic --group new --offsets --verbose"),
    ("consumer-groups", "--describe --all-groups --members"),
    ("consumer-groups", "--describe --all-groups --members --verbose"),
    ("consumer-groups", "--describe --all-groups --state"),
    ("consumer-groups", "--describe --all-groups --state --verbose"),
    *(
        ("consumer-groups", f"--reset-offsets --group reset --topic read --dry-run --{rule}")
        for rule in (
            "to-earliest",
            "to-latest",
            "to-current",
            "to-offset 7",
            "to-offset 1000",
            "shift-by -1",
            "by-duration PT1H",
            "by-duration PT0S",
            "to-datetime 2000-01-01T00:00:00.000",
        )
    ),
    ("consumer-groups", "--reset-offsets --group reset --all-topics --to-latest --export"),
    ("consumer-groups", "--reset-offsets --group reset --from-file PLAN --dry-run"),
    ("get-offsets", ""),
    ("get-offsets", "--exclude-internal-topics --time -2"),
    ("get-offsets", "--topic-partitions read:1-,:0 --time earliest-local"),
    ("get-offsets", "--topic read --partitions 0,1 --time -5"),
    ("get-offsets", "--topic read --time -3"),
    ("broker-api-versions", ""),
    ("log-dirs", "--describe --topic-list one,nosuch"),
    ("log-dirs", "--describe --broker-list 1 --topic-list one"),
]


@contextmanager
def reading(bootstrap: str, *groups: dict[str, str]) -> Iterator[None]:
    """Keep a member in each of these groups, with these settings."""
    consumers = []
    for settings in groups:
        settings |= {"bootstrap.servers": bootstrap, "enable.auto.commit": "false"}
        consumers.append(confluent_kafka.Consumer(settings))
        consumers[-1].subscribe(["read"])
    is_over = threading.Event()

    def poll() -> None:
        while not is_over.is_set():
            for consumer in consumers:
                consumer.poll(0.02)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        until(lambda: all(consumer.assignment() for consumer in consumers))
        for consumer in consumers:
            read = [confluent_kafka.TopicPartition("read", 0, 3, leader_epoch=0)]
            if consumer.assignment()[0].partition == 0:
                consumer.commit(offsets=read, asynchronous=False)
        yield
    finally:
        is_over.set()
        thread.join()
        for consumer in consumers:
            consumer.close()


@pytest.mark.timeout(120)
def test_kafka_s_tools_and_ours_print_the_same_about_groups(
    run: Callable[[str], Run], apache: Apache, tmp_path: Path
) -> None:
    tool = run(apache.bootstrap)
    assert tool("topics", "--create --topic read --partitions 2")[0] == 0
    assert tool("topics", "--create --topic one")[0] == 0
    produce(apache.bootstrap, "read")
    reset = "--reset-offsets --group reset --topic read:0,1 --execute"
    assert tool("consumer-groups", f"{reset} --to-offset 5")[0] == 0
    plan = tmp_path / "plan.csv"
    plan.write_text("read,0,3\nread,1,0\n")
    wanted = [(name, line.replace("PLAN", str(plan))) for name, line in SAME_ABOUT_GROUPS]
    members = ({"group.id": "classic", "group.instance.id": "static"}, {"group.id": "classic"})
    new = {"group.id": "new", "group.protocol": "consumer"}
    with reading(apache.bootstrap, *members, new):
        theirs = apache.say(wanted)
        ours = [tool(name, line) for name, line in wanted]
    for (name, line), their, (status, lines) in zip(wanted, theirs, ours, strict=True):
        assert (status, unordered(lines)) == (
            their.status,
            unordered(their.output.splitlines()),
        ), f"{name} {line}"


def test_kafka_s_tools_and_ours_print_the_same_records(
    run: Callable[[str], Run], apache: Apache, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = run(apache.bootstrap)
    assert tool("topics", "--create --topic printed")[0] == 0
    lines = b"a:1,b:NULL\tk1\tv1\nNULL\tk2\tNULL\nNULL\tNULL\t\xc3\xbc\tx\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
    reader = "--reader-property parse.key=true --reader-property parse.headers=true"
    marker = "--reader-property null.marker=NULL"
    assert tool("console-producer", f"--topic printed {reader} {marker}")[0] == 0
    shown = ("timestamp", "partition", "offset", "headers", "key")
    everything = " ".join(f"--formatter-property print.{part}=true" for part in shown)
    assert tool("consumer-groups", PRINTED_GROUP)[0] == 0
    wanted = [
        ("console-consumer", f"--topic printed --partition 0 --offset 1 --max-messages 2 {more}")
        for more in ("", everything, f"{everything} --formatter-property null.literal=-")
    ]
    _, ends = tool("get-offsets", "--topic __consumer_offsets")
    for _, partition, end in (line.split(":") for line in ends):
        for formatter in ("OffsetsMessageFormatter", "GroupMetadataMessageFormatter"):
            name = f"--formatter org.apache.kafka.tools.consumer.{formatter}"
            where = f"--topic __consumer_offsets --partition {partition} --offset earliest"
            wanted += [("console-consumer", f"{where} --max-messages {end} {name}")] * (end != "0")
    for (name, line), theirs in zip(wanted, apache.say(wanted), strict=True):
        status, printed = tool(name, line)
        expected = theirs.output.replace("}{", "}\n{").splitlines()
        assert (status, printed) == (theirs.status, expected), line


SAME_ABOUT_TRANSACTIONS = [
    ("transactions", "list"),
    ("transactions", "list --duration-filter 3600000"),
    ("transactions", "list --transactional-id-pattern no.*"),
    ("transactions", "describe --transactional-id paid-id"),
    ("transactions", "describe-producers --topic paid --partition 0"),
    ("transactions", "describe-producers --topic paid --partition 0 --broker-id 1"),
    ("transactions", "find-hanging --broker-id 1 --max-transaction-timeout 0"),
]


def test_kafka_s_tools_and_ours_print_the_same_about_transactions(
    run: Callable[[str], Run], apache: Apache
) -> None:
    tool = run(apache.bootstrap)
    assert tool("topics", "--create --topic paid")[0] == 0
    with open_transaction(apache.bootstrap, "paid") as producer:
        for (name, line), theirs in zip(
            SAME_ABOUT_TRANSACTIONS, apache.say(SAME_ABOUT_TRANSACTIONS), strict=True
        ):
            status, lines = tool(name, line)
            assert (status, without_duration(lines)) == (
                theirs.status,
                without_duration(theirs.output.splitlines()),
            ), f"{line}: {theirs.errors}"
        states = []
        for end in tool("get-offsets", "--topic __transaction_state")[1]:
            _, partition, count = end.split(":")
            where = f"--topic __transaction_state --partition {partition} --offset earliest"
            formatter = f"--max-messages {count} --formatter TransactionLogMessageFormatter"
            if count != "0":
                lines = tool("console-consumer", f"{where} {formatter}")[1]
                states += [json.loads(line)["value"]["data"]["transactionStatus"] for line in lines]
        assert {0, 1, 2, 4} <= set(states)
        producer.abort_transaction()


def without_duration(lines: list[str]) -> list[str]:
    """The eighth column of a description is how long it has lasted."""
    return ["\t".join(line.split("\t")[:7] + line.split("\t")[8:]).rstrip() for line in lines]


PRINTED_GROUP = "--reset-offsets --group printed --topic printed --to-offset 1 --execute"


def unordered(lines: list[str]) -> list[str]:
    """Kafka's tools go through hash maps; and we say nothing of APIs that we do not speak."""
    ours = {str(key.value) for key in API_VERSION_RANGES}
    kept = []
    for line in lines:
        api = re.match(r"\t\w+\((\d+)\): ", line)
        is_spoken = api is None or api[1] in ours
        kept.append((line if is_spoken else line.partition(" [usable")[0]).rstrip(","))
    return sorted(kept)
