"""A share group with a topic of its own at a real broker, and what its tests ask and change."""

from typing import cast
from uuid import uuid4

from confluent_kafka import Producer

from broker.records.batch import split_batches
from common.kafka.admin import leaders
from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import Resource, ResourceType, alter
from common.kafka.admin.settings import AdminSettings
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages import describe_share_group_offsets as describing
from common.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from common.kafka.protocol.messages.share_fetch import ShareFetchResponse
from common.kafka.topics import TopicPartition
from millstream.testing import LocalBroker
from tests.lib.raw_kafka import RawConnection
from tests.lib.share_member import ShareMember, initialize, topic_id_of
from tests.lib.waiting import until


def produce(broker: LocalBroker, topic: str, count: int, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
    for number in range(count):
        producer.produce(topic, f"{number}".encode(), partition=partition)
    assert producer.flush(30) == 0


class Group:
    """A share group with a topic of its own; its members are closed at the end."""

    def __init__(self, broker: LocalBroker) -> None:
        self.broker = broker
        self.name = f"group-{uuid4()}"
        self.topic = f"topic-{uuid4()}"
        produce(broker, self.topic, 10)
        self.topic_id = topic_id_of(broker.bootstrap_servers, self.topic)
        initialize(broker.bootstrap_servers, self.name, self.topic_id, 2, start_offset=0)
        self.members: list[ShareMember] = []

    def member(self, member_id: str | None = None) -> ShareMember:
        member = ShareMember(self.broker.bootstrap_servers, self.name, self.topic_id, member_id)
        self.members.append(member)
        return member

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, *error: object) -> None:
        for member in self.members:
            member.close()


def values(response: ShareFetchResponse) -> list[bytes]:
    """The values of the records that were sent, of all partitions."""
    return [
        bytes(record.value or b"")
        for topic in response.responses
        for each in topic.partitions
        for batch in split_batches(bytes(each.records))
        for record in batch.records()
    ]


def delete_records(group: Group, before: int) -> None:
    with _admin(group) as admin:
        at = {TopicPartition(group.topic, 0): before}
        leaders.successes(leaders.delete_records(admin, at))


def offset_and_lag(group: Group) -> tuple[int, int]:
    """Return the start offset and the lag of partition 0."""
    topic = describing.DescribeShareGroupOffsetsRequestTopic(topic_name=group.topic, partitions=[0])
    wanted = describing.DescribeShareGroupOffsetsRequestGroup(group_id=group.name, topics=[topic])
    with RawConnection(group.broker.bootstrap_servers) as connection:
        question = FindCoordinatorRequest(coordinator_keys=[group.name])
        until(
            lambda: (
                cast(FindCoordinatorResponse, connection.ask(ApiKey.FIND_COORDINATOR, 4, question))
                .coordinators[0]
                .error_code
                == ErrorCode.NONE
            )
        )
        request = describing.DescribeShareGroupOffsetsRequest(groups=[wanted])
        answer = connection.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request)
    (described,) = cast(describing.DescribeShareGroupOffsetsResponse, answer).groups
    partitions = [each for of_topic in described.topics for each in of_topic.partitions]
    return (partitions[0].start_offset, partitions[0].lag) if partitions else (-1, -1)


def set_group(group: Group, name: str, value: str) -> None:
    with _admin(group) as admin:
        alter(admin, {Resource(ResourceType.GROUP, group.name): {name: value}})


def _admin(group: Group) -> AdminClient:
    return AdminClient(AdminSettings.of(group.broker.bootstrap_servers))
