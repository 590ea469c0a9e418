"""Rights that are taken from a member of a share group in the middle of its session."""

import ssl
from collections.abc import Iterator
from typing import cast

import pytest
from confluent_kafka import Producer

from common.kafka.admin.configs import Resource, ResourceType, alter
from common.kafka.admin.topics import create_topic
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from common.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from common.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from common.kafka.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from common.kafka.rights import Right
from tests.lib.raw_kafka import RawConnection
from tests.lib.secured_broker import SecuredBroker, password_of
from tests.lib.share_member import ShareMember, acquired, errors
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

GROUP = "packers"
LOCK_MS = 1_000
RECORDS = 10
READ_GROUP = Right("group", GROUP, is_prefix=False, operation="READ")
READ_TOPIC = Right("topic", "jobs", is_prefix=False, operation="READ")
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
SETTINGS = {
    "group.share.min.record.lock.duration.ms": LOCK_MS,
    "group.share.record.lock.duration.ms": LOCK_MS,
}


@pytest.fixture
def broker() -> Iterator[SecuredBroker]:
    with SecuredBroker(["ann", "ben"], **SETTINGS) as started:
        earliest = {"share.auto.offset.reset": "earliest"}
        with started.admin() as admin:
            create_topic(admin, "jobs", partition_count=1)
            alter(admin, {Resource(ResourceType.GROUP, GROUP): earliest})
        for user in ("ann", "ben"):
            started.allow(user, [READ_GROUP, READ_TOPIC])
        producer = Producer(started.broker.client_settings())
        for number in range(RECORDS):
            producer.produce("jobs", f"{number}".encode())
        assert producer.flush(30) == 0
        yield started


class SecuredMember(ShareMember):
    """A member that has logged in as a user, and that is in the group."""

    def __init__(self, broker: SecuredBroker, user: str) -> None:
        super().__init__(broker.bootstrap_servers, GROUP, bytes(16))
        log_in(self.connection, broker, user)
        metadata = self.connection.ask(ApiKey.METADATA, 12, MetadataRequest(topics=None))
        (topic,) = cast(MetadataResponse, metadata).topics
        self.topic_id = topic.topic_id
        self.member_epoch = 0
        until(self.finds_coordinator)
        until(lambda: self.heartbeat().error_code == ErrorCode.NONE)
        until(self.has_partitions)

    def finds_coordinator(self) -> bool:
        request = FindCoordinatorRequest(coordinator_keys=[GROUP])
        response = self.connection.ask(ApiKey.FIND_COORDINATOR, 4, request)
        (found,) = cast(FindCoordinatorResponse, response).coordinators
        return found.error_code == ErrorCode.NONE

    def heartbeat(self) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id or "",
            member_epoch=self.member_epoch,
            subscribed_topic_names=["jobs"],
        )
        answer = self.connection.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)
        response = cast(ShareGroupHeartbeatResponse, answer)
        if not response.error_code:
            self.member_epoch = response.member_epoch
        return response

    def has_partitions(self) -> bool:
        assignment = self.heartbeat().assignment
        return assignment is not None and bool(assignment.topic_partitions)


def log_in(connection: RawConnection, broker: SecuredBroker, user: str) -> None:
    context: ssl.SSLContext = broker.broker.client_settings("aiokafka")["ssl_context"]
    connection.socket = context.wrap_socket(connection.socket, server_hostname="localhost")
    connection.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
    login = SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password_of(user)}".encode())
    connection.ask(ApiKey.SASL_AUTHENTICATE, 1, login)


def test_a_topic_is_forbidden_in_the_middle_of_a_session(broker: SecuredBroker) -> None:
    with SecuredMember(broker, "ann") as ann, SecuredMember(broker, "ben") as ben:
        assert acquired(ann.fetch([0])) == {0: [(0, RECORDS - 1, 1)]}
        broker.forbid("ann", READ_TOPIC)

        until(lambda: errors(ann.fetch(max_wait_ms=0)) == [(0, DENIED, 0)])
        answer = ann.fetch(acknowledged={0: [(0, 4, [1])]}, max_wait_ms=0)
        assert errors(answer) == [(0, DENIED, DENIED)]
        assert errors(ann.acknowledge({0: [(0, 4, [1])]})) == [(0, DENIED)]
        assert ann.heartbeat().error_code == DENIED

        # Nothing was accepted, and no other record is acquired for ann.
        ben.fetch([0], max_wait_ms=0)
        for count in (2, 3):
            assert acquired(ben.fetch(max_wait_ms=5 * LOCK_MS)) == {0: [(0, RECORDS - 1, count)]}
            assert errors(ann.fetch(max_wait_ms=0)) == [(0, DENIED, 0)]
            ben.acknowledge({0: [(0, RECORDS - 1, [2])]})
            assert errors(ann.fetch(max_wait_ms=100)) == [(0, DENIED, 0)]

        broker.allow("ann", [READ_TOPIC])
        until(lambda: bool(acquired(ann.fetch(max_wait_ms=100))))


def test_a_group_is_forbidden_in_the_middle_of_a_session(broker: SecuredBroker) -> None:
    with SecuredMember(broker, "ann") as ann, SecuredMember(broker, "ben") as ben:
        assert acquired(ann.fetch([0])) == {0: [(0, RECORDS - 1, 1)]}
        broker.forbid("ann", READ_GROUP)

        until(lambda: ann.fetch(max_wait_ms=0).error_code == GROUP_DENIED)
        assert ann.acknowledge({0: [(0, 4, [1])]}).error_code == GROUP_DENIED
        assert ann.heartbeat().error_code == GROUP_DENIED
        ben.fetch([0], max_wait_ms=0)
        assert acquired(ben.fetch(max_wait_ms=5 * LOCK_MS)) == {0: [(0, RECORDS - 1, 2)]}
        assert errors(ben.acknowledge({0: [(0, RECORDS - 1, [1])]})) == [(0, ErrorCode.NONE)]
