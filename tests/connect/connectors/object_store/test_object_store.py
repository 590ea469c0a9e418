"""The object store sink: where files end, what is in them, and a real server that speaks S3."""

import dataclasses
import datetime
import gzip
import io
import json
import random
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import fastavro
from pyarrow import fs, parquet

from connect.connectors.object_store.files import FileSettings, PartitionFiles
from connect.connectors.object_store.settings import CONFIG
from connect.connectors.object_store.sink import ObjectStoreSinkConnector
from connect.connectors.object_store.sink_task import ObjectStoreSinkTask
from millstream.connect import (
    ConfigException,
    DataException,
    RetriableException,
    Schema,
    Struct,
    TopicPartition,
)
from tests.lib.connect_tasks import SinkSide, sink_record, started_sink
from tests.lib.s3_server import S3, s3_server

AT = TopicPartition("orders", 0)
ORDER = Schema.struct(
    {
        "id": Schema.int64(),
        "note": Schema.string(optional=True),
        "price": Schema.decimal(2),
        "at": Schema.timestamp(),
        "tags": Schema.array(Schema.string()),
        "by": Schema.map(Schema.string(), Schema.int32()),
        "city": Schema.string(default="Ulm/Neu"),
    },
    name="shop.Order",
)
WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=datetime.UTC)


def order(id_: int, **more: Any) -> Struct:
    told = {"id": id_, "price": Decimal("1.50"), "at": WHEN, "tags": ["a"], "by": {"x": 1}}
    return Struct(ORDER, {**told, **more})


def task_in(folder: Path, **settings: str) -> tuple[ObjectStoreSinkTask, SinkSide]:
    task = ObjectStoreSinkTask()
    told = {name.replace("_", "."): value for name, value in settings.items()}
    side = started_sink(task, {"store.url": folder.as_uri(), "flush.size": "3", **told})
    task.open([AT])
    return task, side


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_files_are_full_or_of_another_schema_and_offsets_behind_them(tmp_path: Path) -> None:
    task, side = task_in(tmp_path)
    other = Struct(Schema.struct({"id": Schema.int64()}), {"id": 9})
    task.put([sink_record(offset, offset, order(offset)) for offset in range(10, 14)])
    assert task.pre_commit({AT: 14}) == {AT: 13}
    task.put([sink_record(14, 14, other)])
    assert task.pre_commit({AT: 15}) == {AT: 14}
    task.put([sink_record(15, 15, other), sink_record(16, 16, other)])
    assert task.pre_commit({AT: 17}) == {AT: 17}
    folder = "topics/orders/partition=0/orders+0+00000000"
    assert names(tmp_path) == [f"{folder}{first}.parquet" for first in ("10", "13", "14")]
    assert side.commit_requests == 3
    table = parquet.read_table(tmp_path / f"{folder}10.parquet").to_pylist()
    assert [row["id"] for row in table] == [10, 11, 12]
    assert table[0] == {
        "id": 10,
        "note": None,
        "price": Decimal("1.50"),
        "at": WHEN,
        "tags": ["a"],
        "by": [("x", 1)],
        "city": "Ulm/Neu",
    }


def test_what_is_read_again_falls_into_the_same_files(tmp_path: Path) -> None:
    records = [
        sink_record(offset, offset, order(offset, city=random.Random(offset).choice("ABC")))
        for offset in range(40)
    ]
    settings = FileSettings(
        CONFIG.parse(
            {
                "store.url": "file:///x",
                "flush.size": "4",
                "rotate.interval.ms": "9",
                "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
                "partition.field.name": "city",
            }
        )
    )

    def complete(begin: int) -> dict[str, list[int]]:
        files = PartitionFiles(settings, begin)
        for record in records[begin:]:
            files.add(record)
        return {file.path: [value["id"] for value in file.values] for file in files.complete}

    whole = complete(0)
    assert sum(map(len, whole.values())) > 30
    starts = set()
    files = PartitionFiles(settings, 0)
    for record in records:
        files.add(record)
        for file in list(files.complete):
            files.complete.remove(file)
        starts.add(files.written_offset)
    assert len(starts) > 3
    for begin in starts:
        again = complete(begin)
        assert again == {path: ids for path, ids in whole.items() if min(ids) >= begin}


