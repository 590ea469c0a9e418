"""Consumer groups (KIP-848) with unmodified clients: librdkafka's, Java's, and Kafka's tools."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import confluent_kafka
import confluent_kafka.admin
import pytest

from millstream.launch import program_command, program_environment
from millstream.testing import LocalBroker
from tests.lib.apache_kafka import Tool, kafka_libs, run_tools
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

TOPIC = "orders"
COUNT = 60


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def bootstrap(data_folder: Path) -> Iterator[str]:
    settings = {
        "log_dirs": str(data_folder),
        "offsets_topic_num_partitions": 1,
        "group_initial_rebalance_delay_ms": 0,
    }
    with LocalBroker(num_partitions=3, **settings) as broker:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        topic = confluent_kafka.admin.NewTopic(TOPIC, 3, 1)
        for created in admin.create_topics([topic]).values():
            created.result(30)
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(COUNT):
            producer.produce(TOPIC, str(number), partition=number % 3)
        assert producer.flush(30) == 0
        yield broker.bootstrap_servers


class Member(threading.Thread):
    """A member that reads until it is stopped, and notes what it has as it is told.

    It is told of what is taken before it says that it let go: whoever is given a partition that
    another one still has in its notes has it too early.
    """

    owned_twice: ClassVar[list[str]] = []
    owners: ClassVar[dict[tuple[str, int], "Member"]] = {}

    def __init__(self, bootstrap: str, group: str, topic: str = TOPIC, **settings: object) -> None:
        super().__init__(daemon=True)
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **settings,
            }
        )
        self.group = group
        self.is_stopping = threading.Event()
        self.values: set[bytes] = set()
        self.assigned: set[int] = set()
        self.wants_commit = threading.Event()
        self.consumer.subscribe(
            [topic], on_assign=self.gain, on_revoke=self.lose, on_lost=self.lose
        )
        self.start()

    def gain(self, _: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
        for each in partitions:
            other = self.owners.get((self.group, each.partition))
            if other not in (None, self):
                self.owned_twice.append(f"{self.group} {each.partition}")
            self.owners[self.group, each.partition] = self
            self.assigned.add(each.partition)

    def lose(self, _: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
        for each in partitions:
            self.owners.pop((self.group, each.partition), None)
            self.assigned.discard(each.partition)

    def run(self) -> None:
        while not self.is_stopping.is_set():
            message = self.consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.values.add(message.value())
            if self.wants_commit.is_set() and self.assigned:
                offsets = [confluent_kafka.TopicPartition(TOPIC, each, 20) for each in range(3)]
                self.consumer.commit(offsets=offsets, asynchronous=False)
                self.wants_commit.clear()
        self.consumer.close()

    def partitions(self) -> int:
        return len(self.assigned)


@contextmanager
def running(*members: Member) -> Iterator[None]:
    try:
        yield
    finally:
        for member in members:
            member.is_stopping.set()
        for member in members:
            member.join()
    assert not Member.owned_twice


CONSUMER = {"group.protocol": "consumer"}


def test_members_share_a_topic_and_take_over_from_who_leaves(bootstrap: str) -> None:
    members = [Member(bootstrap, "shared", **CONSUMER) for _ in range(3)]
    with running(*members):
        until(lambda: [member.partitions() for member in members] == [1, 1, 1])
        until(lambda: len(set().union(*(member.values for member in members))) == COUNT)
        members[0].is_stopping.set()
        members[0].join()
        until(lambda: sum(member.partitions() for member in members[1:]) == 3)


def test_a_pattern_is_evaluated_by_the_broker(bootstrap: str) -> None:
    member = Member(bootstrap, "pattern", "^ord.*", **CONSUMER)
    with running(member):
        until(lambda: len(member.values) == COUNT)


def test_a_group_changes_to_the_consumer_protocol_and_back_while_it_reads(bootstrap: str) -> None:
    strategy = {"partition.assignment.strategy": "cooperative-sticky"}
    old = [Member(bootstrap, "migrating", **strategy) for _ in range(2)]
    with running(*old):
        until(lambda: sum(member.partitions() for member in old) == 3)
        new = [Member(bootstrap, "migrating", **CONSUMER)]
        with running(*new):
            until(lambda: new[0].partitions() == 1)
            until(lambda: sum(member.partitions() for member in old) == 2)
        until(lambda: sum(member.partitions() for member in old) == 3)


def tool(name: str, *arguments: str) -> Tool:
    return Tool(f"org.apache.kafka.tools.{name}", arguments)


@pytest.fixture(scope="module")
def printed(bootstrap: str, data_folder: Path) -> dict[str, str]:
    """What Java's clients and tools print beside living groups of both kinds."""
    libs = kafka_libs()
    server = ("--bootstrap-server", bootstrap)
    console = (*server, "--topic", TOPIC, "--from-beginning", "--max-messages", str(COUNT))
    describe = (*server, "--describe", "--group")
    internal = (
        *server,
        "--topic",
        "__consumer_offsets",
        "--from-beginning",
        "--timeout-ms",
        "3000",
    )
    formatter = "org.apache.kafka.tools.consumer"
    (log,) = (str(data_folder / "__consumer_offsets-0" / f"{0:020}.log"),)
    tools = {
        "read": tool(
            "consumer.ConsoleConsumer", *console, "--group", "java",
            "--consumer-property", "group.protocol=consumer",
        ),
        "list": tool("consumer.group.ConsumerGroupCommand", *server, "--list", "--type"),
        "living": tool("consumer.group.ConsumerGroupCommand", *describe, "living"),
        "state": tool("consumer.group.ConsumerGroupCommand", *describe, "living", "--state"),
        "members": tool(
            "consumer.group.ConsumerGroupCommand", *describe, "living", "--members", "--verbose"
        ),
        "classic": tool("consumer.group.ConsumerGroupCommand", *describe, "classic"),
        "java": tool("consumer.group.ConsumerGroupCommand", *describe, "java"),
        "offsets": tool(
            "consumer.ConsoleConsumer", *internal, "--formatter",
            f"{formatter}.OffsetsMessageFormatter",
        ),
        "groups": tool(
            "consumer.ConsoleConsumer", *internal, "--formatter",
            f"{formatter}.GroupMetadataMessageFormatter",
        ),
        "records": tool("DumpLogSegments", "--offsets-decoder", "--files", log),
    }  # fmt: skip
    members = [Member(bootstrap, "living", **CONSUMER), Member(bootstrap, "classic")]
    with running(*members):
        until(lambda: all(len(member.values) == COUNT for member in members))
        for member in members:
            member.wants_commit.set()
            until(lambda: not member.wants_commit.is_set())  # noqa: B023 - used at once
        results = run_tools(libs, tools.values())
    for name, result in zip(tools, results, strict=True):
        assert result.status == 0 or name in {"offsets", "groups"}, (name, result)
    return {name: each.output for name, each in zip(tools, results, strict=True)}


