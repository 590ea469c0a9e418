"""Connectors and tasks that raise everywhere they can: the worker lives, and says what is known.

A failure of what runs is FAILED with its trace; one on the way out changes nothing of how it ends.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from millstream.testing import LocalBroker
from tests.lib.connect_worker import ConnectWorker, eventually

pytestmark = pytest.mark.slow

PLUGINS = """
from millstream.connect import *

def told(settings, where):
    if settings.get("raise.in") == where:
        raise RuntimeError(f"told to raise in {where}")

class RaisingSource(SourceConnector):
    def start(self, settings):
        super().start(settings)
        told(settings, "connector start")

    def task_configs(self, max_tasks):
        told(self.settings, "task_configs")
        return [self.settings]

    def validate(self, settings):
        told(settings, "validate")
        return super().validate(settings)

    @classmethod
    def config(cls):
        return ConfigDef()

    def stop(self):
        told(self.settings, "connector stop")

    def task_class(self):
        return RaisingSourceTask

class RaisingSourceTask(SourceTask):
    def start(self, settings):
        self.settings, self.sent = settings, 0
        told(settings, "start")

    def poll(self):
        told(self.settings, "poll")
        if self.sent:
            return None
        self.sent = 1
        return [SourceRecord(topic="raised", value="x", source_partition={"p": 1},
                             source_offset={"o": 1})]

    def metrics(self):
        told(self.settings, "metrics")
        yield TaskMetric("raised_figure", {"where": self.settings["raise.in"]}, 1)

    def commit_record(self, record, metadata):
        told(self.settings, "commit_record")

    def commit(self):
        told(self.settings, "commit")

    def stop(self):
        told(self.settings, "stop")

class RaisingSink(SinkConnector):
    def task_class(self):
        return RaisingSinkTask

class RaisingSinkTask(SinkTask):
    def start(self, settings):
        self.settings = settings
        told(settings, "start")

    def open(self, partitions):
        told(self.settings, "open")

    async def put(self, records):
        if records:
            told(self.settings, "put")

    async def flush(self, offsets):
        told(self.settings, "flush")

    async def pre_commit(self, offsets):
        told(self.settings, "pre_commit")
        await self.flush(offsets)
        return offsets

    def close(self, partitions):
        told(self.settings, "close")

    async def stop(self):
        told(self.settings, "stop")

class ConfigSource(RaisingSource):
    @classmethod
    def config(cls):
        raise RuntimeError("told to raise in config")

class RaisingConverter(Converter):
    def configure(self, configs, is_key):
        raise RuntimeError("told to raise in configure")

    def from_connect_data(self, topic, schema, value):
        return b""

    def to_connect_data(self, topic, value):
        return None
