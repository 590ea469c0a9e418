"""Streams groups on a broker: members by our own codec, and Apache Kafka's tool and application."""

import re

import confluent_kafka
import pytest

from broker.cli import streams_groups
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from common.kafka.protocol.messages.streams_group_heartbeat import (
    TopicInfo,
)
from millstream.testing import LocalBroker
from tests.lib.apache_kafka import TOOLS, Tool, ToolResult, kafka_libs, run_tools
from tests.lib.streams_group_scenario import topology
from tests.lib.streams_member import GROUP, StreamsMember
from tests.lib.waiting import until

GROUPS = f"{TOOLS}.streams.StreamsGroupCommand"
QUICK = {"group.streams.initial.rebalance.delay.ms": 0}


def test_a_group_gets_its_internal_topics_its_tasks_and_a_description() -> None:
    with LocalBroker(**QUICK) as broker:
        broker.create_topic("orders", 2)
        with StreamsMember(broker.bootstrap_servers, "a") as member:
            until(member.has_all)
            described = member.connection.ask(
                ApiKey.STREAMS_GROUP_DESCRIBE, 0, StreamsGroupDescribeRequest(group_ids=[GROUP])
            )
        (group,) = described.groups  # type: ignore[attr-defined]
        assert (group.group_state, len(group.members)) == ("Stable", 1)
        (changelog,) = group.topology.subtopologies[1].state_changelog_topics
        assert (changelog.name, changelog.partitions) == ("counts", 2)


def test_what_prevents_the_creation_of_a_topic_is_told() -> None:
    settings = {"offsets.topic.replication.factor": 1, **QUICK}
    with LocalBroker(**settings) as broker:
        broker.create_topic("orders", 2)
        too_many = topology(state_changelog_topics=[TopicInfo(name="counts", replication_factor=9)])
        with StreamsMember(broker.bootstrap_servers, "a") as member:
            member.beat(topology=too_many)

            def is_told() -> bool:
                status = member.beat().status or ()
                return any("Creation failed: counts (" in each.status_detail for each in status)

            until(is_told)


@pytest.mark.parametrize("epoch", [5, -1, -2, -9])
def test_a_group_that_is_not_there_is_not_found_or_the_request_is_invalid(epoch: int) -> None:
    with LocalBroker() as broker, StreamsMember(broker.bootstrap_servers, "a") as member:
        code = member.beat(member_epoch=epoch, topology=None).error_code
        wanted = ErrorCode.INVALID_REQUEST if epoch < -1 else ErrorCode.GROUP_ID_NOT_FOUND
        assert code == wanted


LOOKS = (
    ("--list",),
    ("--list", "--state"),
    ("--list", "--state", "stable,empty"),
    *(
        ("--describe", "--group", GROUP, *view, *more)
        for view in ((), ("--offsets",), ("--members",), ("--state",))
        for more in ((), ("--verbose",))
    ),
    ("--delete", "--group", GROUP),
    ("--describe", "--all-groups", "--state"),
)
RESETS = (
    *(
        ("--reset-offsets", "--group", GROUP, *scope, *rule, "--dry-run")
        for scope in (("--all-input-topics",), ("--input-topic", "orders:0"))
        for rule in (("--to-earliest",), ("--to-latest",), ("--shift-by", "1"), ("--to-current",))
    ),
    (
        *("--reset-offsets", "--group", GROUP, "--all-input-topics", "--dry-run"),
        *("--to-offset", "1", "--export"),
    ),
    ("--describe", "--group", GROUP, "--state"),
)
CHANGES = (
    ("--reset-offsets", "--group", GROUP, "--all-input-topics", "--to-earliest", "--execute"),
    ("--delete-offsets", "--group", GROUP, "--input-topic", "orders"),
    ("--delete", "--group", GROUP, "--delete-all-internal-topics"),
    ("--list",),
)


@pytest.mark.interop
def test_our_tool_prints_what_apaches_prints(capsys: pytest.CaptureFixture[str]) -> None:
    views = (*LOOKS, *RESETS, *CHANGES)
    with LocalBroker(**QUICK) as one, LocalBroker(**QUICK) as other:
        servers = [each.bootstrap_servers for each in (one, other)]
        for broker in (one, other):
            broker.create_topic("orders", 2)
            _send_orders(broker.bootstrap_servers)
        theirs: list[ToolResult] = []
        ours: list[str] = []
        for phase in (LOOKS, RESETS + CHANGES):
            with StreamsMember(servers[0], "a") as first, StreamsMember(servers[1], "a") as second:
                for member in (first, second):
                    until(member.has_all)
                    member.commit("orders", 0, 2)
                    member.commit("by-key", 1, 0)
                    if phase is not LOOKS:
                        member.beat(member_epoch=-1)
                theirs += run_tools(
                    kafka_libs(),
                    [Tool(GROUPS, ("--bootstrap-server", servers[0], *view)) for view in phase],
                )
                for view in phase:
                    capsys.readouterr()
                    streams_groups.main(["--bootstrap-server", servers[1], *view])
                    ours.append(capsys.readouterr().out)
    for view, their, our in zip(views, theirs, ours, strict=True):
        assert _words(our) == _words(their.output), view
    assert len(_words(ours[0])) == 1
    assert not _words(ours[-1])


def _words(output: str) -> list[list[str]]:
    """Return the words of the lines without errors, which we print elsewhere, and ports."""
    lines = re.sub(r"(127\.0\.0\.1):\d+", r"\1", output).splitlines()
    return [line.split() for line in lines if line.strip() and not line.startswith(("Error", "*"))]


def _send_orders(bootstrap: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(5):
        producer.produce("orders", value=b"order", partition=number % 2)
    producer.flush()
