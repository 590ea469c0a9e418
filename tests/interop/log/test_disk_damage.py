"""A real broker, a real folder, one file of it damaged: what is there again, and what is said.

The folder has what a broker leaves: batches of plain, idempotent and transactional producers, of
which some aborted, a group's offsets, a compacted topic that was cleaned.

Either everything that was acknowledged is there, or the broker says in one line which file it is
about; it refuses with that line or serves the rest. Never a traceback, never wrong data.
"""

import os
import shutil
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from broker.records.batch import split_batches
from broker.records.build import build_batch
from broker.records.errors import CorruptBatch
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from common.kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from common.kafka.protocol.messages.end_txn import EndTxnRequest
from common.kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from common.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from common.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from millstream.testing.node_process import BrokerFailedError, NodeProcess
from tests.lib.disk_damage import DAMAGES, flip_in_log
from tests.lib.logs import NOW_MS
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

SEEDS = int(os.environ.get("MILLSTREAM_DAMAGE_SEEDS", "400")) // 40
TOPIC, COMPACTED, GROUP, COMMITTED = "orders", "stock", "shop", 17
READ_COMMITTED = 1
PLACES = ((TOPIC, 0), (TOPIC, 1), (COMPACTED, 0))
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.num.partitions": "1",
    "metadata.log.max.record.bytes.between.snapshots": "300",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.backoff.ms": "50",
    "log.flush.offset.checkpoint.interval.ms": "200",
}
NOT_READ = {".lock"}


@dataclass
class Found:
    """What a client found: records by place and offset, and whether it was refused any."""

    rows: dict[tuple[str, int, int], bytes]
    committed: int
    aborted: set[tuple[str, int, int]] = field(default_factory=set)
    """By place, whose one transaction there was aborted."""
    is_refused: bool = False


def node_in(folder: Path) -> NodeProcess:
    return NodeProcess(folder, SETTINGS)


def fill(bootstrap: str, first: int, *, is_new: bool) -> None:
    with RawConnection(bootstrap) as connection:
        if is_new:
            create(connection, TOPIC, 2)
            create(connection, COMPACTED, 1, {"cleanup.policy": "compact"})
        idempotent = Producer(connection)
        for number in range(first, first + 30):
            for topic, partition in PLACES:
                value = b"%d of %s-%d " % (number, topic.encode(), partition) * 10
                idempotent.produce(topic, partition, value, is_idempotent=number % 3 == 0)
        for number in range(4):
            transactional = Producer(connection, f"till-{first}-{number}")
            for topic, partition in PLACES:
                transactional.write_and_end(topic, partition, is_commit=number % 2 == 0)
        connection.find_coordinator(GROUP)
        committed = OffsetCommitRequestPartition(partition_index=0, committed_offset=COMMITTED)
        request = OffsetCommitRequest(
            group_id=GROUP,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[committed])],
        )
        answer = connection.ask(ApiKey.OFFSET_COMMIT, 6, request)
        assert isinstance(answer, OffsetCommitResponse)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


def create(
    connection: RawConnection, name: str, partition_count: int, more: dict[str, str] | None = None
) -> None:
    settings = {"internal.segment.bytes": "1500", **(more or {})}
    topic = CreatableTopic(
        name=name,
        num_partitions=partition_count,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in settings.items()],
    )
    created = connection.ask(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic]))
    assert isinstance(created, CreateTopicsResponse)
    assert created.topics[0].error_code == ErrorCode.NONE