def test_javas_console_consumer_reads_as_a_member(printed: dict[str, str]) -> None:
    values = [int(line) for line in printed["read"].splitlines() if line.isdigit()]
    assert sorted(values) == list(range(COUNT))


def test_kafkas_tool_lists_and_describes_groups_of_both_kinds(printed: dict[str, str]) -> None:
    assert {tuple(line.split()[:2]) for line in printed["list"].splitlines()} >= {
        ("living", "Consumer"), ("classic", "Classic"), ("java", "Consumer"),
    }  # fmt: skip
    for name in ("living", "classic"):
        rows = [line.split() for line in printed[name].splitlines() if f" {TOPIC} " in line]
        assert [row[2:6] for row in rows] == [[str(each), "20", "20", "0"] for each in range(3)]
    assert "Stable" in printed["state"]
    assert "uniform" in printed["state"]
    assert f"{TOPIC}:0,1,2" in printed["members"]
    assert len([line for line in printed["java"].splitlines() if f" {TOPIC} " in line]) == 3


def test_kafkas_formatters_and_dump_read_our_records(printed: dict[str, str]) -> None:
    assert '"group":"living"' in printed["offsets"]
    assert '"group":"classic"' in printed["groups"]
    # The epoch of the group, its members, its targets, what they have, and the pattern's topics.
    for kind in (3, 5, 6, 7, 8, 16):
        assert f'{{"type":"{kind}",' in printed["records"], kind


def test_our_dump_of_the_records_is_kafkas(printed: dict[str, str], data_folder: Path) -> None:
    log = str(data_folder / "__consumer_offsets-0" / f"{0:020}.log")
    command = program_command("broker", "dump-log", "--offsets-decoder", "--files", log)
    ours = subprocess.run(
        command, env=program_environment(), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    # The group goes on to write while and after Kafka's tool reads.
    theirs = printed["records"].splitlines()
    assert len(theirs) > 20
    assert ours[: len(theirs) - 1] == theirs[:-1]
