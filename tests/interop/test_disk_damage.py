"""A real broker, a real folder, one file of it damaged: what is there again, and what is said.

Either everything that was acknowledged is there, or the broker says in one line which file it is
about; it refuses with that line or serves the rest. Never a traceback, never wrong data.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from broker.errors import ErrorCode
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from broker.records.batch import split_batches
from broker.records.build import build_batch
from broker.records.errors import CorruptBatch
from millrace.testing.node_process import BrokerFailedError, NodeProcess
from tests.lib.disk_damage import DAMAGES, flip_in_log
from tests.lib.logs import NOW_MS
from tests.lib.raw_kafka import RawConnection

pytestmark = pytest.mark.interop

SEEDS = int(os.environ.get("MILLRACE_DAMAGE_SEEDS", "400")) // 40
TOPIC, PARTITIONS, GROUP, COMMITTED = "orders", (0, 1), "shop", 17
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.num.partitions": "1",
    "metadata.log.max.record.bytes.between.snapshots": "300",
}
NOT_READ = {".lock"}


@dataclass
class Found:
    """What a client found: records by partition and offset, and whether it was refused any."""

    rows: dict[tuple[int, int], bytes]
    committed: int
    is_refused: bool = False


def node_in(folder: Path) -> NodeProcess:
    return NodeProcess(folder, SETTINGS)


def fill(bootstrap: str, first: int, *, is_new: bool) -> None:
    with RawConnection(bootstrap) as connection:
        if is_new:
            small = CreatableTopicConfig(name="internal.segment.bytes", value="1500")
            topic = CreatableTopic(
                name=TOPIC, num_partitions=2, replication_factor=1, configs=[small]
            )
            created = connection.ask(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic]))
            assert isinstance(created, CreateTopicsResponse)
            assert created.topics[0].error_code == ErrorCode.NONE
        for number in range(first, first + 30):
            for partition in PARTITIONS:
                produce(connection, partition, b"%d of %d " % (number, partition) * 10)
        connection.find_coordinator(GROUP)
        committed = OffsetCommitRequestPartition(partition_index=0, committed_offset=COMMITTED)
        request = OffsetCommitRequest(
            group_id=GROUP,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[committed])],
        )
        answer = connection.ask(ApiKey.OFFSET_COMMIT, 6, request)
        assert isinstance(answer, OffsetCommitResponse)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


def produce(connection: RawConnection, partition: int, value: bytes) -> None:
    batch = build_batch([(None, value, (), NOW_MS)])
    data = TopicProduceData(
        name=TOPIC, partition_data=[PartitionProduceData(index=partition, records=batch)]
    )
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])
    answer = connection.ask(ApiKey.PRODUCE, 9, request)
    assert isinstance(answer, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def look(bootstrap: str) -> Found:
    found = Found({}, -1)
    with RawConnection(bootstrap) as connection:
        for partition in PARTITIONS:
            read(connection, partition, found)
        topic = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
        request = OffsetFetchRequest(group_id=GROUP, topics=[topic])
        connection.ask(ApiKey.OFFSET_FETCH, 5, request)
        answer = connection.ask(ApiKey.OFFSET_FETCH, 5, request)
        assert isinstance(answer, OffsetFetchResponse)
        if answer.error_code == ErrorCode.NONE and answer.topics:
            found.committed = answer.topics[0].partitions[0].committed_offset
    return found


def read(connection: RawConnection, partition: int, found: Found) -> None:
    offset = 0
    while True:
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=4000)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=TOPIC, partitions=[wanted])]
        )
        answer = connection.ask(ApiKey.FETCH, 11, request)
        assert isinstance(answer, FetchResponse)
        (data,) = answer.responses[0].partitions
        if data.error_code != ErrorCode.NONE:
            found.is_refused = True
            return
        before = offset
        try:
            for batch in split_batches(bytes(data.records or b"")):  # type: ignore[arg-type]
                if not batch.has_valid_crc:
                    raise CorruptBatch("as every consumer sees")
                for record in batch.records():
                    found.rows[partition, record.offset] = record.value or b""
                offset = batch.next_offset
        except CorruptBatch:
            found.is_refused = True
            return
        if offset == before:
            return


@dataclass
class Prepared:
    """Two folders as two stops left them, and what a client must find again."""

    folders: dict[str, Path]
    held: Found


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("disks")
    node = node_in(folder / "whole")
    folders = {}
    for number, (state, end) in enumerate((("clean", node.stop), ("killed", node.kill))):
        node.launch()
        bootstrap = f"127.0.0.1:{node.wait_until_ready()}"
        fill(bootstrap, number * 30, is_new=not number)
        held = look(bootstrap)
        end()
        folders[state] = folder / state
        shutil.copytree(node.data_folder, folders[state] / "data")
    assert held.committed == COMMITTED
    assert len(held.rows) == 120
    return Prepared(folders, held)


def damage(random: Random, folder: Path) -> tuple[Path, str]:
    """Damage one file; each kind of file is as likely as any other."""
    paths = [
        path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in NOT_READ
    ]
    kind = random.choice(sorted({path.name.lstrip("0123456789-") for path in paths}))
    path = random.choice([path for path in paths if path.name.endswith(kind)])
    is_text = path.suffix != ".checkpoint" and path.name.endswith(
        ("checkpoint", "properties", "metadata", "quorum-state")
    )
    # A number in a text that is wrong and makes sense is beyond anybody's knowing.
    ways = sorted(name for name in DAMAGES if not is_text or name != "flipped")
    how = random.choice(ways)
    data = path.read_bytes()
    way = (
        flip_in_log if how == "flipped" and path.suffix in {".log", ".checkpoint"} else DAMAGES[how]
    )
    after = way(random, data)
    path.unlink()
    if after is not None:
        path.write_bytes(after)
    return path, how


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_broker_says_what_is_wrong_with_its_disk(
    seed: int, prepared: Prepared, tmp_path: Path
) -> None:
    random = Random(seed)
    state = random.choice(sorted(prepared.folders))
    shutil.copytree(prepared.folders[state] / "data", tmp_path / "data")
    path, how = damage(random, tmp_path / "data")
    where = f"{path.relative_to(tmp_path)} {how} after {state}"
    node = node_in(tmp_path)
    node.launch()
    try:
        found = look(f"127.0.0.1:{node.wait_until_ready()}")
        node.stop()
    except BrokerFailedError:
        found = Found({}, -1)
        assert "millrace broker: cannot start: " in node.log(), (where, node.log())
    finally:
        node.kill()
    log = node.log()
    assert "Traceback" not in log, (where, log)
    held = prepared.held.rows if state == "killed" else first_half(prepared.held.rows)
    for key, value in found.rows.items():
        assert held.get(key) == value, (where, key)
    is_whole = found.rows.keys() >= held.keys() and found.committed == COMMITTED
    is_named = str(path.parent) in log and (path.name in log or how == "deleted")
    # What a broker does not look into it sends as it is, and every consumer checks the CRC.
    assert is_whole or is_named or found.is_refused, (where, found.committed, log)


def first_half(rows: dict[tuple[int, int], bytes]) -> dict[tuple[int, int], bytes]:
    return {key: value for key, value in rows.items() if key[1] < 30}
