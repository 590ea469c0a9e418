"""Groups are brought into a state, and explained."""

from contextlib import ExitStack
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import AcknowledgeType, TopicPartition

from common.kafka.acls import AclOperation, PermissionType, ResourceType
from common.kafka.errors import ErrorCode
from common.kafka.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    encode_assignment,
)
from common.kafka.protocol.consumer_protocol import TopicPartition as AssignedTopic
from common.kafka.protocol.messages.join_group import JoinGroupRequestProtocol
from common.kafka.protocol.structs import encode_struct
from common.process.clock import timestamp_ms
from tests.lib.coordinator_requests import Asks
from tests.lib.explained import GIVE_UP_SECONDS, Explained
from tests.lib.raw_kafka import RawConnection
from tests.lib.streams_member import GROUP, StreamsMember
from tests.lib.waiting import until

pytestmark = pytest.mark.interop


def test_a_group_that_is_not_there(kafka: Explained, name: str) -> None:
    assert [one.code for one in kafka.group(name).problems] == ["group-missing"]


def test_a_group_without_members(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name, 5)
    kafka.commit(name, {(name, 0): 2})
    (problem,) = kafka.group(name).problems
    assert (problem.code, problem.figures["lag"]) == ("group-without-members", 3)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_has_read_everything(kafka: Explained, name: str, protocol: str) -> None:
    kafka.create(name, 2)
    kafka.produce(name, 3)
    kafka.commit(name, {(name, 0): 3, (name, 1): 0})
    with kafka.members(name, [name], group_protocol=protocol):
        found = kafka.group(name)
        assert not found.problems
        assert found.codes >= {"group-state", "group-up-to-date"}


def test_a_group_whose_offsets_are_gone(kafka: Explained, name: str) -> None:
    kafka.create(name, 2)
    kafka.produce(name, 5)
    kafka.delete_before(name, 4)
    kafka.commit(name, {(name, 0): 2, (name, 1): 9})
    codes = kafka.group(name).codes
    assert codes >= {"group-offset-gone", "group-offset-beyond-end"}


def test_a_group_that_has_committed_nothing(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name, 5)
    with kafka.members(name, [name]):
        found = kafka.group(name)
    (notice,) = [one for one in found.findings if one.code == "group-never-committed"]
    assert notice.figures["records"] == 5


def test_a_group_that_stands_still(kafka: Explained, name: str) -> None:
    kafka.create(name, 2)
    kafka.produce(name, 5, timestamp=timestamp_ms() - 120_000)
    kafka.produce(name, 5, partition=1)
    kafka.commit(name, {(name, 0): 2, (name, 1): 2})
    with kafka.members(name, [name], client_id="paused"):
        found = kafka.group(name)
    (problem,) = found.problems
    assert problem.code == "group-stands-still"
    assert problem.figures["waiting"] == 3
    assert "paused" in problem.sentence
    (notice,) = [one for one in found.findings if one.code == "group-has-not-committed"]
    assert notice.figures["partition"] == (name, 1)


def test_members_without_partitions(kafka: Explained, name: str) -> None:
    kafka.create(name)
    with kafka.members(name, [name], 2):
        found = kafka.group(name)
        assert "group-idle-members" in found.codes
        assert not found.problems


def test_a_group_behind_an_open_transaction(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name, 2)
    producer = kafka.transactional(name)
    producer.begin_transaction()
    producer.produce(name, b"mine", partition=0)
    producer.flush(GIVE_UP_SECONDS)
    kafka.commit(name, {(name, 0): 2})
    with kafka.members(name, [name]):
        found = kafka.group(name)
        assert "group-behind-open-transaction" in found.codes
        producer.commit_transaction(GIVE_UP_SECONDS)


def test_only_markers_are_left(kafka: Explained, name: str) -> None:
    kafka.create(name)
    producer = kafka.transactional(name)
    producer.begin_transaction()
    producer.produce(name, b"mine", partition=0)
    producer.commit_transaction(GIVE_UP_SECONDS)
    kafka.commit(name, {(name, 0): 1})
    with kafka.members(name, [name]):
        found = kafka.group(name)
        assert not found.problems
        assert found.codes >= {"group-only-markers-left", "group-up-to-date"}


