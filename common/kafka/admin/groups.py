"""Requests about groups: list, describe, delete.

A KIP-848 group is described by ConsumerGroupDescribe. Its coordinator answers GROUP_ID_NOT_FOUND
for a classic group, which is then described by DescribeGroups; a cluster that is too old for the
former gets the latter at once.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from common.kafka.admin.client import AdminClient, Node, error_of
from common.kafka.admin.coordinators import (
    COORDINATOR_MOVED,
    Outcomes,
    ask_coordinator_nodes,
    ask_coordinators,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.consumer_protocol import decode_assignment, decode_subscription
from common.kafka.protocol.messages import consumer_group_describe, describe_groups
from common.kafka.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from common.kafka.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from common.kafka.protocol.wire import DecodeError
from common.kafka.topics import TopicPartition

CLASSIC, CONSUMER = "Classic", "Consumer"
CONSUMER_PROTOCOL_TYPES = ("", "consumer")
FIRST_VERSION_WITH_TYPES = 5
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


class GroupListing(NamedTuple):
    """One group in the answer of ListGroups; an old broker leaves state and type empty.

    Brokers write the types in lower case, the tools capitalize them.
    """

    group_id: str
    protocol_type: str
    state: str
    group_type: str


class MemberDescription(NamedTuple):
    """One member; the fields of KIP-848 groups are None in a classic one.

    `subscription` is None where the coordinator does not tell the topics.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: list[TopicPartition]
    target_assignment: list[TopicPartition] | None = None
    member_epoch: int | None = None
    is_upgraded: bool | None = None
    subscription: list[str] | None = None


class GroupDescription(NamedTuple):
    """One group of consumers; the epochs are None in a classic one."""

    group_id: str
    group_type: str
    state: str
    assignor: str
    coordinator: Node
    members: list[MemberDescription]
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None
    is_simple: bool = False
    """True if it was made by commits of a consumer that is no member of a group."""


def list_groups(
    client: AdminClient, states: Collection[str] = (), types: Collection[str] = ()
) -> list[GroupListing]:
    """Return the groups of all brokers by id, filtered by states and types if there are any.

    Raise UNSUPPORTED_VERSION if a broker does not list the states of its groups. The groups of a
    broker without types are classic.
    """
    listings: dict[str, GroupListing] = {}

    def attempt() -> None:
        for node_id in client.nodes().nodes:
            knows_types = client.supports_once(
                ApiKey.LIST_GROUPS, FIRST_VERSION_WITH_TYPES, node_id
            )
            request = ListGroupsRequest(
                states_filter=sorted(states), types_filter=sorted(types) if knows_types else []
            )
            answer = client.ask_once(request, ListGroupsResponse, node_id)
            if answer.error_code:
                raise error_of(answer.error_code)
            for group in answer.groups:
                listings[group.group_id] = GroupListing(
                    group.group_id,
                    group.protocol_type,
                    group.group_state,
                    group.group_type.capitalize(),
                )

    client.retry("the groups of the brokers", attempt, COORDINATOR_MOVED)
    wanted = {one.lower() for one in types}
    return [
        listing
        for _, listing in sorted(listings.items())
        if not wanted or (listing.group_type or CLASSIC).lower() in wanted
    ]


def list_consumer_groups(
    client: AdminClient, states: Collection[str] = (), types: Collection[str] = ()
) -> list[GroupListing]:
    """Return the groups of consumers: those of KIP-848, classic ones, and those without members."""
    listings = list_groups(client, states, types or (CLASSIC, CONSUMER))
    return [one for one in listings if one.protocol_type in CONSUMER_PROTOCOL_TYPES]


def describe_consumer_groups(
    client: AdminClient, group_ids: Iterable[str]
) -> Outcomes[GroupDescription]:
    """Return the description of each group; GROUP_ID_NOT_FOUND is the outcome of a missing one."""

    def describe(node: Node, its_groups: Sequence[str]) -> Outcomes[GroupDescription]:
        described: Outcomes[GroupDescription] = {}
        if client.supports_once(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, node.node_id):
            described = _describe_new(client, node, its_groups)
        explained = {key: one for key, one in described.items() if isinstance(one, KafkaError)}
        classic = [key for key in its_groups if _may_be_classic(described.get(key))]
        if classic:
            described |= _describe_classic(client, node, classic, explained)
        return described

    return ask_coordinator_nodes(client, group_ids, describe)


