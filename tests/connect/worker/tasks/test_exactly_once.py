"""Sources that write exactly once: where transactions end, what is refused, and many faults."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect.worker.tasks.boundaries import (
    ConnectorBoundary,
    Ending,
    IntervalBoundary,
    PollBoundary,
    boundary_of,
)
from millstream.connect import SourceRecord
from millstream.connect.errors import ConnectException
from millstream.testing import LocalBroker
from mirror.dedicated.whole_topic import whole_topic
from tests.connect.worker.tasks import exactly_once_databases
from tests.connect.worker.tasks.exactly_once import BROKER, Reader, settings_of, walk
from tests.lib.connect_worker import ConnectWorker, eventually

PLUGIN = '''
from millstream.connect import *

class TenthsSource(SourceConnector):
    """Gives 0 to 39; commits after each tenth, and drops the tens that `drop` names."""

    def task_class(self):
        return TenthsTask

    def can_define_transaction_boundaries(self, settings):
        return ConnectorTransactionBoundaries.SUPPORTED

class TenthsTask(SourceTask):
    def start(self, settings):
        self.settings = settings
        kept = self.context.offset_storage_reader.offset({"of": "tenths"})
        self.next = kept["next"] if kept else 0

    def poll(self):
        if self.next >= 40:
            return None
        number, self.next = self.next, self.next + 1
        record = SourceRecord(
            topic="numbers", key="k", value=str(number),
            source_partition={"of": "tenths"}, source_offset={"next": number + 1},
        )
        if number % 10 == 9:
            end = self.context.transaction_context
            is_dropped = str(number // 10) in self.settings["drop"]
            (end.abort_transaction if is_dropped else end.commit_transaction)(record)
        return [record]
'''

POSTGRESQL = {
    "database.hostname": "h",
    "database.user": "u",
    "database.dbname": "d",
    "topic.prefix": "p",
}


def record(number: int = 0) -> SourceRecord:
    return SourceRecord(topic="t", value=number)


def test_a_poll_is_a_transaction_unless_the_connector_says_otherwise() -> None:
    assert isinstance(boundary_of({}, 100), PollBoundary)
    assert boundary_of({}, 100).after_batch(0) is Ending.COMMIT
    assert isinstance(boundary_of({"transaction.boundary": "CONNECTOR"}, 1), ConnectorBoundary)


def test_an_interval_is_that_of_the_connector_or_of_the_worker() -> None:
    for config in ({}, {"transaction.boundary.interval.ms": "100"}):
        interval = boundary_of({"transaction.boundary": "interval", **config}, 100)
        assert isinstance(interval, IntervalBoundary)
        interval.begin(1_000)
        assert interval.after_batch(1_099) is None
        assert interval.after_batch(1_100) is Ending.COMMIT
        assert interval.after_batch(1_199) is None
        assert interval.at_end() is Ending.COMMIT


def test_a_connector_ends_its_transactions_by_batch_and_by_record() -> None:
    boundary, first, second = ConnectorBoundary(), record(), record()
    assert boundary.after_batch(0) is None
    boundary.commit_transaction(second)
    assert boundary.after_record(first) is None
    assert boundary.after_record(second) is Ending.COMMIT
    assert boundary.after_record(second) is None
    boundary.abort_transaction()
    assert boundary.after_batch(0) is Ending.ABORT
    assert boundary.at_end() is None


def test_to_commit_and_to_abort_the_same_is_an_error() -> None:
    boundary, one = ConnectorBoundary(), record()
    boundary.commit_transaction(one)
    boundary.abort_transaction(one)
    with pytest.raises(ConnectException, match="both commit and abort of same record"):
        boundary.after_record(one)
    boundary.commit_transaction()
    boundary.abort_transaction()
    with pytest.raises(ConnectException, match="both commit and abort of same transaction"):
        boundary.after_batch(0)


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(**BROKER) as started:
        yield started


@pytest.fixture(scope="module")
def worker(
    broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectWorker]:
    folder = tmp_path_factory.mktemp("exact")
    (folder / "plugins").mkdir()
    (folder / "plugins" / "tenths_plugin.py").write_text(PLUGIN)
    with ConnectWorker(folder, settings_of(broker, folder)) as started:
        eventually(lambda: started.call("GET", "/health/ready").status == 200)
        yield started


@pytest.mark.slow
def test_a_connector_drops_what_it_aborts_and_does_not_see_it_again(
    worker: ConnectWorker, broker: LocalBroker
) -> None:
    config = {
        "connector.class": "TenthsSource",
        "drop": "02",
        "transaction.boundary": "connector",
    }
    assert worker.call("PUT", "/connectors/tenths/config", config).status == 201
    committed = Reader(broker.bootstrap_servers, "read_committed")
    eventually(lambda: (committed.read(0.3), len(committed.seen))[1] >= 20)
    committed.close()
    wanted = [*range(10, 20), *range(30, 40)]
    assert committed.seen == {(b"k", str(each).encode()): 1 for each in wanted}
    offsets = worker.call("GET", "/connectors/tenths/offsets").body
    assert offsets == {"offsets": [{"partition": {"of": "tenths"}, "offset": {"next": 40}}]}


@pytest.mark.slow
def test_offsets_are_altered_when_earlier_tasks_are_shut_out(
    worker: ConnectWorker, broker: LocalBroker
) -> None:
    assert worker.call("PUT", "/connectors/tenths/stop").status == 204
    worker.wait_for("tenths", connector="STOPPED")
    told = {"offsets": [{"partition": {"of": "tenths"}, "offset": {"next": 30}}]}
    assert worker.call("PATCH", "/connectors/tenths/offsets", told).status == 200
    assert "earlier tasks fenced connector=tenths tasks=1" in worker.log()
    assert worker.call("PUT", "/connectors/tenths/resume").status == 202
    committed = Reader(broker.bootstrap_servers, "read_committed")
    eventually(lambda: (committed.read(0.3), sum(committed.seen.values()))[1] >= 30)
    committed.close()
    assert committed.seen[b"k", b"35"] == 2
    assert committed.seen[b"k", b"15"] == 1


@pytest.mark.slow
def test_a_connectors_own_topic_of_offsets_is_read_before_the_workers(
    worker: ConnectWorker, broker: LocalBroker
) -> None:
    config = {
        "connector.class": "TenthsSource",
        "drop": "0123",
        "transaction.boundary": "connector",
    }
    path, at = "/connectors/own", {"of": "tenths"}

    def shown() -> list[dict[str, Any]]:
        found = worker.call("GET", f"{path}/offsets").body["offsets"]
        return [each["offset"] for each in found]

    assert worker.call("PUT", f"{path}/config", config).status == 201
    eventually(lambda: shown() == [{"next": 40}])
    # What the worker's topic knows is where it begins; what it does from now on is in its own.
    assert worker.call("PUT", f"{path}/stop").status == 204
    worker.wait_for("own", connector="STOPPED")
    own = {**config, "offsets.storage.topic": "own-offsets"}
    assert worker.call("PUT", f"{path}/config", own).status == 200
    assert shown() == [{"next": 40}]
    assert kept(broker, "own-offsets") == []
    told = {"offsets": [{"partition": at, "offset": {"next": 20}}]}
    assert worker.call("PATCH", f"{path}/offsets", told).status == 200
    assert worker.call("PUT", f"{path}/resume").status == 202
    eventually(lambda: shown() == [{"next": 40}])
    assert [json.loads(each or b"") for each in kept(broker, "own-offsets")] == [
        {"next": number} for number in (20, 30, 40)
    ]
    assert worker.call("PUT", f"{path}/stop").status == 204
    worker.wait_for("own", connector="STOPPED")
    assert worker.call("DELETE", f"{path}/offsets").status == 200
    assert shown() == []
    assert kept(broker, "own-offsets")[-1] is None


def kept(broker: LocalBroker, topic: str) -> list[bytes | None]:
    """Give all values of a topic of offsets, as far as they are committed."""
    client = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "x",
        "isolation.level": "read_committed",
    }
    return [each.value() for each in whole_topic(client, topic)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plugin", "settings", "said"),
    [
        ("TenthsSource", {"exactly.once.support": "required"}, "does not implement the API"),
        (
            "FileStreamSource",
            {"topic": "t", "exactly.once.support": "required"},
            "does not support exactly-once semantics with the provided configuration",
        ),
        (
            "FileStreamSource",
            {"topic": "t", "file": "f", "transaction.boundary": "connector"},
            "does not support connector-defined transaction boundaries",
        ),
        ("FileStreamSource", {"topic": "t", "file": "f", "exactly.once.support": "required"}, ""),
        (
            "PostgresSource",
            {**POSTGRESQL, "exactly.once.support": "required"},
            "does not support exactly-once semantics with the provided configuration",
        ),
        (
            "PostgresSource",
            {**POSTGRESQL, "snapshot.mode": "no_data", "exactly.once.support": "required"},
            "",
        ),
    ],
)
def test_what_a_source_cannot_do_is_said_before_it_starts(
    worker: ConnectWorker, plugin: str, settings: dict[str, str], said: str
) -> None:
    config = {"name": "x", "connector.class": plugin, **settings}
    path = f"/connector-plugins/{plugin}/config/validate"
    body = worker.call("PUT", path, config).body
    errors = [each for info in body["configs"] for each in info["value"]["errors"]]
    assert body["error_count"] == len(errors) == bool(said)
    assert said in "".join(errors)


@pytest.mark.slow
def test_a_preview_lets_a_task_end_its_transactions(worker: ConnectWorker) -> None:
    config = {
        "name": "seen",
        "connector.class": "TenthsSource",
        "drop": "0",
        "transaction.boundary": "connector",
    }
    seen = worker.call("POST", "/connector-plugins/TenthsSource/preview", config)
    assert seen.status == 200
    assert len(seen.body["records"]) == 10


@pytest.mark.slow
def test_a_configuration_larger_than_a_record_is_refused(worker: ConnectWorker) -> None:
    config = {"connector.class": "FileStreamSource", "topic": "t", "file": "x" * 3_000_000}
    answered = worker.call("PUT", "/connectors/large/config", config)
    assert answered.status == 413
    assert "max.message.bytes" in answered.body["message"]
    eventually(lambda: worker.call("GET", "/health/ready").status == 200)
    assert worker.call("GET", "/connectors/large").status == 404
    config["file"] = "none"
    eventually(lambda: worker.call("PUT", "/connectors/large/config", config).status == 201)
    assert worker.call("DELETE", "/connectors/large").status == 204


@pytest.mark.slow
def test_fencing_is_asked_for_by_workers_only(worker: ConnectWorker) -> None:
    assert worker.call("PUT", "/connectors/tenths/fence").status == 400
    forged = {
        "X-Connect-Authorization": "AAAA",
        "X-Connect-Request-Signature-Algorithm": "HmacSHA256",
    }
    assert worker.call("PUT", "/connectors/tenths/fence", headers=forged).status == 403


@pytest.mark.e2e
def test_every_number_is_there_once_though_workers_are_killed_and_frozen(tmp_path: Path) -> None:
    said: list[str] = []
    result = walk(tmp_path, 1_200, 3, said.append, pause_seconds=0.2, batch=3)
    log = result.pop("log")
    assert result["missing"] == result["twice"] == [], (said, log[-20_000:])
    assert result["fenced"] > 0


@pytest.mark.e2e
def test_every_row_is_there_once_whichever_connector_read_it(tmp_path: Path) -> None:
    said: list[str] = []
    result = exactly_once_databases.walk(tmp_path, 1_000, 1, said.append)
    log = result.pop("log")
    assert exactly_once_databases.is_exact(result), (result, said, log[-20_000:])
