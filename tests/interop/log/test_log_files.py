"""Our files under Apache Kafka's tools, and Apache Kafka's files under ours."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import confluent_kafka
import pytest

from broker.log.append import AppendOrigin
from broker.log.checkpoints import read_properties
from broker.log.cleaner.run import CleaningLimits, clean
from broker.log.cleaner.schedule import measure
from broker.log.config import LogConfig
from broker.log.log_directories import LogDirectories
from broker.log.log_directory import DirectorySettings
from broker.log.partition_log import PartitionLog
from broker.log.storage import RealStorage
from broker.model import TopicPartition
from broker.records.build import build_batch
from broker.records.control import EndMarker, build_end_marker
from tests.lib.apache_kafka import Tool, ToolResult, kafka_libs, run_tools, running_node
from tests.lib.logs import NOW_MS, read_batches, read_records

pytestmark = pytest.mark.interop

DUMP = "org.apache.kafka.tools.DumpLogSegments"
FILES_FOR = {
    "--index-sanity-check": "index",
    "--offsets-decoder": "__consumer_offsets",
    "--transaction-log-decoder": "__transaction_state",
    "--cluster-metadata-decoder": "__cluster_metadata",
}
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


def directories(path: Path, config: LogConfig) -> LogDirectories:
    properties = read_properties(RealStorage(), f"{path}/meta.properties")
    settings = DirectorySettings(
        properties.get("cluster.id", "MkU3OEVBNTcwNTJENDM2Qk"),
        int(properties.get("node.id", "1")),
        lambda topic: config,
        lambda: os.urandom(16),
    )
    opened = LogDirectories(RealStorage(), [str(path)], settings)
    opened.open(NOW_MS)
    return opened


def files_of(folder: Path) -> list[str]:
    return [str(path) for path in sorted(folder.glob("*-*/*")) if path.suffix in SUFFIXES]


def fill(log: PartitionLog) -> None:
    """Every kind of batch: codecs, headers, producers, transactions of both outcomes, epochs."""
    for n in range(120):
        value = os.urandom(30).hex().encode()
        records = [(b"k%d" % (x % 9), value, [("h", b"x")], NOW_MS + n) for x in range(5)]
        producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": n * 5}
        batch = build_batch(records, compression=n % 5, **producer)
        log.append_as_leader(batch, leader_epoch=n // 50, timestamp_ms=NOW_MS)
        if n % 10 == 0:
            transaction(log, 100 + n, is_commit=n % 20 == 0)
        log.advance_high_watermark(log.log_end_offset)


def transaction(log: PartitionLog, producer_id: int, *, is_commit: bool) -> None:
    fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
    batch = build_batch([(b"t", b"t", (), NOW_MS)], is_transactional=True, **fields)
    log.append_as_leader(batch, leader_epoch=log.leader_epoch, timestamp_ms=NOW_MS)
    marker = build_end_marker(producer_id, 0, EndMarker(is_commit, 0), NOW_MS)
    log.append_as_leader(
        marker,
        leader_epoch=log.leader_epoch,
        timestamp_ms=NOW_MS,
        origin=AppendOrigin.COORDINATOR,
    )


def test_kafka_dump_log_reads_every_file_we_write(tmp_path: Path) -> None:
    libs = kafka_libs()
    config = LogConfig(internal_segment_bytes=20_000, index_interval_bytes=500)
    opened = directories(tmp_path, config)
    plain = opened.create(TopicPartition("plain", 0), b"p" * 16, config)
    compacted_config = LogConfig(
        cleanup_policy=("compact",), internal_segment_bytes=20_000, index_interval_bytes=500
    )
    compacted = opened.create(TopicPartition("compacted", 3), b"c" * 16, compacted_config)
    fill(plain)
    fill(compacted)
    clean(measure(compacted, NOW_MS), NOW_MS, CleaningLimits())
    opened.remove_due(NOW_MS + 10**9)
    opened.close()
    files = files_of(tmp_path)
    assert {Path(file).suffix for file in files} == set(SUFFIXES)
    batch_count = sum(len(list(x.walk())) for log in (plain, compacted) for x in log.segments)

    indexes = [file for file in files if file.endswith("index") and "txn" not in file]
    deep, *checks = dumped(
        libs,
        ("--deep-iteration", "--print-data-log", "--files", ",".join(files)),
        ("--index-sanity-check", "--files", ",".join(indexes)),
        ("--verify-index-only", "--files", ",".join(indexes)),
    )
    # With gaps after compaction, and for any first offset but 0, it says "is followed by".
    complaints = [line for line in deep.errors.splitlines() if "followed by" not in line]
    assert not [line for line in complaints if "Non-consecutive" not in line], deep.errors
    assert deep.output.count("isvalid: true") == batch_count
    assert "isvalid: false" not in deep.output
    assert "invalid bytes" not in deep.output
    assert f"producerId: {5}" in deep.output

    for checked in checks:
        assert (checked.status, checked.errors) == (0, ""), checked.errors
    assert ours("--deep-iteration", "--print-data-log", "--files", ",".join(files)) == deep.output


def dumped(libs: str, *calls: tuple[str, ...]) -> list[ToolResult]:
    return run_tools(libs, [Tool(DUMP, arguments) for arguments in calls])


def ours(*arguments: str) -> str:
    command = [sys.executable, "-m", "broker", "dump-log", *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode()


def produce_everything(bootstrap: str) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "enable.idempotence": True,
                "linger.ms": 2,
            }
        )
        for n in range(500):
            producer.produce("filled", key=f"k{n % 9}", value=f"value {n}", headers=[("h", b"x")])
        producer.flush()
    for n in range(4):
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": f"t{n}"}
        )
        producer.init_transactions()
        producer.begin_transaction()
        for value in range(5):
            producer.produce("transactions", key=b"k", value=b"%d" % value)
        producer.flush()
        if n % 2:
            producer.commit_transaction()
        else:
            producer.abort_transaction()


def commit_offsets(bootstrap: str) -> None:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "group",
        "auto.offset.reset": "earliest",
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe(["filled", "transactions"])
    seen = 0
    while seen < 2510:
        seen += len(consumer.consume(100, 0.1))
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a node has left that has stopped: those who go on with it do so with a copy."""
    folder = tmp_path_factory.mktemp("kafka")
    with running_node(kafka_libs(), folder) as bootstrap:
        produce_everything(bootstrap)
        commit_offsets(bootstrap)
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
        producer.produce("shared", b"from Kafka")
        producer.flush()
    return folder / "data"


