"""Records that cannot be processed, on a real worker: tried again, told, left out, dead letters."""

from collections.abc import Iterator

import pytest

from millstream.testing import LocalBroker
from tests.lib.connect_topics import consumed, lines, produce, put
from tests.lib.connect_worker import ConnectWorker, eventually

pytestmark = pytest.mark.slow

PLUGINS = '''
from millstream.connect import *

class PickySink(SinkConnector):
    def task_class(self):
        return PickyTask

class PickyTask(SinkTask):
    """Refuses the value `bad`, and takes `later` only the second time."""

    def put(self, records):
        for record in records:
            if record.value == "later" and not hasattr(self, "seen"):
                self.seen = True
                self.context.timeout(100)
                raise RetriableException("not now")
        for record in records:
            if record.value == "bad":
                self.context.errant_record_reporter.report(record, ValueError("it is bad"))
        with open(self.settings["file"], "a") as file:
            file.writelines(f"{each.value}\\n" for each in records if each.value != "bad")

class Upper(Transformation):
    def configure(self, configs):
        pass

    def apply(self, record):
        from dataclasses import replace
        if record.value == "drop":
            return None
        if record.value == "raise":
            raise DataException("told to raise")
        return replace(record, value=record.value.upper())

class Flaky(Transformation):
    """Takes the value `later` only after it was tried so many times in vain."""

    def configure(self, configs):
        self.left = int(configs["times"])

    def apply(self, record):
        if record.value == "later" and self.left:
            self.left -= 1
            raise RetriableException("not yet")
        return record
'''
LETTERS = {
    "errors__tolerance": "all",
    "errors__deadletterqueue__topic__replication__factor": "1",
    "errors__deadletterqueue__context__headers__enable": "true",
}
FLAKY = {
    "connector__class": "FileStreamSink",
    "topics": "retried",
    "transforms": "flaky",
    "transforms__flaky__type": "Flaky",
    "errors__retry__delay__max__ms": "20",
    "errors__task__restart__max__delay__ms": "0",
}
NEVER = "1000000000"
NO_END = "60000"


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as started:
        yield started


@pytest.fixture(scope="module")
def worker(
    broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectWorker]:
    folder = tmp_path_factory.mktemp("errors")
    (folder / "plugins").mkdir()
    (folder / "plugins" / "error_plugins.py").write_text(PLUGINS)
    told = {
        "bootstrap.servers": broker.bootstrap_servers,
        "offset.storage.file.filename": str(folder / "offsets"),
        "plugin.path": str(folder / "plugins"),
    }
    with ConnectWorker(folder, told) as started:
        yield started
        assert started.stop() == 0


def test_what_cannot_be_processed_goes_to_the_dead_letters(
    worker: ConnectWorker, broker: LocalBroker
) -> None:
    out = worker.folder / "picky-out"
    produce(broker, "picked", "one", "raise", "drop", b"\xff\xfe", "bad", "later", "last")
    put(
        worker,
        "picky",
        connector__class="PickySink",
        topics="picked",
        file=str(out),
        transforms="up",
        transforms__up__type="Upper",
        value__converter="org.apache.kafka.connect.json.JsonConverter",
        errors__tolerance="all",
        errors__deadletterqueue__topic__name="letters",
        errors__deadletterqueue__topic__replication__factor="1",
        errors__deadletterqueue__context__headers__enable="true",
    )
    # None of them is JSON.
    letters = consumed(broker, "letters", 7)
    headers = [dict(each.headers()) for each in letters]
    assert {each["__connect.errors.stage"] for each in headers} == {b"VALUE_CONVERTER"}
    put(
        worker,
        "picky2",
        connector__class="PickySink",
        topics="picked",
        file=str(out),
        errors__tolerance="all",
        errors__deadletterqueue__topic__name="letters2",
        errors__deadletterqueue__topic__replication__factor="1",
        errors__deadletterqueue__context__headers__enable="true",
    )
    (letter,) = consumed(broker, "letters2", 1)
    told = dict(letter.headers())
    assert letter.value() == b"bad"
    assert told["__connect.errors.stage"] == b"TASK_PUT"
    assert told["__connect.errors.topic"] == b"picked"
    assert told["__connect.errors.offset"] == b"4"
    assert told["__connect.errors.connector.name"] == b"picky2"
    assert told["__connect.errors.exception.message"] == b"it is bad"
    eventually(lambda: lines(out)[-1:] == ["last"])
    assert lines(out) == ["one", "raise", "drop", "\ufffd\ufffd", "later", "last"]


