"""FileStreamSource and FileStreamSink, without a worker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect.connectors import file_stream
from connect.connectors.file_stream import (
    FileStreamSinkConnector,
    FileStreamSinkTask,
    FileStreamSourceConnector,
    FileStreamSourceTask,
)
from millstream.connect import (
    ConfigException,
    ConnectException,
    ExactlyOnceSupport,
    Schema,
    SinkRecord,
    Struct,
)

STARTED: list[FileStreamSourceTask] = []


class Kept:
    """Plays the worker for a source task: what it kept of the source."""

    def __init__(self, offset: dict[str, Any] | None = None) -> None:
        self.kept = offset
        self.offset_storage_reader = self

    def offset(self, partition: object) -> dict[str, Any] | None:
        del partition
        return self.kept


def source(path: Path, offset: dict[str, Any] | None = None, **more: str) -> FileStreamSourceTask:
    task = FileStreamSourceTask()
    STARTED.append(task)
    task.context = Kept(offset)  # type: ignore[assignment]
    task.start({"file": str(path), "topic": "t", **more})
    return task


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(file_stream, "_WAIT_SECONDS", 0.0)
    yield
    while STARTED:
        STARTED.pop().stop()


def lines(task: FileStreamSourceTask) -> list[tuple[str, int]]:
    return [(each.value, each.source_offset["position"]) for each in task.poll() or []]


def test_every_line_is_a_record_with_the_position_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes("a\r\nbb\n\rü\nrest".encode())
    task = source(path)
    assert lines(task) == [("a", 3), ("bb", 6), ("", 7), ("ü", 10)]
    assert lines(task) == []
    with path.open("ab") as file:
        file.write(b" of it\nnext\r")
    assert lines(task) == [("rest of it", 21)]
    # A \n may follow the \r.
    with path.open("ab") as file:
        file.write(b"\n")
    assert lines(task) == [("next", 27)]


def test_a_source_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\nthree\n")
    assert lines(source(path, {"position": 4})) == [("two", 8), ("three", 14)]
    with pytest.raises(ConnectException):
        source(path, {"position": "4"}).poll()


def test_a_poll_gives_at_most_a_batch(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"1\n2\n3\n")
    task = source(path, **{"batch.size": "2"})
    assert [len(lines(task)) for _ in range(3)] == [2, 1, 0]


def test_a_line_longer_than_a_read_is_one_record(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"x" * 200_000 + b"\ny\n")
    assert [len(value) for value, _ in lines(source(path))] == [200_000, 1]


def test_a_missing_file_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "later"
    task = source(path)
    assert task.poll() is None
    path.write_bytes(b"here\n")
    assert lines(task) == [("here", 5)]


def test_a_source_says_what_is_wrong_with_offsets() -> None:
    connector, settings = FileStreamSourceConnector(), {"file": "f", "topic": "t"}
    name = {"filename": "f"}
    assert connector.alter_offsets(settings, [(name, {"position": 0}), (None, None)])
    for partition, offset in [
        (name, {}),
        (name, {"position": "1"}),
        (name, {"position": -1}),
        (None, {"position": 1}),
        ({}, {"position": 1}),
    ]:
        with pytest.raises(ConnectException):
            connector.alter_offsets(settings, [(partition, offset)])
    with pytest.raises(ConnectException, match="stdin"):
        connector.alter_offsets({"topic": "t"}, [(name, {"position": 0})])
    with pytest.raises(ConfigException):
        connector.start({"file": "f"})
    assert connector.exactly_once_support(settings) is ExactlyOnceSupport.SUPPORTED
    assert connector.exactly_once_support({}) is ExactlyOnceSupport.UNSUPPORTED


def test_a_sink_appends_a_line_for_each_record(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("before\n")
    schema = Schema.struct({"id": Schema.int32()})
    task = FileStreamSinkTask()
    task.start({"file": str(path)})
    values = [("text", None), (None, None), (Struct(schema, {"id": 1}), schema), ({"a": 1}, None)]
    task.put(
        [
            SinkRecord(topic="t", kafka_partition=0, kafka_offset=at, value=each, value_schema=of)
            for at, (each, of) in enumerate(values)
        ]
    )
    task.flush({})
    assert path.read_text() == "before\ntext\nnull\nStruct{id=1}\n{a=1}\n"
    task.stop()
    connector = FileStreamSinkConnector()
    connector.start({"file": str(path)})
    assert len(connector.task_configs(3)) == 3
    with pytest.raises(ConnectException):
        task.start({"file": str(tmp_path / "no" / "folder")})


@pytest.mark.parametrize("file", ["\0", " ", ""])
@pytest.mark.parametrize(
    "connector", [FileStreamSourceConnector, FileStreamSinkConnector], ids=["source", "sink"]
)
def test_a_file_that_is_blank_is_none(
    connector: type[FileStreamSourceConnector | FileStreamSinkConnector], file: str
) -> None:
    """It is parsed as in validation, which has no objection to it."""
    settings = {"topic": "t", "file": file}
    assert not [each for each in connector().validate(settings).values() if each.error_messages]
    made = connector()
    made.start(settings)
    made.stop()
