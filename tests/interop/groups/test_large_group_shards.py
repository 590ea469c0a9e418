"""A shard of very many offsets is loaded by a new leader, while groups of real clients ask it.

All groups are in one shard, filled beforehand. Its leader is killed: whoever asks the next one
while it loads is told so (COORDINATOR_LOAD_IN_PROGRESS; but to a heartbeat that all is well) and
asks again; nobody is sent away, nothing that was committed is lost, and the members stay what they
are.
"""

from collections.abc import Callable, Iterator

import confluent_kafka.admin
import pytest

from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import decode_response, encode_request
from common.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.testing import LocalCluster
from tests.interop.groups.test_group_faults import (
    PARTITIONS,
    TOPIC,
    Load,
    committed,
    running_groups,
)
from tests.lib.coordinator_requests import Asks
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

COMMITS, PARTITIONS_OF_EACH = 800, 100
AT_A_TIME = 50
MANY = "many"
FILLED = "filled"


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    settings = {"group_initial_rebalance_delay_ms": 500, "offsets_topic_num_partitions": 1}
    with LocalCluster(3, has_links=False, **settings) as cluster:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        topics = [
            confluent_kafka.admin.NewTopic(TOPIC, PARTITIONS, 3),
            confluent_kafka.admin.NewTopic(MANY, PARTITIONS_OF_EACH, 1),
        ]
        for created in admin.create_topics(topics).values():
            created.result(30)
        yield cluster


def coordinator_of(cluster: LocalCluster) -> int:
    with RawConnection(cluster.address(cluster.broker_ids[0])) as connection:
        asks = Asks(connection)
        until(lambda: asks.has_coordinators(0, [FILLED]))
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[FILLED])
        return asks.ask(ApiKey.FIND_COORDINATOR, 4, request).coordinators[0].node_id


def fill(bootstrap: str) -> None:
    """Commit the same offsets again and again."""
    with RawConnection(bootstrap, 60) as connection:
        asks = Asks(connection)
        until(lambda: asks.commit(FILLED, -1, "", topic=MANY) == ErrorCode.NONE)
        for _ in range(COMMITS // AT_A_TIME):
            frame = encode_request(ApiKey.OFFSET_COMMIT, 9, 1, "filling", filling())
            connection.send(frame * AT_A_TIME)
            for _ in range(AT_A_TIME):
                answer = decode_response(ApiKey.OFFSET_COMMIT, 9, connection.receive_frame())[1]
                assert not any(each.error_code for each in answer.topics[0].partitions)


def filling() -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=number, committed_offset=number, committed_metadata="x" * 100
        )
        for number in range(PARTITIONS_OF_EACH)
    ]
    return OffsetCommitRequest(
        group_id=FILLED, topics=[OffsetCommitRequestTopic(name=MANY, partitions=partitions)]
    )


def codes_until_served(
    addresses: list[str], kill: Callable[[], None]
) -> tuple[list[ErrorCode], list[ErrorCode]]:
    """Ask all brokers, before their coordinator is killed and until one of them serves the shard.

    Gives what was said to a SyncGroup and to a heartbeat, each once, in order.
    """
    connections = [RawConnection(address) for address in addresses]
    beat = HeartbeatRequest(group_id=FILLED, member_id="nobody")
    synced: dict[ErrorCode, None] = {}
    beaten: dict[ErrorCode, None] = {}

    def ask_all() -> None:
        for connection in connections:
            synced[ErrorCode(Asks(connection).sync(FILLED, "nobody", 1))] = None
            beaten[ErrorCode(connection.ask(ApiKey.HEARTBEAT, 4, beat).error_code)] = None

    ask_all()
    kill()
    while ErrorCode.UNKNOWN_MEMBER_ID not in synced:
        ask_all()
    for connection in connections:
        connection.socket.close()
    return list(synced), list(beaten)


def test_whoever_asks_a_shard_that_is_loaded_is_told_so_and_nothing_is_lost(
    cluster: LocalCluster,
) -> None:
    coordinator = coordinator_of(cluster)
    fill(cluster.address(coordinator))
    load = Load(cluster.bootstrap_servers)
    with running_groups(cluster) as groups:
        until(lambda: all(group.is_settled() for group in groups))
        load.start()
        until(lambda: all(len(group.values) > 50 for group in groups))
        before = {group.name: group.rebalance_count for group in groups}
        others = [cluster.address(one) for one in cluster.broker_ids if one != coordinator]
        assert codes_until_served(others, lambda: cluster.kill(coordinator)) == tuple(
            [ErrorCode.NOT_COORDINATOR, while_loading, ErrorCode.UNKNOWN_MEMBER_ID]
            for while_loading in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE)
        )
        cluster.start(coordinator)
        load.stop()
        until(lambda: all(group.values >= load.acknowledged for group in groups))
        assert all(group.is_settled() for group in groups)
        assert {group.name: group.rebalance_count for group in groups} == before
    for group in groups:
        found = committed(cluster, group.name)
        for member in group.members:
            for partition, offset in member.committed.items():
                assert found[partition] >= offset, (group.name, partition)
    expected = {number: number for number in range(PARTITIONS_OF_EACH)}
    assert committed(cluster, FILLED) == expected