def test_a_subscription_to_nothing(kafka: Explained, name: str) -> None:
    kafka.create(name)
    # A classic member of librdkafka leaves out what it does not find.
    with kafka.members(name, [name, f"{name}x"], group_protocol="consumer"):
        (problem,) = kafka.group(name).problems
    assert problem.code == "group-subscribed-to-no-topic"
    assert f"Similar: {name}" in problem.sentence


def test_a_group_that_does_not_keep_up(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name, 5)
    kafka.commit(name, {(name, 0): 1})
    with kafka.members(name, [name]) as (member,):

        def meanwhile() -> None:
            member.commit(offsets=[TopicPartition(name, 0, 2)], asynchronous=False)
            kafka.produce(name, 3)

        (problem,) = kafka.group(name, meanwhile).problems
    assert problem.code == "group-slower-than-producers"
    assert problem.figures["lag"] == 6
    assert problem.figures["writes"] == pytest.approx(3 * problem.figures["reads"])


def test_a_group_that_catches_up(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name, 5)
    kafka.commit(name, {(name, 0): 1})
    with kafka.members(name, [name]) as (member,):
        found = kafka.group(
            name,
            lambda: member.commit(offsets=[TopicPartition(name, 0, 4)], asynchronous=False),
        )
    assert not found.problems
    (fact,) = [one for one in found.findings if one.code == "group-catches-up"]
    assert fact.figures["lag"] == 1
    assert fact.figures["left"] * 3 == pytest.approx(1000 * 3 / fact.figures["reads"], rel=0.01)


def test_a_group_that_rebalances_for_ever(kafka: Explained, name: str) -> None:
    kafka.create(name, 2)
    with kafka.members(name, [name], on_revoke=lambda *_: None), kafka.joining(name, [name]):
        # The first member has callbacks, but nobody polls it: it does not join again.
        until(lambda: "group-rebalancing" in kafka.group(name).codes)


def test_members_that_change(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name, 5)
    kafka.commit(name, {(name, 0): 1})
    with ExitStack() as first, ExitStack() as later:
        first.enter_context(kafka.members(name, [name], client_id="old"))

        def meanwhile() -> None:
            first.close()
            later.enter_context(kafka.members(name, [name], client_id="new"))

        found = kafka.group(name, meanwhile)
        (notice,) = [one for one in found.findings if one.code == "group-members-change"]
        assert (notice.figures["gone"], notice.figures["come"]) == (["old"], ["new"])


def join(asks: Asks, group: str, **fields: Any) -> Any:
    """Join a group; the first answer only has the member's id."""
    until(lambda: asks.has_coordinators(0, [group]))
    answer = asks.join(group, **fields)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        answer = asks.join(group, answer.member_id, **fields)
    return answer


