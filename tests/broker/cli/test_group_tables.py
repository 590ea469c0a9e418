"""The tables of `consumer-groups`, where a cluster seldom shows them so."""

from broker.cli.consumer_groups import offset_rows
from broker.cli.group_tables import (
    deleted_offset_lines,
    listing_lines,
    member_lines,
    offset_lines,
    state_warning,
)
from broker.model import TopicPartition
from common.kafka.admin.client import Node
from common.kafka.admin.group_offsets import CommittedOffset
from common.kafka.admin.groups import GroupDescription, GroupListing, MemberDescription
from common.kafka.errors import ErrorCode, KafkaError

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))


def member(name: str, *assignment: TopicPartition, is_upgraded: bool | None) -> MemberDescription:
    return MemberDescription(
        name, None, "client", "/host", list(assignment), list(assignment), 4, is_upgraded
    )


def group(state: str, *members: MemberDescription) -> GroupDescription:
    node = Node(1, "localhost", 9092, None)
    return GroupDescription("g", "Consumer", state, "uniform", node, list(members), 5, 4)


MIXED = group(
    "Reconciling", member("few", P0, is_upgraded=False), member("many", P1, P2, is_upgraded=True)
)


def test_the_busiest_member_comes_first_and_what_nobody_reads_last() -> None:
    gone = TopicPartition("gone", 0)
    committed = {P0: CommittedOffset(3, 0), gone: CommittedOffset(1, None)}
    rows = offset_rows(MIXED, committed, {P0: 10, P1: 7})
    assert [(row.partition, row.offset, row.log_end_offset, row.lag) for row in rows] == [
        (P1, None, 7, None),
        (P2, None, None, None),
        (P0, 3, 10, 7),
        (gone, 1, None, None),
    ]
    assert offset_lines("g", rows, is_verbose=True)[-1].split() == (
        ["g", "gone", "0", "-", "1", "-", "-", "-", "-", "-"]
    )


def test_a_group_that_is_being_upgraded_tells_which_members_are() -> None:
    heading, few, many = member_lines(MIXED, is_verbose=True)
    assert heading.split()[-2:] == ["TARGET-ASSIGNMENT", "UPGRADED"]
    assert few.split()[4:] == ["1", "4", "t:0", "4", "t:0", "false"]
    assert many.split()[4:] == ["2", "4", "t:1,2", "4", "t:1,2", "true"]


def test_a_group_without_members_or_between_assignments_is_warned_about() -> None:
    assert state_warning(group("Empty")) == "Consumer group 'g' has no active members."
    assert state_warning(MIXED) == "Warning: Consumer group 'g' is rebalancing."
    assert state_warning(group("Stable")) is None


def test_what_an_old_broker_does_not_tell_is_unknown() -> None:
    old = [GroupListing("g", "consumer", "", "")]
    assert listing_lines(old, has_type=True, has_state=True)[1].split() == (
        ["g", "Unknown", "Unknown"]
    )


def test_a_topic_that_is_not_there_has_no_partition() -> None:
    error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is none.")
    lines = deleted_offset_lines({P0: None, TopicPartition("no", -1): error})
    assert [line.split() for line in lines] == [
        ["TOPIC", "PARTITION", "STATUS"],
        ["no", "-", "Error:", "There", "is", "none."],
        ["t", "0", "Successful"],
    ]