def test_a_store_that_is_away_loses_nothing_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, _ = task_in(tmp_path)
    records = [sink_record(offset, offset, order(offset)) for offset in range(7)]
    write = task._store.write
    failures = iter([True, False, True, False])

    def sometimes(path: str, body: bytes) -> None:
        if next(failures, False):
            raise OSError("away")
        write(path, body)

    monkeypatch.setattr(task._store, "write", sometimes)
    for _ in range(2):
        with pytest.raises(RetriableException):
            task.put(records)
        assert task.pre_commit({}) == {}
    task.put(records)
    assert task.pre_commit({AT: 7}) == {AT: 6}
    ids = [
        row["id"]
        for name in names(tmp_path)
        for row in parquet.read_table(tmp_path / name).to_pylist()
    ]
    assert ids == [0, 1, 2, 3, 4, 5]


def test_by_the_clock_too_each_record_is_in_one_file(tmp_path: Path) -> None:
    task, _ = task_in(tmp_path, flush_size="100", rotate_schedule_interval_ms="1")
    records = [sink_record(offset, offset, order(offset)) for offset in range(6)]
    for begin in (0, 2, 4):
        task.put(records[begin : begin + 2])
        while task._files[AT].opened:
            task.put([])
    assert len(names(tmp_path)) == 3
    # The worker died after the first commit: two files are there that nobody knows of.
    again, _ = task_in(tmp_path, flush_size="4", rotate_schedule_interval_ms="3600000")
    again.put(records[2:])
    ids = [
        row["id"]
        for name in names(tmp_path)
        for row in parquet.read_table(tmp_path / name).to_pylist()
    ]
    assert ids == [0, 1, 2, 3, 4, 5]


def test_json_lines_and_avro_files(tmp_path: Path) -> None:
    task, _ = task_in(
        tmp_path, format_class="io.confluent.connect.s3.format.json.JsonFormat", flush_size="1"
    )
    task.put([sink_record(0, 0, {"any": [1, None]})])
    (path,) = tmp_path.rglob("*.json")
    assert json.loads(path.read_text()) == {"any": [1, None]}
    task, _ = task_in(tmp_path, format_class="AvroFormat", flush_size="2")
    task.put([sink_record(1, 1, order(1)), sink_record(2, 2, order(2, note="n"))])
    (path,) = tmp_path.rglob("*.avro")
    body = path.read_bytes()
    rows: list[Any] = list(fastavro.reader(io.BytesIO(body)))
    assert [(row["id"], row["note"], row["at"]) for row in rows] == [
        (1, None, WHEN),
        (2, "n", WHEN),
    ]
    path.unlink()
    task, _ = task_in(tmp_path, format_class="AvroFormat", flush_size="2")
    task.put([sink_record(1, 1, order(1)), sink_record(2, 2, order(2, note="n"))])
    assert path.read_bytes() == body


def test_folders_by_day_by_hour_and_by_field(tmp_path: Path) -> None:
    for settings, expected in (
        (
            {"partitioner_class": "DailyPartitioner", "timestamp_extractor": "Record"},
            "year=2023/month=11/day=14",
        ),
        (
            {
                "partitioner_class": "HourlyPartitioner",
                "timestamp_extractor": "RecordField",
                "timestamp_field": "at",
            },
            "year=2026/month=01/day=02/hour=03",
        ),
        (
            {"partitioner_class": "FieldPartitioner", "partition_field_name": "city"},
            "city=Ulm%2FNeu",
        ),
    ):
        folder = tmp_path / expected.replace("/", "-")
        task, _ = task_in(folder, flush_size="1", **settings)
        task.put([sink_record(5, 5, order(5))])
        assert names(folder) == [f"topics/orders/{expected}/orders+0+0000000005.parquet"]


