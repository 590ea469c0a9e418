"""A backup of a broker under load, restored into another one."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyarrow import fs

from backup.command import backup, restore
from common.kafka.admin import configs
from common.kafka.admin.client import AdminClient
from common.kafka.admin.quotas import alter_quotas, describe_quotas
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.topics import create_topic, delete_topics, find_topics
from millstream.testing import LocalBroker
from millstream.testing.apache_kafka import ApacheBroker
from tests.lib.apache_kafka import kafka_libs
from tests.lib.s3_server import s3_server
from tests.lib.stock_clients import commit_offsets

pytestmark = pytest.mark.interop

OLD_MS = 1_000_000_000_000
Row = tuple[bytes | None, bytes | None, Any, int]


@pytest.fixture(scope="module")
def source() -> Iterator[LocalBroker]:
    with LocalBroker() as broker:
        yield broker


@pytest.fixture
def target() -> Iterator[LocalBroker]:
    with LocalBroker() as broker:
        yield broker


def rows(
    broker: LocalBroker | ApacheBroker, topic: str, partition: int, begin: int = 0
) -> list[Row]:
    """Return the committed records of a partition, from an offset on."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, partition, begin)])
    found: list[Row] = []
    try:
        while (message := consumer.poll(30.0)) is not None:
            if message.error():
                return found
            found.append(
                (message.key(), message.value(), message.headers(), message.timestamp()[1])
            )
    finally:
        consumer.close()
    raise AssertionError("no end within 30 s")


def committed(broker: LocalBroker, group: str, *places: tuple[str, int]) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    found = consumer.committed([TopicPartition(*place) for place in places], timeout=30)
    consumer.close()
    return [each.offset for each in found]