class Producer:
    """A producer with an id, which it need not use."""

    def __init__(self, connection: RawConnection, transactional_id: str | None = None) -> None:
        self._connection = connection
        self._transactional_id = transactional_id
        self._sequences: dict[tuple[str, int], int] = {}
        if transactional_id is not None:
            request = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
            self._ask_until_loaded(ApiKey.FIND_COORDINATOR, 4, request)
        wanted = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=60_000
        )
        answer: Any = self._ask_until_loaded(ApiKey.INIT_PRODUCER_ID, 4, wanted)
        self._id, self._epoch = answer.producer_id, answer.producer_epoch

    def _ask_until_loaded(self, api_key: ApiKey, version: int, request: Message) -> Any:
        answer: Any = None

        def is_answered() -> bool:
            nonlocal answer
            answer = self._connection.ask(api_key, version, request)
            answers = getattr(answer, "coordinators", None) or [answer]
            return all(each.error_code == ErrorCode.NONE for each in answers)

        until(is_answered)
        return answer

    def produce(
        self, topic: str, partition: int, value: bytes, *, is_idempotent: bool = True
    ) -> None:
        sequence = self._sequences.get((topic, partition), 0)
        fields = {"producer_id": self._id, "producer_epoch": self._epoch, "base_sequence": sequence}
        if is_idempotent:
            self._sequences[topic, partition] = sequence + 1
        batch = build_batch(
            [(value, value, (), NOW_MS)],
            is_transactional=self._transactional_id is not None,
            **(fields if is_idempotent else {}),
        )
        data = TopicProduceData(
            name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)]
        )
        request = ProduceRequest(
            transactional_id=self._transactional_id, acks=-1, timeout_ms=1000, topic_data=[data]
        )
        answer: Any = self._connection.ask(ApiKey.PRODUCE, 9, request)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE

    def write_and_end(self, topic: str, partition: int, *, is_commit: bool) -> None:
        """Do a whole transaction; the next begins when its marker is written."""
        wanted = AddPartitionsToTxnTopic(name=topic, partitions=[partition])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id or "",
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[wanted],
        )

        def is_added() -> bool:
            added: Any = self._connection.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
            (of_topic,) = added.results_by_topic_v3_and_below
            code = of_topic.results_by_partition[0].partition_error_code
            assert code in {ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS}
            return bool(code == ErrorCode.NONE)

        until(is_added)
        self.produce(topic, partition, b"by %s in %d" % (topic.encode(), self._id))
        end = EndTxnRequest(
            transactional_id=self._transactional_id or "",
            producer_id=self._id,
            producer_epoch=self._epoch,
            committed=is_commit,
        )
        ended: Any = self._connection.ask(ApiKey.END_TXN, 3, end)
        assert ended.error_code == ErrorCode.NONE


def look(bootstrap: str) -> Found:
    found = Found({}, -1)
    with RawConnection(bootstrap) as connection:
        for topic_name, partition in PLACES:
            read(connection, topic_name, partition, found)
        topic = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
        request = OffsetFetchRequest(group_id=GROUP, topics=[topic])
        connection.ask(ApiKey.OFFSET_FETCH, 5, request)
        answer = connection.ask(ApiKey.OFFSET_FETCH, 5, request)
        assert isinstance(answer, OffsetFetchResponse)
        if answer.error_code == ErrorCode.NONE and answer.topics:
            found.committed = answer.topics[0].partitions[0].committed_offset
    return found


def read(connection: RawConnection, topic: str, partition: int, found: Found) -> None:
    offset = 0
    while True:
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=4000)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=READ_COMMITTED,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        answer = connection.ask(ApiKey.FETCH, 11, request)
        assert isinstance(answer, FetchResponse)
        (data,) = answer.responses[0].partitions
        if data.error_code != ErrorCode.NONE:
            found.is_refused = True
            return
        aborted = {each.producer_id for each in data.aborted_transactions or ()}
        found.aborted |= {(topic, partition, producer_id) for producer_id in aborted}
        before = offset
        try:
            for batch in split_batches(bytes(data.records or b"")):  # type: ignore[arg-type]
                if not batch.has_valid_crc:
                    raise CorruptBatch("as every consumer sees")
                header = batch.header
                is_aborted = header.is_transactional and header.producer_id in aborted
                if not header.is_control and not is_aborted:
                    for record in batch.records():
                        found.rows[topic, partition, record.offset] = record.value or b""
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
    held: dict[str, Found]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("disks")
    node = node_in(folder / "whole")
    prepared = Prepared({}, {})
    for number, (state, end) in enumerate((("clean", node.stop), ("killed", node.kill))):
        node.launch()
        bootstrap = f"127.0.0.1:{node.wait_until_ready()}"
        fill(bootstrap, number * 30, is_new=not number)
        until(partial(has_cleaned, node.data_folder))
        held = prepared.held[state] = look(bootstrap)
        end()
        prepared.folders[state] = folder / state
        shutil.copytree(node.data_folder, prepared.folders[state] / "data")
        assert held.committed == COMMITTED
        assert len(held.rows) == (number + 1) * len(PLACES) * (30 + 2)
        assert len({each[:2] for each in held.aborted}) == len(PLACES)
    return prepared


def has_cleaned(folder: Path) -> bool:
    checkpoint = folder / "cleaner-offset-checkpoint"
    return checkpoint.exists() and COMPACTED in checkpoint.read_text()


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
        assert "millstream broker: cannot start: " in node.log(), (where, node.log())
    finally:
        node.kill()
    log = node.log()
    assert "Traceback" not in log, (where, log)
    held = prepared.held[state].rows
    for key, value in found.rows.items():
        assert held.get(key) == value, (where, key)
    is_whole = found.rows.keys() >= held.keys() and found.committed == COMMITTED
    is_named = str(path.parent) in log and (path.name in log or how == "deleted")
    # What a broker does not look into it sends as it is, and every consumer checks the CRC.
    assert is_whole or is_named or found.is_refused, (where, found.committed, log)