def test_tombstones_are_ignored_or_fail_and_maps_are_no_parquet(tmp_path: Path) -> None:
    task, _ = task_in(tmp_path, behavior_on_null_values="ignore")
    task.put([sink_record(0, 0, None)])
    assert task.pre_commit({AT: 1}) == {AT: 1}
    strict, _ = task_in(tmp_path, flush_size="1")
    with pytest.raises(DataException, match="without value"):
        strict.put([sink_record(0, 0, None)])
    with pytest.raises(DataException, match="schema"):
        strict.put([sink_record(0, 0, {"a": 1})])


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "s3.bucket.name"),
        (
            {"store.url": "file:///x", "partitioner.class": "FieldPartitioner"},
            "partition.field.name",
        ),
        ({"store.url": "file:///x", "partitioner.class": "TimeBasedPartitioner"}, "path.format"),
    ],
)
def test_settings_that_do_not_go_together(settings: dict[str, str], name: str) -> None:
    values = ObjectStoreSinkConnector().validate({"flush.size": "1", **settings})
    assert [one.name for one in values.values() if one.error_messages] == [name]


def ids_in(body: bytes, extension: str) -> list[int]:
    """Return the ids that a file of a format holds."""
    match extension:
        case "parquet":
            rows: list[Any] = parquet.read_table(io.BytesIO(body)).to_pylist()
        case "avro":
            rows = list(fastavro.reader(io.BytesIO(body)))
        case _:
            rows = [json.loads(line) for line in body.splitlines()]
    return [row["id"] for row in rows]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as found:
        yield found


@pytest.mark.interop
@pytest.mark.parametrize(
    ("more", "folder", "extension"),
    [
        ({}, "partition=0", "parquet"),
        ({"format.class": "AvroFormat"}, "partition=0", "avro"),
        ({"format.class": "JsonFormat"}, "partition=0", "json"),
        (
            {"partitioner.class": "FieldPartitioner", "partition.field.name": "city"},
            "city=Ulm%2FNeu",
            "parquet",
        ),
        (
            {
                "partitioner.class": "DailyPartitioner",
                "timestamp.extractor": "RecordField",
                "timestamp.field": "at",
            },
            "year=2026/month=01/day=02",
            "parquet",
        ),
    ],
)
def test_a_real_server_that_speaks_s3(
    s3: S3, more: dict[str, str], folder: str, extension: str
) -> None:
    files = fs.S3FileSystem(
        access_key=s3.key,
        secret_key=s3.secret,
        endpoint_override=s3.host,
        scheme="http",
        allow_bucket_creation=True,
    )
    bucket = f"millstream-{random.SystemRandom().randrange(10**9)}"
    files.create_dir(bucket)
    settings = {
        "store.url": f"http://{s3.host}",
        "s3.bucket.name": bucket,
        "aws.access.key.id": s3.key,
        "aws.secret.access.key": s3.secret,
        "s3.region": "us-east-1",
        "flush.size": "2",
        "rotate.schedule.interval.ms": "3600000",
        **more,
    }
    # The second time all of it is there already, and is written over.
    for _ in range(2):
        task = ObjectStoreSinkTask()
        started_sink(task, settings)
        task.put([sink_record(offset, offset, order(offset)) for offset in range(5)])
    found = files.get_file_info(fs.FileSelector(bucket, recursive=True))
    paths = sorted(one.path for one in found if one.type == fs.FileType.File)
    start = f"{bucket}/topics/orders/{folder}/orders+0+000000000"
    assert paths == [f"{start}{offset}.{extension}" for offset in (0, 2)]
    read = [files.open_input_stream(path).read() for path in paths]
    assert [ids_in(body, extension) for body in read] == [[0, 1], [2, 3]]
    for path in paths:
        files.delete_file(path)


@pytest.mark.interop
def test_a_server_that_knows_nobody_of_that_name_is_tried_again(s3: S3) -> None:
    task = ObjectStoreSinkTask()
    settings = {
        "store.url": f"http://{s3.host}",
        "s3.bucket.name": "none",
        "aws.access.key.id": "nobody",
        "aws.secret.access.key": "x",
        "flush.size": "1",
    }
    started_sink(task, settings)
    with pytest.raises(RetriableException, match="cannot be written to the store"):
        task.put([sink_record(0, 0, order(0))])


NO_FIELDS = Schema.struct({}, name="shop.Empty")
WITH_EMPTY = Schema.struct({"id": Schema.int64(), "of": Schema.array(NO_FIELDS)})


