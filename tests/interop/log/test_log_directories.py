"""Several log directories: spreading, moving a partition while it is used, losing a directory."""

import shutil
import time
from pathlib import Path

import pytest

from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from common.kafka.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from millstream.testing import LocalBroker
from tests.lib.raw_kafka import RawConnection
from tests.lib.stock_clients import CLIENTS, Record

pytestmark = pytest.mark.interop

CLIENT = CLIENTS["confluent-kafka"]
RECORDS = [Record(b"key-%d" % number, b"value" * 100) for number in range(500)]


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [tmp_path / "one", tmp_path / "two"]


def described(broker: LocalBroker) -> dict[str, set[tuple[str, int, bool]]]:
    with RawConnection(broker.bootstrap_servers) as connection:
        request = DescribeLogDirsRequest(topics=None)
        response = connection.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, request)
    assert isinstance(response, DescribeLogDirsResponse)
    assert all(result.total_bytes > result.usable_bytes > 0 for result in response.results)
    return {
        Path(result.log_dir).name: {
            (topic.name, partition.partition_index, partition.is_future_key)
            for topic in result.topics
            for partition in topic.partitions
        }
        for result in response.results
    }


def move(broker: LocalBroker, topic: str, partition: int, folder: Path) -> int:
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[partition])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(folder), topics=topics)])
    with RawConnection(broker.bootstrap_servers) as connection:
        response = connection.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, request)
    assert isinstance(response, AlterReplicaLogDirsResponse)
    return response.results[0].partitions[0].error_code


def test_partitions_are_spread_and_moved_without_losing_a_record(folders: list[Path]) -> None:
    dirs = ",".join(map(str, folders))
    with LocalBroker(num_partitions=4, log_dirs=dirs) as broker:
        CLIENT.produce(broker.bootstrap_servers, "orders", RECORDS, "none")
        before = described(broker)
        held = {name: {entry for entry in before[name] if entry[0] == "orders"} for name in before}
        assert [len(held["one"]), len(held["two"])] in ([2, 2], [1, 3], [3, 1])
        for topic, partition, _ in sorted(held["one"]):
            assert move(broker, topic, partition, folders[1]) == 0
        deadline = time.monotonic() + 20
        while len([e for e in described(broker)["two"] if e[0] == "orders" and not e[2]]) < 4:
            assert time.monotonic() < deadline, "the move does not end"
        CLIENT.produce(broker.bootstrap_servers, "orders", RECORDS, "lz4")
        found = CLIENT.consume(broker.bootstrap_servers, "orders", "group", 1000)
        assert sorted(found) == sorted(RECORDS * 2)
        broker.kill()
        broker.start()
        again = CLIENT.consume(broker.bootstrap_servers, "orders", "another", 1000)
        assert sorted(again) == sorted(RECORDS * 2)


def test_moves_that_cannot_be_are_refused(folders: list[Path], tmp_path: Path) -> None:
    with LocalBroker(log_dirs=",".join(map(str, folders))) as broker:
        CLIENT.produce(broker.bootstrap_servers, "orders", RECORDS[:1], "none")
        assert move(broker, "orders", 0, tmp_path / "elsewhere") == 57  # LOG_DIR_NOT_FOUND
        assert move(broker, "nothing", 0, folders[1]) == 3  # UNKNOWN_TOPIC_OR_PARTITION


def test_a_second_process_is_kept_out_of_a_log_directory() -> None:
    with LocalBroker() as broker:
        second = LocalBroker(log_dirs=broker.data_folder)
        with pytest.raises(Exception, match="used by another process"):
            second.start()
        second.close()


def test_a_topic_made_again_after_a_lost_metadata_log_keeps_what_the_first_one_held(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with LocalBroker(log_dirs=data) as broker:
        CLIENT.produce(broker.bootstrap_servers, "orders", RECORDS, "none")
    held = {file.name: file.read_bytes() for file in (data / "orders-0").glob("*.log")}
    assert sum(map(len, held.values())) > 100 * len(RECORDS)
    shutil.rmtree(data / "__cluster_metadata-0")
    with LocalBroker(log_dirs=data, num_partitions=1) as broker:
        with RawConnection(broker.bootstrap_servers) as connection:
            topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
            connection.ask(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic]))
            wanted = ListOffsetsTopic(name="orders", partitions=[ListOffsetsPartition()])
            answer = connection.ask(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(topics=[wanted]))
        (said,) = answer.topics[0].partitions  # type: ignore[attr-defined]
        assert said.error_code == ErrorCode.KAFKA_STORAGE_ERROR, "nobody leads over it"
        (stray,) = data.glob("orders-0.*-stray")
        assert {file.name: file.read_bytes() for file in stray.glob("*.log")} == held
        (line,) = [line for line in broker.log().splitlines() if "stray partition set" in line]
        assert " WARNING " in line
        assert str(stray) in line
        assert not (data / "orders-0").exists()


def test_the_folder_of_another_cluster_is_refused(tmp_path: Path) -> None:
    with LocalBroker(log_dirs=tmp_path / "data"):
        pass
    shutil.rmtree(tmp_path / "data" / "__cluster_metadata-0")
    with pytest.raises(Exception, match=r"says node.id=1 and this node has 2"):
        LocalBroker(log_dirs=tmp_path / "data", node_id=2).start()
