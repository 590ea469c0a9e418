"""What a streams group refuses, and in which words: beside Apache Kafka, with the same requests."""

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka.admin
import pytest

from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from common.kafka.protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from millstream.testing import LocalBroker
from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.raw_kafka import RawConnection
from tests.lib.streams_group_scenario import topology
from tests.lib.streams_member import GROUP, StreamsMember
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

DIFFERENT = {
    # Apache Kafka fails here: UNKNOWN_SERVER_ERROR.
    "topology: an epoch below 0": ErrorCode.INVALID_REQUEST,
    "topology: copartitioned without being there": ErrorCode.STREAMS_INVALID_TOPOLOGY,
    # It accepts another process of a member that holds tasks, which two processes then have.
    "later: another process": ErrorCode.INVALID_REQUEST,
}
Answer = tuple[int, str | None]
QUICK = {"group.streams.initial.rebalance.delay.ms": "0"}
JOINS: dict[str, dict[str, object]] = {
    "no group": {"group_id": ""},
    "no member": {"member_id": ""},
    "no rack": {"rack_id": ""},
    "a static member": {"instance_id": "i"},
    "a static member leaves": {"instance_id": "i", "member_epoch": -2},
    "a static member without a name leaves": {"member_epoch": -2},
    "epoch -3": {"member_epoch": -3, "topology": None},
    "no timeout": {"rebalance_timeout_ms": -1},
    "no topology": {"topology": None},
    "tasks": {"active_tasks": [TaskIds(subtopology_id="0", partitions=[0])]},
    "no list of tasks": {"standby_tasks": None},
    "warm-up tasks": {"warmup_tasks": [TaskIds(subtopology_id="0", partitions=[0])]},
    "task offsets": {"task_offsets": [TaskOffset()]},
    "end offsets": {"task_end_offsets": []},
    "an unknown group": {"member_epoch": 5, "topology": None},
}
TOPOLOGIES: dict[str, Topology] = {
    "an epoch below 0": topology(epoch=-1),
    "a pattern": topology(source_topic_regex=["o.*"]),
    "a changelog of three partitions": topology(
        state_changelog_topics=[TopicInfo(name="c", partitions=3)]
    ),
    "a name with a blank": topology(source_topics=["a b"]),
    "nobody writes the repartition topic": topology(
        repartition_source_topics=[TopicInfo(name="never-written")]
    ),
    "a cycle of repartition topics": Topology(
        subtopologies=[
            Subtopology(
                subtopology_id=name,
                repartition_sink_topics=[sink],
                repartition_source_topics=[TopicInfo(name=source)],
            )
            for name, sink, source in (("0", "a", "b"), ("1", "b", "a"))
        ]
    ),
    "copartitioned without being there": Topology(
        subtopologies=[
            Subtopology(
                subtopology_id="0",
                source_topics=["orders"],
                copartition_groups=[CopartitionGroup(source_topics=[0, 7])],
            )
        ]
    ),
}
LATER: dict[str, dict[str, object]] = {
    "a topology": {"topology": topology()},
    "an epoch too far": {"member_epoch": 77},
    "an epoch of long ago": {"member_epoch": 1_000_000},
    "an unknown member": {"member_id": "nobody"},
    "an unknown subtopology": {"active_tasks": [TaskIds(subtopology_id="9", partitions=[0])]},
    "an unknown task": {"active_tasks": [TaskIds(subtopology_id="0", partitions=[99])]},
    "a task below 0": {"standby_tasks": [TaskIds(subtopology_id="0", partitions=[-1])]},
    "half of the lists": {"standby_tasks": None},
    "another process": {"process_id": "elsewhere"},
    "warm-up tasks": {"warmup_tasks": [TaskIds(subtopology_id="0", partitions=[0])]},
    "an unknown member leaves": {"member_id": "nobody", "member_epoch": -1},
}


def await_coordinator(bootstrap: str) -> None:
    """Wait until the group has a coordinator that has read its partition."""
    ask_for = FindCoordinatorRequest(coordinator_keys=[GROUP])
    with RawConnection(bootstrap) as connection:

        def is_found() -> bool:
            answer = connection.ask(ApiKey.FIND_COORDINATOR, 4, ask_for)
            assert isinstance(answer, FindCoordinatorResponse)
            return answer.coordinators[0].error_code == ErrorCode.NONE

        until(is_found)
    with StreamsMember(bootstrap, "early") as early:
        gone = {"member_epoch": 5, "topology": None}
        until(lambda: early.beat(**gone).error_code == ErrorCode.GROUP_ID_NOT_FOUND)


def refusals(bootstrap: str) -> dict[str, Answer]:
    """Send every wrong request; a member that has its tasks keeps them."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    orders = confluent_kafka.admin.NewTopic("orders", 2, 1)
    for created in admin.create_topics([orders]).values():
        created.result(30)
    found: dict[str, Answer] = {}

    def note(what: str, member: StreamsMember, **changes: object) -> None:
        answer = member.beat(**changes)
        found[what] = answer.error_code, answer.error_message

    await_coordinator(bootstrap)
    with StreamsMember(bootstrap, "wrong") as wrong:
        for what, changes in JOINS.items():
            note(f"join: {what}", wrong, **changes)
        for what, bad in TOPOLOGIES.items():
            note(f"topology: {what}", wrong, topology=bad)
    with StreamsMember(bootstrap, "right") as right:
        until(right.has_all)
        tasks, epoch = right.active, right.epoch
        for what, changes in LATER.items():
            note(f"later: {what}", right, **changes)
        with StreamsMember(bootstrap, "another") as another:
            for epoch_of_topology in (0, 1):
                changed = topology(epoch=epoch_of_topology, source_topics=["orders"])
                note(f"changed topology {epoch_of_topology}", another, topology=changed)
        right.beat()
        assert (right.active, right.epoch) == (tasks, epoch)
    return found


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[dict[str, Answer]]:
    with running_node(kafka_libs(), tmp_path, QUICK) as bootstrap:
        yield refusals(bootstrap)


def test_what_is_wrong_is_refused_as_apache_kafka_refuses_it(theirs: dict[str, Answer]) -> None:
    with LocalBroker(**QUICK) as broker:
        ours = refusals(broker.bootstrap_servers)
    assert {code for code, _ in ours.values()} >= {
        ErrorCode.INVALID_REQUEST,
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert {what: ours.pop(what)[0] for what in DIFFERENT} == DIFFERENT
    assert {what: theirs.pop(what)[0] for what in DIFFERENT}.items().isdisjoint(DIFFERENT.items())
    assert ours == theirs
