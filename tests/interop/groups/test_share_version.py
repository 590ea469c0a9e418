"""The feature share.version on a running broker: switched off, and raised again."""

from collections.abc import Iterator
from typing import Any

import pytest

from broker.cli import features
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
)
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest
from common.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.testing import LocalBroker
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

GROUP = "packers"
MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"
HEARTBEAT = share_group_heartbeat.ShareGroupHeartbeatRequest(
    group_id=GROUP, member_id=MEMBER, member_epoch=0, subscribed_topic_names=["jobs"]
)
OF_HEARTBEAT = (ApiKey.SHARE_GROUP_HEARTBEAT, 1, HEARTBEAT)
OF_CLIENTS: dict[ApiKey, tuple[int, Message]] = {
    ApiKey.SHARE_GROUP_HEARTBEAT: (1, HEARTBEAT),
    ApiKey.SHARE_GROUP_DESCRIBE: (
        1,
        share_group_describe.ShareGroupDescribeRequest(group_ids=[GROUP]),
    ),
    ApiKey.SHARE_FETCH: (
        1,
        share_fetch.ShareFetchRequest(group_id=GROUP, member_id=MEMBER, share_session_epoch=0),
    ),
    ApiKey.SHARE_ACKNOWLEDGE: (
        1,
        share_acknowledge.ShareAcknowledgeRequest(
            group_id=GROUP, member_id=MEMBER, share_session_epoch=1
        ),
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (
        0,
        describe_share_group_offsets.DescribeShareGroupOffsetsRequest(
            groups=[
                describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(
                    group_id=GROUP, topics=None
                )
            ]
        ),
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (
        0,
        alter_share_group_offsets.AlterShareGroupOffsetsRequest(
            group_id=GROUP,
            topics=[
                alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic(topic_name="jobs")
            ],
        ),
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (
        0,
        delete_share_group_offsets.DeleteShareGroupOffsetsRequest(
            group_id=GROUP,
            topics=[
                delete_share_group_offsets.DeleteShareGroupOffsetsRequestTopic(topic_name="jobs")
            ],
        ),
    ),
}
OF_BROKERS = range(83, 88)


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as started:
        yield started


def ask(broker: LocalBroker, key: ApiKey, version: int, request: Message) -> Any:
    with RawConnection(broker.bootstrap_servers) as connection:
        return connection.ask(key, version, request)


def code_of(response: Any) -> int:
    """Return the error of a response, or that of its only group."""
    if hasattr(response, "groups"):
        (response,) = response.groups
    code: int = response.error_code
    return code


def codes(broker: LocalBroker) -> dict[ApiKey, int]:
    return {
        key: code_of(ask(broker, key, version, request))
        for key, (version, request) in OF_CLIENTS.items()
    }


def test_the_feature_turns_share_groups_on(broker: LocalBroker) -> None:
    to = ["--bootstrap-server", broker.bootstrap_servers]
    offered = ask(
        broker,
        ApiKey.API_VERSIONS,
        4,
        ApiVersionsRequest(client_software_name="test", client_software_version="1"),
    )
    keys = {api.api_key for api in offered.api_keys}
    assert {*OF_CLIENTS, *OF_BROKERS} <= keys
    (feature,) = [one for one in offered.supported_features if one.name == "share.version"]
    assert (feature.min_version, feature.max_version) == (0, 1)
    (level,) = [one for one in offered.finalized_features if one.name == "share.version"]
    assert level.max_version_level == 1, "on in a new cluster"

    find = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
    until(lambda: ask(broker, ApiKey.FIND_COORDINATOR, 6, find).coordinators[0].error_code == 0)
    until(lambda: code_of(ask(broker, *OF_HEARTBEAT)) == ErrorCode.NONE)

    assert features.main([*to, "downgrade", "--feature", "share.version=0"]) == 0
    off = dict.fromkeys(OF_CLIENTS, int(ErrorCode.UNSUPPORTED_VERSION))
    until(lambda: codes(broker) == off, shown=lambda: codes(broker))

    assert features.main([*to, "upgrade", "--feature", "share.version=1"]) == 0
    until(lambda: code_of(ask(broker, *OF_HEARTBEAT)) == ErrorCode.NONE)
    on = codes(broker)
    assert ErrorCode.UNSUPPORTED_VERSION not in on.values(), on