def _may_be_classic(outcome: GroupDescription | KafkaError | None) -> bool:
    if isinstance(outcome, KafkaError):
        return outcome.code in {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}
    return outcome is None


def _describe_new(
    client: AdminClient, coordinator: Node, group_ids: Sequence[str]
) -> Outcomes[GroupDescription]:
    request = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=list(group_ids))
    answer = client.ask_once(
        request, consumer_group_describe.ConsumerGroupDescribeResponse, coordinator.node_id
    )
    return {
        group.group_id: error_of(group.error_code, group.error_message)
        if group.error_code
        else GroupDescription(
            group.group_id,
            CONSUMER,
            group.group_state,
            group.assignor_name,
            coordinator,
            [_new_member(member) for member in group.members],
            group.group_epoch,
            group.assignment_epoch,
        )
        for group in answer.groups
    }


def _new_member(member: consumer_group_describe.Member) -> MemberDescription:
    knows_type = member.member_type in {CLASSIC_MEMBER, CONSUMER_MEMBER}
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(member.assignment),
        _partitions(member.target_assignment),
        member.member_epoch,
        member.member_type == CONSUMER_MEMBER if knows_type else None,
        None if member.subscribed_topic_regex else sorted(member.subscribed_topic_names),
    )


def _partitions(assignment: consumer_group_describe.Assignment) -> list[TopicPartition]:
    return sorted(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _describe_classic(
    client: AdminClient,
    coordinator: Node,
    group_ids: Sequence[str],
    explained: dict[str, KafkaError],
) -> Outcomes[GroupDescription]:
    """Describe classic groups; `explained` has better errors for missing groups."""
    request = describe_groups.DescribeGroupsRequest(groups=list(group_ids))
    answer = client.ask_once(request, describe_groups.DescribeGroupsResponse, coordinator.node_id)
    described: Outcomes[GroupDescription] = {}
    for group in answer.groups:
        if group.error_code:
            error = error_of(group.error_code, group.error_message)
            known = explained.get(group.group_id)
            is_same = known is not None and known.code == error.code
            described[group.group_id] = known if known and is_same else error
        elif group.protocol_type not in CONSUMER_PROTOCOL_TYPES:
            described[group.group_id] = KafkaError(
                ErrorCode.INVALID_GROUP_ID,
                f"GroupId {group.group_id} is not a consumer group ({group.protocol_type}).",
            )
        else:
            described[group.group_id] = GroupDescription(
                group.group_id,
                CLASSIC,
                group.group_state,
                group.protocol_data,
                coordinator,
                [_classic_member(member) for member in group.members],
                is_simple=not group.protocol_type,
            )
    return described


def _classic_member(member: describe_groups.DescribedGroupMember) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        _decoded_partitions(member.member_assignment),
        subscription=_decoded_topics(member.member_metadata),
    )


def _decoded_topics(metadata: bytes) -> list[str] | None:
    """Decode a subscription; it is empty while the group rebalances, and may be a stranger's."""
    try:
        return sorted(decode_subscription(metadata).topics) if metadata else None
    except DecodeError:
        return None


def _decoded_partitions(assignment: bytes) -> list[TopicPartition]:
    """Decode an assignment; it is empty while the group rebalances."""
    if not assignment:
        return []
    try:
        opened = decode_assignment(assignment)
    except DecodeError as error:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error)) from error
    return sorted(
        TopicPartition(topic.topic, partition)
        for topic in opened.assigned_partitions
        for partition in topic.partitions
    )


def delete_groups(client: AdminClient, group_ids: Iterable[str]) -> Outcomes[None]:
    """Delete groups with their offsets; return the outcome of each."""

    def ask(node_id: int, its_groups: Sequence[str]) -> Outcomes[None]:
        request = DeleteGroupsRequest(groups_names=list(its_groups))
        return {
            result.group_id: error_of(result.error_code) if result.error_code else None
            for result in client.ask_once(request, DeleteGroupsResponse, node_id).results
        }

    return ask_coordinators(client, group_ids, ask)