def test_a_dead_letter_of_a_transformation_tells_all_of_its_failure(
    worker: ConnectWorker, broker: LocalBroker
) -> None:
    out = worker.folder / "raised-out"
    produce(broker, "raised", "one", "raise", "last")
    put(
        worker,
        "raising",
        connector__class="FileStreamSink",
        topics="raised",
        file=str(out),
        transforms="up",
        transforms__up__type="Upper",
        errors__deadletterqueue__topic__name="letters3",
        **LETTERS,
    )
    (letter,) = consumed(broker, "letters3", 1)
    assert letter.value() == b"raise"
    told = {name.removeprefix("__connect.errors."): text for name, text in letter.headers()}
    trace = told.pop("exception.stacktrace").decode()
    assert told == {
        "topic": b"raised",
        "partition": b"0",
        "offset": b"1",
        "connector.name": b"raising",
        "task.id": b"0",
        "stage": b"TRANSFORMATION",
        "class.name": b"error_plugins.Upper",
        "exception.class.name": b"org.apache.kafka.connect.errors.DataException",
        "exception.message": b"told to raise",
    }
    assert "in apply" in trace
    assert trace.endswith("DataException: told to raise\n")
    eventually(lambda: lines(out) == ["ONE", "LAST"])


def counted(worker: ConnectWorker, name: str, what: str) -> float:
    """Give one of the error metrics of a connector's only task."""
    of = f'kafka_connect_task_error_{what}_total{{connector="{name}",task="0"}} '
    (line,) = [
        each for each in worker.call("GET", "/metrics").body.splitlines() if each.startswith(of)
    ]
    return float(line.removeprefix(of))


def test_a_step_is_tried_again_until_its_timeout_is_over(
    worker: ConnectWorker, broker: LocalBroker
) -> None:
    produce(broker, "retried", "one", "later", "last")
    outs = {name: worker.folder / f"{name}-out" for name in ("flaky", "skips", "impatient", "gone")}
    put(
        worker,
        "flaky",
        file=str(outs["flaky"]),
        transforms__flaky__times="3",
        errors__retry__timeout=NO_END,
        **FLAKY,
    )
    eventually(lambda: lines(outs["flaky"]) == ["one", "later", "last"])
    assert counted(worker, "flaky", "total_retries") == 3
    assert counted(worker, "flaky", "total_records_skipped") == 0

    put(
        worker,
        "skips",
        file=str(outs["skips"]),
        transforms__flaky__times=NEVER,
        errors__retry__timeout="100",
        errors__tolerance="all",
        **FLAKY,
    )
    eventually(lambda: lines(outs["skips"]) == ["one", "last"])
    assert counted(worker, "skips", "total_retries") > 0
    assert counted(worker, "skips", "total_records_skipped") == 1

    # By default nothing is tried again, and nothing is tolerated.
    put(worker, "impatient", file=str(outs["impatient"]), transforms__flaky__times="1", **FLAKY)
    worker.wait_for("impatient", connector="RUNNING", t0="FAILED")
    put(
        worker,
        "gone",
        file=str(outs["gone"]),
        transforms__flaky__times=NEVER,
        errors__retry__timeout="100",
        **FLAKY,
    )
    worker.wait_for("gone", connector="RUNNING", t0="FAILED")
    for name in ("impatient", "gone"):
        trace = worker.call("GET", f"/connectors/{name}/tasks/0/status").body["trace"]
        assert "RetriableException: not yet" in trace
        assert "Tolerance exceeded in error handler" in trace
        assert "later" not in lines(outs[name])


def test_what_is_tolerated_is_logged_when_that_is_asked_for(
    worker: ConnectWorker, broker: LocalBroker
) -> None:
    produce(broker, "logged", "one", "raise", "last")
    told = {
        "connector__class": "FileStreamSink",
        "topics": "logged",
        "transforms": "up",
        "transforms__up__type": "Upper",
        "errors__tolerance": "all",
    }
    enabled = {"errors__log__enable": "true"}
    for name, more in (
        ("quiet", {}),
        ("says", enabled),
        ("tells", {**enabled, "errors__log__include__messages": "true"}),
    ):
        out = worker.folder / f"{name}-out"
        put(worker, name, file=str(out), **told, **more)
        eventually(lambda out=out: lines(out) == ["ONE", "LAST"])
    said = (
        "Error encountered in task {}-0. Executing stage 'TRANSFORMATION' with class "
        "'error_plugins.Upper'{}"
    )
    log = worker.log()
    assert "Error encountered in task quiet-0" not in log
    assert said.format("says", ".\n") in log
    where = ", where consumed record is {topic='logged', partition=0, offset=1, timestamp="
    assert said.format("tells", where) in log
    assert "DataException: told to raise" in log
    assert [counted(worker, name, "total_errors_logged") for name in ("quiet", "says")] == [0, 1]