def transactions(broker: LocalBroker, topic: str, is_over: Callable[[int], bool]) -> None:
    """Write pairs into both partitions in transactions; abort every third."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": topic,
            "compression.type": "lz4",
        }
    )
    producer.init_transactions()
    number = 0
    while not is_over(number):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(
                topic,
                f"{number}",
                f"key-{number}",
                partition,
                timestamp=OLD_MS + number,
                headers=[("n", str(number).encode()), ("none", None)],
            )
        if number % 3 == 2:
            producer.flush()
            producer.abort_transaction()
        else:
            producer.commit_transaction()
        number += 1


def run(
    command: Callable[[list[str]], int], broker: LocalBroker | ApacheBroker, *arguments: object
) -> int:
    at = ["--bootstrap-server", broker.bootstrap_servers]
    return command([*at, *map(str, arguments)])


def admin(broker: LocalBroker) -> AdminClient:
    return AdminClient(AdminSettings.of(broker.bootstrap_servers))


def test_a_backup_under_load_is_restored(
    source: LocalBroker, target: LocalBroker, tmp_path: Path
) -> None:
    settings = {"retention.ms": "-1", "max.message.bytes": "20000"}
    with admin(source) as client:
        create_topic(client, "orders", partition_count=2, replication_factor=1, configs=settings)
    transactions(source, "orders", lambda number: number >= 60)
    before = [rows(source, "orders", 0), rows(source, "orders", 1)]
    # In each transaction a partition has a record and a marker; both offsets are of the middle.
    servers = {"bootstrap.servers": source.bootstrap_servers}
    commit_offsets(servers, "billing", {("orders", 0): 25, ("orders", 1): 60})
    with admin(source) as client:
        alter_quotas(client, {"user": None}, {"producer_byte_rate": 1e6})
    ended = threading.Event()
    load = threading.Thread(target=transactions, args=(source, "orders", lambda _: ended.is_set()))
    load.start()
    try:
        status = run(backup, source, tmp_path / "monday")
    finally:
        ended.set()
        load.join()
    assert status == 0

    assert run(restore, target, tmp_path / "monday") == 0
    for partition in (0, 1):
        restored = rows(target, "orders", partition)
        assert restored[: len(before[partition])] == before[partition]
        assert restored == rows(source, "orders", partition)[: len(restored)]
    places = ("orders", 0), ("orders", 1)
    offsets = committed(target, "billing", *places)
    for (topic, partition), offset, old in zip(places, offsets, (25, 60), strict=True):
        assert rows(target, topic, partition, offset)[0] == rows(source, topic, partition, old)[0]
    with admin(target) as client:
        assert describe_quotas(client, {}, ["user"])[0].values == {"producer_byte_rate": 1e6}
        resource = configs.Resource(configs.ResourceType.TOPIC, "orders")
        found = configs.describe(client, resource, with_synonyms=False)
    own = {
        each.name: each.value
        for each in found
        if each.source == configs.ConfigSource.DYNAMIC_TOPIC_CONFIG
    }
    assert own == settings


def test_a_damaged_file_is_refused_by_name_and_nothing_is_created(
    source: LocalBroker, target: LocalBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source.create_topic("prices", 1)
    producer = Producer({"bootstrap.servers": source.bootstrap_servers})
    producer.produce("prices", "1", "a")
    producer.flush()
    folder = tmp_path / "tuesday"
    assert run(backup, source, "--topics", "prices", folder) == 0
    segment = folder / "topics/prices/0/00000000000000000000.log"
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    capsys.readouterr()
    assert run(restore, target, folder) == 1
    assert str(segment) in capsys.readouterr().err
    with admin(target) as client:
        assert find_topics(client, ["prices"]) == []
    segment.write_bytes(whole)
    assert run(restore, target, folder) == 0
    assert rows(target, "prices", 0) == rows(source, "prices", 0)
    assert run(restore, target, folder) == 1
    assert "prices" in capsys.readouterr().err.splitlines()[-1]


def test_apache_kafka_takes_a_backup_of_every_codec(
    source: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLSTREAM_KAFKA_LIBS", kafka_libs())
    source.create_topic("codecs", 1)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {"bootstrap.servers": source.bootstrap_servers, "compression.type": codec}
        )
        for number in range(100):
            producer.produce("codecs", f"{codec}-{number}" * 9, timestamp=OLD_MS + number)
        producer.flush()
    assert run(backup, source, "--topics", "codecs", tmp_path / "ours") == 0
    with ApacheBroker(is_testing=False) as apache:
        assert run(restore, apache, tmp_path / "ours") == 0
        assert rows(apache, "codecs", 0) == rows(source, "codecs", 0)
        assert run(backup, apache, tmp_path / "theirs") == 0
    manifest = json.loads((tmp_path / "theirs/manifest.json").read_text())
    assert [each["records"] for each in manifest["topics"][0]["partitions"]] == [500]


def test_an_object_store_keeps_a_backup(
    source: LocalBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source.create_topic("kept", 1)
    producer = Producer({"bootstrap.servers": source.bootstrap_servers})
    for number in range(500):
        producer.produce("kept", f"{number}" * 99)
    producer.flush()
    before = rows(source, "kept", 0)
    with s3_server() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{server.host}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.secret)
        files = fs.S3FileSystem(
            endpoint_override=server.host, scheme="http", allow_bucket_creation=True
        )
        files.create_dir("backups")
        assert run(backup, source, "--topics", "kept", "s3://backups/monday") == 0
        assert run(backup, source, "--topics", "kept", "s3://backups/monday/") == 1
        assert "has files already" in capsys.readouterr().err
        with admin(source) as client:
            delete_topics(client, ["kept"])
        assert run(restore, source, "s3://backups/monday") == 0
        assert rows(source, "kept", 0) == before

        assert run(restore, source, "s3://backups/tuesday") == 1
        assert "s3://backups/tuesday is no whole backup" in capsys.readouterr().err
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        assert run(restore, source, "s3://backups/monday") == 1
        assert "s3://backups/monday/SHA256SUMS: " in capsys.readouterr().err