def test_a_partition_that_nobody_has(kafka: Explained, name: str) -> None:
    """A leader of the group that gives away only one of two partitions."""
    kafka.create(name, 2)
    subscription = ConsumerProtocolSubscription(topics=[name])
    metadata = bytes(2) + encode_struct(subscription, 0)
    mine = ConsumerProtocolAssignment(
        assigned_partitions=[AssignedTopic(topic=name, partitions=[1])]
    )
    with RawConnection(kafka.bootstrap) as connection:
        asks = Asks(connection)
        protocols = [JoinGroupRequestProtocol(name="mine", metadata=metadata)]
        joined = join(asks, name, protocols=protocols)
        given = encode_assignment(mine, 0)
        assert asks.sync(name, joined.member_id, joined.generation_id, given) == 0
        (problem,) = kafka.group(name).problems
        assert problem.code == "group-partition-without-owner"
        assert [str(each) for each in problem.figures["partitions"]] == [f"{name}-0"]
        clash = kafka.group(name, assignor="range")
        assert "group-assignor-clash" in clash.codes
        refused = join(asks, name, protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")])
        assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        asks.leave(name, joined.member_id)


def test_a_group_of_another_protocol(kafka: Explained, name: str) -> None:
    with RawConnection(kafka.bootstrap) as connection:
        asks = Asks(connection)
        joined = join(asks, name, protocol_type="connect")
        assert joined.error_code == 0
        (problem,) = kafka.group(name).problems
        assert problem.code == "group-of-another-protocol"
        assert "'connect'" in problem.sentence
        asks.leave(name, joined.member_id)


def test_a_group_of_streams(kafka: Explained) -> None:
    for topic in ("input", "totals"):
        kafka.create(topic, 2)
    with StreamsMember(kafka.bootstrap, "counting") as member:
        until(lambda: member.beat().error_code == ErrorCode.NONE)
        assert "group-of-streams" in kafka.group(GROUP).codes


def test_a_quota_of_a_group_that_is_behind(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.produce(name, 5)
    kafka.commit(name, {(name, 0): 1})
    kafka.limit(name, 1024)
    with kafka.members(name, [name], client_id=name):
        found = kafka.group(name)
        (notice,) = [one for one in found.findings if one.code == "group-quota"]
        assert notice.figures == {
            "group": name,
            "quota": "consumer_byte_rate",
            "value": "1024",
            "entity": f"client-id {name}",
        }


def test_rights_of_a_user(kafka: Explained, name: str) -> None:
    kafka.create(name)
    kafka.commit(name, {(name, 0): 0})
    bob = "User:bob"
    kafka.permit(bob, AclOperation.READ, ResourceType.GROUP, name)
    found = kafka.group(name, principal=bob)
    by_code = {one.code: one.figures for one in found.findings}
    assert by_code["right-given"]["resource"] == f"group {name}"
    assert by_code["right-missing"]["resource"] == f"topic {name}"
    kafka.permit(bob, AclOperation.READ, ResourceType.TOPIC, name)
    assert "right-missing" not in kafka.group(name, principal=bob).codes
    assert [one.code for one in kafka.topic(name, principal=bob).problems] == ["right-missing"]
    kafka.permit(bob, AclOperation.ALL, ResourceType.TOPIC, name, PermissionType.DENY)
    denied = [one for one in kafka.group(name, principal=bob).problems if "right" in one.code]
    assert [one.code for one in denied] == ["right-denied"]
    # A super user needs no rule. Apache Kafka does not tell who is one, and that is said.
    of_super_user = kafka.topic(name, principal="User:ANONYMOUS")
    is_told = "asking-without-answer" not in of_super_user.codes
    assert bool(of_super_user.problems) != is_told


# --- share groups ---


def test_a_share_group(kafka: Explained, name: str) -> None:
    kafka.create(name)
    with kafka.share_member(name, name) as member:

        def given() -> list[Any]:
            return [one for one in member.poll(0.5) if not one.error()]

        def finish_first() -> bool:
            kafka.produce(name)
            for one in given():
                member.acknowledge(one)
            member.commit_sync()
            return "share-group-progress" in kafka.group(name).codes

        until(lambda: "share-group-not-started" in kafka.group(name).codes)
        until(finish_first)
        kafka.produce(name, 3)
        until(lambda: bool(given()))
        (problem,) = kafka.group(name).problems
        assert problem.code == "share-records-locked"
        assert problem.figures["left"] >= 3
    until(lambda: "share-group-without-members" in kafka.group(name).codes)


def test_records_that_a_share_group_gives_back_or_archives(kafka: Explained, name: str) -> None:
    kafka.create(name)
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 500})
    with kafka.share_member(name, name) as member:

        def given() -> list[Any]:
            return [one for one in member.poll(0.5) if not one.error()]

        def gets_three() -> bool:
            """Finish what comes, until three records of one batch come together."""
            for _ in range(3):
                producer.produce(name, b"a value", partition=0)
            assert producer.flush(GIVE_UP_SECONDS) == 0
            held[:] = given()
            if len(held) < 3:
                finish(held)
            return len(held) >= 3

        def finish(records: list[Any], *kinds: Any) -> None:
            for number, one in enumerate(records):
                member.acknowledge(one, *(kinds[min(number, 1) :][:1]))
            member.commit_sync()

        held: list[Any] = []
        until(gets_three)
        # The first stays unfinished, so what comes after it is kept.
        finish(held, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)
        wanted = {"share-records-archived", "share-records-returned"}
        until(lambda: kafka.group(name).codes >= wanted)
        found = {one.code: one.figures for one in kafka.group(name).findings}
        archived, returned = (found[code] for code in sorted(wanted))
        assert (archived["count"], archived["times"]) == (len(held) - 1, 1)
        assert (returned["count"], returned["first"]) == (1, held[0].offset())