def test_one_record_that_no_file_holds_costs_no_other(tmp_path: Path) -> None:
    # 39 digits are more than Parquet's decimals have.
    too_large = order(1, price=Decimal(10**38))
    records = [
        sink_record(0, 0, order(0)),
        sink_record(1, 1, too_large),
        sink_record(2, 2, order(2)),
        sink_record(3, 3, Struct(NO_FIELDS, {})),
        sink_record(4, 4, Struct(WITH_EMPTY, {"id": 4, "of": []})),
        sink_record(5, 5, order(5)),
    ]
    task = ObjectStoreSinkTask()
    told = {"store.url": tmp_path.as_uri(), "flush.size": "3", "rotate.schedule.interval.ms": "1"}
    side = started_sink(task, told, tolerates=True)
    task.open([AT])
    task.put(records)
    time.sleep(0.01)
    task.put([])
    rows = [
        row["id"]
        for name in names(tmp_path)
        for row in parquet.read_table(tmp_path / name).to_pylist()
    ]
    assert sorted(rows) == [0, 2, 5]
    assert [record.original_kafka_offset for record, _ in side.reported] == [1, 3, 4]
    assert task.pre_commit({AT: 6}) == {AT: 6}
    strict, _ = task_in(tmp_path / "strict", flush_size="1")
    with pytest.raises(DataException, match="Parquet does not support a struct without fields"):
        strict.put([records[3]])


@pytest.mark.parametrize(
    ("format_class", "settings", "ending", "expected"),
    [
        ("JsonFormat", {}, ".json", b"{}\n"),
        ("JsonFormat", {"s3_compression_type": "gzip"}, ".json.gz", b"{}\n"),
        ("AvroFormat", {"avro_codec": "bzip2"}, ".avro", None),
    ],
)
def test_a_struct_without_fields_is_in_files_that_can_hold_it(
    tmp_path: Path, format_class: str, settings: dict[str, str], ending: str, expected: bytes | None
) -> None:
    task, _ = task_in(tmp_path, flush_size="1", format_class=format_class, **settings)
    task.put([sink_record(0, 0, Struct(NO_FIELDS, {}))])
    (name,) = names(tmp_path)
    assert name.endswith(f"+0000000000{ending}")
    body = (tmp_path / name).read_bytes()
    if expected is None:
        assert list(fastavro.reader(io.BytesIO(body))) == [{}]
    else:
        assert (gzip.decompress(body) if ending.endswith(".gz") else body) == expected


def test_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    told = {"format_class": "ByteArrayFormat", "format_bytearray_separator": "|"}
    task, _ = task_in(tmp_path, flush_size="2", format_bytearray_extension=".raw", **told)
    for at, value in enumerate((b"\x00\xff", b"b")):
        record = sink_record(at, at, None)
        task.put([dataclasses.replace(record, value=value, value_schema=Schema.bytes())])
    (name,) = names(tmp_path)
    assert name.endswith(".raw")
    assert (tmp_path / name).read_bytes() == b"\x00\xff|b|"
    with pytest.raises(DataException, match="ByteArrayFormat needs bytes"):
        task.put([sink_record(2, 2, "text"), sink_record(3, 3, "text")])


def test_records_without_a_value_are_ignored_and_reported(tmp_path: Path) -> None:
    for reports in ("true", "false"):
        task = ObjectStoreSinkTask()
        told = {
            "store.url": tmp_path.as_uri(),
            "flush.size": "1",
            "behavior.on.null.values": "ignore",
            "report.null.values.to.dlq": reports,
        }
        side = started_sink(task, told, tolerates=True)
        task.open([AT])
        task.put([sink_record(0, 0, None)])
        assert len(side.reported) == (reports == "true")
        assert task.pre_commit({AT: 1}) == {AT: 1}


def test_with_the_wall_clock_what_comes_again_removes_nothing(tmp_path: Path) -> None:
    told = {"partitioner_class": "DailyPartitioner", "flush_size": "1"}
    first, _ = task_in(tmp_path, **told)
    first.put([sink_record(offset, offset, order(offset)) for offset in range(3)])
    # Another day it would be there twice, as in the original; a topic that is made anew would have
    # lost its files if those were removed that lie behind its records.
    again, _ = task_in(tmp_path, **told)
    again.put([sink_record(0, 0, order(9))])
    assert [name[-12:-8] for name in names(tmp_path)] == ["0000", "0001", "0002"]


ENUM = "io.confluent.connect.avro.Enum"