"""


@pytest.fixture(scope="module", params=["thread", "process"])
def worker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectWorker]:
    folder = tmp_path_factory.mktemp("raising")
    (folder / "plugins").mkdir()
    (folder / "plugins" / "raising_plugins.py").write_text(PLUGINS)
    with LocalBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("given", b"1")
        assert producer.flush(30) == 0
        told = {
            "bootstrap.servers": broker.bootstrap_servers,
            "plugin.path": str(folder / "plugins"),
            "tasks.isolation": request.param,
            "offset.storage.file.filename": str(folder / "offsets"),
            "consumer.auto.offset.reset": "earliest",
        }
        with ConnectWorker(folder, told) as started:
            yield started


def config(kind: str, where: str, **more: str) -> dict[str, str]:
    topics = {"topics": "given"} if kind == "RaisingSink" else {}
    return {
        "connector.class": kind,
        "raise.in": where,
        "errors.task.restart.max.delay.ms": "0",
        **topics,
        **more,
    }


def status(worker: ConnectWorker, name: str) -> Any:
    return worker.call("GET", f"/connectors/{name}/status").body


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        ("RaisingSource", "start"),
        ("RaisingSource", "poll"),
        ("RaisingSink", "start"),
        ("RaisingSink", "open"),
        ("RaisingSink", "put"),
    ],
)
def test_a_task_that_raises_where_it_works_fails_with_its_trace(
    worker: ConnectWorker, kind: str, where: str
) -> None:
    name = f"{kind}-{where}"
    assert worker.call("PUT", f"/connectors/{name}/config", config(kind, where)).status == 201
    worker.wait_for(name, connector="RUNNING", t0="FAILED")
    assert f"told to raise in {where}" in status(worker, name)["tasks"][0]["trace"]
    assert worker.call("DELETE", f"/connectors/{name}").status == 204


def test_a_task_whose_figures_raise_has_none_and_goes_on(worker: ConnectWorker) -> None:
    for name, where in (("tells", "nowhere"), ("tells-not", "metrics")):
        config_of = config("RaisingSource", where)
        assert worker.call("PUT", f"/connectors/{name}/config", config_of).status == 201
        worker.wait_for(name, connector="RUNNING", t0="RUNNING")
    eventually(lambda: 'raised_figure{where="nowhere"} 1.0' in worker.call("GET", "/metrics").body)
    eventually(lambda: "task's metrics are left out task=tells-not-0" in worker.log())
    assert worker.call("GET", "/metrics").status == 200
    for name in ("tells", "tells-not"):
        assert worker.states(name) == {"connector": "RUNNING", "0": "RUNNING"}
        assert worker.call("DELETE", f"/connectors/{name}").status == 204


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        ("RaisingSource", "commit_record"),
        ("RaisingSource", "commit"),
        ("RaisingSource", "stop"),
        ("RaisingSink", "flush"),
        ("RaisingSink", "pre_commit"),
        ("RaisingSink", "close"),
        ("RaisingSink", "stop"),
        ("RaisingSource", "connector stop"),
    ],
)
def test_what_raises_besides_or_on_the_way_out_is_logged_and_it_goes_on(
    worker: ConnectWorker, kind: str, where: str
) -> None:
    name = f"{kind}-{where}".replace(" ", "-")
    assert worker.call("PUT", f"/connectors/{name}/config", config(kind, where)).status == 201
    worker.wait_for(name, connector="RUNNING", t0="RUNNING")
    if where in ("commit_record", "commit", "flush", "pre_commit"):
        eventually(lambda: f"told to raise in {where}" in worker.log())
        assert worker.states(name) == {"connector": "RUNNING", "0": "RUNNING"}
    if (kind, where) == ("RaisingSink", "close"):  # A task without partitions closes none.
        eventually(lambda: worker.call("GET", f"/connectors/{name}/offsets").body["offsets"])
    assert worker.call("PUT", f"/connectors/{name}/stop").status == 204
    worker.wait_for(name, connector="STOPPED")
    eventually(lambda: f"told to raise in {where}" in worker.log())
    assert worker.call("DELETE", f"/connectors/{name}").status == 204


@pytest.mark.parametrize("where", ["connector start", "task_configs"])
def test_a_connector_that_raises_fails_with_its_trace_or_has_no_tasks(
    worker: ConnectWorker, where: str
) -> None:
    name = where.replace(" ", "-")
    answered = worker.call("PUT", f"/connectors/{name}/config", config("RaisingSource", where))
    assert answered.status in (201, 500), answered
    eventually(lambda: f"told to raise in {where}" in worker.log())
    if where == "connector start":
        worker.wait_for(name, connector="FAILED")
        assert f"told to raise in {where}" in status(worker, name)["connector"]["trace"]
    assert worker.call("DELETE", f"/connectors/{name}").status == 204


@pytest.mark.parametrize(
    "told",
    [
        config("RaisingSource", "validate"),
        config("ConfigSource", "config"),
        config("RaisingSource", "", **{"value.converter": "RaisingConverter"}),
    ],
    ids=["validate", "config", "converter"],
)
def test_what_raises_while_it_is_checked_is_refused_or_fails_and_the_worker_lives(
    worker: ConnectWorker, told: dict[str, str]
) -> None:
    answered = worker.call("PUT", "/connectors/checked/config", told)
    if answered.status == 201:
        eventually(lambda: "FAILED" in str(status(worker, "checked")))
        assert "told to raise in configure" in str(status(worker, "checked"))
        assert worker.call("DELETE", "/connectors/checked").status == 204
    else:
        assert answered.status in (400, 500), answered
        assert "told to raise in" in answered.body["message"] + worker.log()
    assert worker.call("GET", "/health").status == 200
