"""The share coordinator of real brokers: its state outlives its leader, and its log stays short."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from broker.log.checkpoints import encode_uuid
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages import (
    initialize_share_group_state,
    read_share_group_state,
    write_share_group_state,
)
from common.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from millstream.testing import LocalBroker, LocalCluster
from tests.lib.raw_kafka import RawConnection

pytestmark = pytest.mark.interop

SHARE = 2
EARLIEST = -2
STATE = "__share_group_state"
AGAIN = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


def ask(bootstrap: str, key: ApiKey, version: int, request: Message) -> Any:
    with RawConnection(bootstrap) as connection:
        return connection.ask(key, version, request)


def topic_id_of(bootstrap: str, name: str) -> bytes:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    topic_id: bytes = ask(bootstrap, ApiKey.METADATA, 12, request).topics[0].topic_id
    return topic_id


def coordinator_of(bootstrap: str, topic_id: bytes, version: int = 6) -> Any:
    key = f"g:{encode_uuid(topic_id)}:0"
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])
    (found,) = ask(bootstrap, ApiKey.FIND_COORDINATOR, version, request).coordinators
    return found


class Persister:
    """Asks the share coordinator about one share-partition, until somebody answers."""

    def __init__(self, bootstraps: list[str], topic_id: bytes) -> None:
        self.bootstraps = bootstraps
        self.topic_id = topic_id

    def result(self, module: Any, key: ApiKey, topic_class: str, version: int, **data: Any) -> Any:
        name = key.name.title().replace("_", "")
        partition = module.PartitionData(partition=0, **data)
        topic = getattr(module, topic_class)(topic_id=self.topic_id, partitions=[partition])
        request = getattr(module, f"{name}Request")(group_id="g", topics=[topic])
        deadline = time.monotonic() + 30
        while True:
            assert time.monotonic() < deadline, "no coordinator answers"
            for bootstrap in self.bootstraps:
                try:
                    found = coordinator_of(bootstrap, self.topic_id)
                    address = f"{found.host}:{found.port}"
                    if found.error_code == ErrorCode.NONE:
                        (answered,) = ask(address, key, version, request).results
                        if answered.partitions[0].error_code not in AGAIN:
                            return answered.partitions[0]
                except OSError:
                    continue
            time.sleep(0.05)

    def initialize(self, state_epoch: int, start_offset: int) -> Any:
        return self.result(
            initialize_share_group_state,
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            "InitializeStateData",
            0,
            state_epoch=state_epoch,
            start_offset=start_offset,
        )

    def read(self, leader_epoch: int) -> Any:
        return self.result(
            read_share_group_state,
            ApiKey.READ_SHARE_GROUP_STATE,
            "ReadStateData",
            0,
            leader_epoch=leader_epoch,
        )

    def write(self, leader_epoch: int, offset: int) -> Any:
        batch = write_share_group_state.StateBatch(
            first_offset=offset, last_offset=offset, delivery_state=2, delivery_count=1
        )
        return self.result(
            write_share_group_state,
            ApiKey.WRITE_SHARE_GROUP_STATE,
            "WriteStateData",
            1,
            state_epoch=1,
            leader_epoch=leader_epoch,
            start_offset=-1,
            delivery_complete_count=1,
            state_batches=[batch],
        )


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    settings = {"share.coordinator.state.topic.num.partitions": 3}
    with LocalCluster(brokers=3, has_links=False, **settings) as started:
        yield started


def test_what_was_written_outlives_the_coordinator(cluster: LocalCluster) -> None:
    cluster.create_topic("jobs", 1)
    topic_id = topic_id_of(cluster.address(1), "jobs")
    persister = Persister([cluster.address(node) for node in cluster.broker_ids], topic_id)
    assert persister.read(1).error_code == ErrorCode.INVALID_REQUEST
    assert persister.initialize(1, 0).error_code == ErrorCode.NONE
    assert persister.read(5).error_code == ErrorCode.NONE
    assert persister.write(5, 0).error_code == ErrorCode.NONE
    cluster.kill(coordinator_of(cluster.address(1), topic_id).node_id)
    read = persister.read(5)
    assert [each.last_offset for each in read.state_batches] == [0]
    assert persister.write(4, 1).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert persister.write(5, 1).error_code == ErrorCode.NONE
    assert [each.last_offset for each in persister.read(5).state_batches] == [1]


def test_the_log_is_pruned_and_a_restarted_broker_reads_the_rest() -> None:
    settings = {
        "share.coordinator.snapshot.update.records.per.snapshot": 10,
        "share.coordinator.state.topic.prune.interval.ms": 100,
        "share.coordinator.state.topic.num.partitions": 1,
    }
    with LocalBroker(**settings) as broker:
        broker.create_topic("jobs", 1)
        topic_id = topic_id_of(broker.bootstrap_servers, "jobs")
        persister = Persister([broker.bootstrap_servers], topic_id)
        persister.initialize(1, 0)
        for offset in range(35):
            assert persister.write(0, offset).error_code == ErrorCode.NONE
        deadline = time.monotonic() + 20
        while log_start_offset(broker.bootstrap_servers) < 33:  # That of the third snapshot.
            assert time.monotonic() < deadline
            time.sleep(0.05)
        broker.stop()
        broker.start()
        persister.bootstraps = [broker.bootstrap_servers]
        (batch,) = persister.read(0).state_batches
        assert (batch.first_offset, batch.last_offset) == (0, 34)


def log_start_offset(bootstrap: str) -> int:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=STATE, partitions=[wanted])])
    (topic,) = ask(bootstrap, ApiKey.LIST_OFFSETS, 8, request).topics
    offset: int = topic.partitions[0].offset
    return offset


def test_only_version_6_of_find_coordinator_knows_share_partitions() -> None:
    with LocalBroker() as broker:
        bootstrap = broker.bootstrap_servers
        topic_id = bytes(range(16))
        assert coordinator_of(bootstrap, topic_id, 5).error_code == ErrorCode.INVALID_REQUEST
        assert coordinator_of(bootstrap, topic_id).error_code == ErrorCode.NONE
        for key in (
            "",
            "g",
            "g:x:0",
            f"g:{encode_uuid(topic_id)}:x",
            f":{encode_uuid(topic_id)}:0",
        ):
            request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])
            (found,) = ask(bootstrap, ApiKey.FIND_COORDINATOR, 6, request).coordinators
            assert found.error_code == ErrorCode.INVALID_REQUEST