def test_files_say_of_schemas_what_the_settings_say(tmp_path: Path) -> None:
    state = Schema.string(parameters={ENUM: "shop.State", f"{ENUM}.A": "A", f"{ENUM}.B": "B"})
    schema = Schema.struct(
        {"state": state, "price": Schema.decimal(2)}, name="shop.Order", version=3
    )
    value = Struct(schema, {"state": "A", "price": Decimal("1.50")})

    def file(name: str, **settings: str) -> bytes:
        task, _ = task_in(tmp_path / name, flush_size="1", **settings)
        task.put([sink_record(0, 0, value)])
        (found,) = names(tmp_path / name)
        return (tmp_path / name / found).read_bytes()

    def avro(name: str, **settings: str) -> Any:
        body = file(name, format_class="AvroFormat", **settings)
        return fastavro.reader(io.BytesIO(body)).writer_schema

    plain = avro("plain")
    assert (plain["fields"][0]["type"]["type"], plain["connect.version"]) == ("string", 3)
    assert avro("enums", enhanced_avro_schema_support="true")["fields"][0]["type"]["type"] == "enum"
    assert "connect.version" not in avro("bare", connect_meta_data="false")
    numeric = file("json", format_class="JsonFormat", json_decimal_format="NUMERIC")
    assert numeric == b'{"state":"A","price":1.50}\n'
    for codec in ("none", "snappy", "gzip", "brotli", "zstd"):
        body = file(codec, parquet_codec=codec)
        told = parquet.ParquetFile(io.BytesIO(body)).metadata.row_group(0).column(0).compression
        assert told == ("UNCOMPRESSED" if codec == "none" else codec.upper())


def test_what_the_original_has_and_this_has_not_is_refused_with_a_sentence() -> None:
    told = {"s3.bucket.name": "files", "flush.size": "1", "topics": "t"}
    wrong = {"s3.ssea.name": "AES256", "store.kafka.keys": "true", "s3.part.size": "5242880"}
    values = ObjectStoreSinkConnector().validate({**told, **wrong})
    assert {name for name, each in values.items() if each.error_messages} == {
        "s3.ssea.name",
        "store.kafka.keys",
    }
    with pytest.raises(ConfigException, match="files contain only values"):
        ObjectStoreSinkConnector().start({**told, "store.kafka.keys": "true"})


LONG = Schema.struct({"f": Schema.string()})


@pytest.mark.parametrize("text", ["x" * 300, "\ud800"])
def test_a_folder_that_no_store_has_costs_no_other_record(tmp_path: Path, text: str) -> None:
    """Repeated for ever as if the store were away, it would stop the whole task."""
    told = {"partitioner.class": "FieldPartitioner", "partition.field.name": "f"}
    told |= {"format.class": "JsonFormat", "flush.size": "1", "store.url": tmp_path.as_uri()}
    task = ObjectStoreSinkTask()
    side = started_sink(task, told, tolerates=True)
    task.open([AT])
    values = ("a", text, "b")
    task.put([sink_record(n, n, Struct(LONG, {"f": each})) for n, each in enumerate(values)])
    assert [record.kafka_offset for record, _ in side.reported] == [1]
    assert [Path(name).parent.name for name in names(tmp_path)] == ["f=a", "f=b"]
    assert task.pre_commit({AT: 3}) == {AT: 3}


def test_a_topic_whose_name_leaves_no_room_is_refused_in_words(tmp_path: Path) -> None:
    task, _ = task_in(tmp_path, format_class="JsonFormat", flush_size="1")
    with pytest.raises(DataException, match="path is longer than the store allows"):
        task.put([sink_record(0, 0, order(0), topic="t" * 249)])


@pytest.mark.parametrize("name", ["a b", "1a", "é", "a-b"])
def test_names_that_readers_of_avro_refuse_are_refused(tmp_path: Path, name: str) -> None:
    inner = Schema.struct({name: Schema.int32()}, name="Inner")
    outer = Schema.struct({"many": Schema.array(inner)}, name="Outer")
    task, _ = task_in(tmp_path, format_class="AvroFormat", flush_size="1")
    value = Struct(outer, {"many": [Struct(inner, {name: 1})]})
    with pytest.raises(DataException, match="does not allow the name of the field"):
        task.put([sink_record(0, 0, value)])