def test_we_read_every_file_that_apache_kafka_writes(written: Path, tmp_path: Path) -> None:
    libs = kafka_libs()
    shutil.copytree(written, tmp_path / "data")
    files = files_of(tmp_path / "data")
    assert {Path(file).suffix for file in files} == set(SUFFIXES)
    calls: list[tuple[str, ...]] = []
    for flags in (
        ("--deep-iteration", "--print-data-log"),
        ("--index-sanity-check",),
        ("--offsets-decoder",),
        ("--transaction-log-decoder",),
        ("--cluster-metadata-decoder",),
    ):
        chosen = [file for file in files if flags[0] != "--index-sanity-check" or "index" in file]
        topic = {"-o": "__consumer", "-t": "__trans", "-c": "__cluster"}.get(
            flags[0][1:3], "/data/"
        )
        chosen = [file for file in chosen if topic in file]
        calls.append((*flags, "--files", ",".join(chosen)))
    for call, theirs in zip(calls, dumped(libs, *calls), strict=True):
        assert ours(*call) == theirs.output, call

    opened = directories(tmp_path / "data", LogConfig())
    assert opened.directories[0].failure is None
    assert opened.directories[0].was_clean
    filled = opened.get(TopicPartition("filled", 0))
    transactions = opened.get(TopicPartition("transactions", 0))
    assert filled is not None
    assert transactions is not None
    for log in (filled, transactions):
        log.advance_high_watermark(log.log_end_offset)
    values = [record.value for record in read_records(filled)]
    assert values == [b"value %d" % n for _ in range(5) for n in range(500)]
    assert all(batch.has_valid_crc for batch in read_batches(filled))
    assert len(filled.producers.producers) == 5
    read = transactions.read(0, max_bytes=99_999, max_offset=99, with_aborted_transactions=True)
    assert len(read.aborted_transactions) == 2
    assert transactions.last_stable_offset == transactions.log_end_offset == 24
    opened.close()


@pytest.mark.parametrize("is_clean", [True, False])
def test_apache_kafka_goes_on_where_we_stopped(
    written: Path, tmp_path: Path, is_clean: bool
) -> None:
    """Kafka begins a topic, we append to it in Kafka's directory, Kafka serves and goes on."""
    libs = kafka_libs()
    shutil.copytree(written, tmp_path / "data")
    config = LogConfig(internal_segment_bytes=20_000, index_interval_bytes=500)
    opened = directories(tmp_path / "data", config)
    log = opened.get(TopicPartition("shared", 0))
    assert log is not None
    log.advance_high_watermark(log.log_end_offset)
    fill(log)
    end_offset, expected = log.log_end_offset, len(visible_values(log))
    opened.close(clean=is_clean)
    with running_node(libs, tmp_path) as bootstrap:
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
        producer.produce("shared", b"from Kafka again")
        producer.flush()
        values = consume_all(bootstrap, "shared", expected + 1)
    assert values[0] == b"from Kafka"
    assert values[-1] == b"from Kafka again"
    again = directories(tmp_path / "data", config)
    shared = again.get(TopicPartition("shared", 0))
    assert shared is not None
    assert shared.log_end_offset == end_offset + 1
    shared.advance_high_watermark(shared.log_end_offset)
    assert [value for value in visible_values(shared) if value is not None] == values
    again.close()


def visible_values(log: PartitionLog) -> list[bytes | None]:
    """What a read_committed reader sees."""
    aborted = {
        offset
        for segment in log.segments
        for entry in segment.transaction_index.entries
        for offset in range(entry.first_offset, entry.last_offset)
    }
    return [record.value for record in read_records(log) if record.offset not in aborted]


def consume_all(bootstrap: str, topic: str, count: int) -> list[bytes]:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "all",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "check.crcs": True,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([topic])
    values: list[bytes] = []
    while len(values) < count:
        for message in consumer.consume(100, 0.1):
            assert message.error() is None, message.error()
            values.append(message.value())
    consumer.close()
    return values
