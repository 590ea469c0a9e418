"""A worker by itself, as a process, on a real broker: files in, files out, and all of REST."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millstream.testing import LocalBroker
from tests.lib.connect_topics import consumed, lines, produce, put
from tests.lib.connect_worker import ConnectWorker, eventually

pytestmark = pytest.mark.slow

PLUGINS = '''
import time
from millstream.connect import *

class CountingSource(SourceConnector):
    """Numbers without end, each once: the offset is the last one."""

    @classmethod
    def config(cls):
        return ConfigDef().define(
            "secret", ConfigDef.Type.PASSWORD, Importance.HIGH, "", default=None
        )

    def task_class(self):
        return CountingTask

    def note(self):
        return self.settings.get("said")

class CountingTask(SourceTask):
    def note(self):
        return "All are told." if self.settings.get("said") and self.sent == 100 else None

    async def start(self, settings):
        self.settings = dict(settings)
        kept = self.context.offset_storage_reader.offset({"of": "numbers"})
        self.number = kept["last"] if kept else 0
        self.sent = 0

    async def poll(self):
        if self.settings.get("block"):
            time.sleep(60)
        if self.settings.get("fail") == str(self.number):
            raise RuntimeError("told to fail")
        if self.sent == int(self.settings.get("count", 100)):
            return None
        self.sent += 1
        self.number += 1
        return [
            SourceRecord(
                topic=self.settings["topic"], key=str(self.number), value=str(self.number),
                source_partition={"of": "numbers"}, source_offset={"last": self.number},
                headers=[(self.settings.get("header", "n"), self.number)],
            )
        ]

class BlockingConnector(SourceConnector):
    def start(self, settings):
        time.sleep(60)
'''


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("worker")
    (path / "plugins").mkdir()
    (path / "plugins" / "test_plugins.py").write_text(PLUGINS)
    (path / "secrets.properties").write_text("password=hunter2\n")
    return path


def settings(broker: LocalBroker, folder: Path, **more: str) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "offset.storage.file.filename": str(folder / "offsets"),
        "plugin.path": str(folder / "plugins"),
        "config.providers": "file",
        "config.providers.file.class": "FileConfigProvider",
        "task.shutdown.graceful.timeout.ms": "1000",
        **more,
    }


@pytest.fixture(scope="module")
def worker(broker: LocalBroker, folder: Path) -> Iterator[ConnectWorker]:
    with ConnectWorker(folder, settings(broker, folder)) as started:
        yield started
        assert started.stop() == 0


def test_lines_go_from_file_to_file_and_offsets_survive_kill_9(
    broker: LocalBroker, tmp_path: Path
) -> None:
    source, sink = tmp_path / "source.json", tmp_path / "sink.properties"
    about = {"connector.class": "FileStreamSource", "file": f"{tmp_path}/in", "topic": "moved"}
    source.write_text(json.dumps({"name": "moving-in", **about}))
    sink.write_text(
        f"name=moving-out\nconnector.class=FileStreamSink\ntopics=moved\nfile={tmp_path}/out\n"
        "consumer.override.session.timeout.ms=6000\n"
    )
    first = [f"line {number}" for number in range(2000)]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in first))
    told = {
        "bootstrap.servers": broker.bootstrap_servers,
        "offset.storage.file.filename": f"{tmp_path}/offsets",
    }
    worker = ConnectWorker(tmp_path, told, source, sink).start()
    try:
        eventually(lambda: len(lines(tmp_path / "out")) >= len(first))
        end = (tmp_path / "in").stat().st_size
        offsets = "/connectors/moving-in/offsets"
        eventually(
            lambda: (
                [each["offset"] for each in worker.call("GET", offsets).body["offsets"]]
                == [{"position": end}]
            )
        )
        worker.kill()
        with (tmp_path / "in").open("a") as file:
            file.write("after\n")
        worker.start()
        eventually(lambda: "after" in lines(tmp_path / "out"))
    finally:
        worker.stop()
    # Nothing is lost, and nothing that was kept comes again from the source.
    messages = consumed(broker, "moved", len(first) + 1)
    assert [each.value().decode() for each in messages] == [*first, "after"]
    assert set(first) <= set(lines(tmp_path / "out"))


def test_a_connector_is_made_shown_changed_and_removed(worker: ConnectWorker) -> None:
    config = {"connector.class": "CountingSource", "topic": "counted"}
    made = worker.call("POST", "/connectors", {"name": "life", "config": config})
    assert made.status == 201
    assert made.headers["Location"].endswith("/connectors/life")
    assert made.body["config"] == {**config, "name": "life"}
    assert made.body["type"] == "source"
    worker.wait_for("life", connector="RUNNING", t0="RUNNING")
    assert worker.call("GET", "/connectors/life").body["tasks"] == [
        {"connector": "life", "task": 0}
    ]
    assert "life" in worker.call("GET", "/connectors").body
    shown = worker.call("GET", "/connectors?expand=status&expand=info").body["life"]
    assert shown["status"]["connector"]["worker_id"] == worker.worker_id
    assert shown["info"]["name"] == "life"

    again = worker.call("POST", "/connectors", {"name": "life", "config": config})
    assert (again.status, again.body["error_code"]) == (409, 409)
    assert worker.call("PUT", "/connectors/life/config", {**config, "a": "b"}).status == 200
    patched = worker.call("PATCH", "/connectors/life/config", {"a": None, "c": 1})
    assert patched.body["config"] == {**config, "name": "life", "c": "1"}
    other = worker.call("PUT", "/connectors/life/config", {**config, "name": "other"})
    assert other.status == 400
    assert "doesn't match" in other.body["message"]

    worker.wait_for("life", connector="RUNNING", t0="RUNNING")
    tasks = worker.call("GET", "/connectors/life/tasks").body
    assert tasks[0]["id"] == {"connector": "life", "task": 0}
    assert tasks[0]["config"]["task.class"].endswith("CountingTask")
    topics = "/connectors/life/topics"
    eventually(lambda: worker.call("GET", topics).body == {"life": {"topics": ["counted"]}})
    assert worker.call("PUT", f"{topics}/reset").status == 202
    assert worker.call("DELETE", "/connectors/life").status == 204
    assert worker.call("GET", "/connectors/life").status == 404
    eventually(lambda: worker.call("GET", "/connectors/life/status").status == 404)


def test_pausing_stopping_and_altering_offsets(worker: ConnectWorker, broker: LocalBroker) -> None:
    put(worker, "states", connector__class="CountingSource", topic="stated", count="5")
    offsets = "/connectors/states/offsets"
    at = {"of": "numbers"}
    eventually(
        lambda: (
            worker.call("GET", offsets).body
            == {"offsets": [{"partition": at, "offset": {"last": 5}}]}
        )
    )
    assert worker.call("DELETE", offsets).status == 400
    assert worker.call("PUT", "/connectors/states/pause").status == 202
    worker.wait_for("states", connector="PAUSED", t0="PAUSED")
    assert worker.call("PUT", "/connectors/states/resume").status == 202
    worker.wait_for("states", connector="RUNNING", t0="RUNNING")
    assert worker.call("PUT", "/connectors/states/stop").status == 204
    worker.wait_for("states", connector="STOPPED")
    assert worker.call("PATCH", offsets, {"offsets": []}).status == 400
    altered = worker.call("PATCH", offsets, {"offsets": [{"partition": at, "offset": {"last": 1}}]})
    assert altered.status == 200
    assert "altered successfully" in altered.body["message"]
    worker.call("PUT", "/connectors/states/resume")
    values = [each.value() for each in consumed(broker, "stated", 10)]
    assert values[:10] == [b"%d" % each for each in (1, 2, 3, 4, 5, 2, 3, 4, 5, 6)]
    worker.call("PUT", "/connectors/states/stop")
    worker.wait_for("states", connector="STOPPED")
    assert worker.call("DELETE", offsets).status == 200
    assert worker.call("GET", offsets).body == {"offsets": []}


def test_a_sinks_offsets_are_its_groups(worker: ConnectWorker, broker: LocalBroker) -> None:
    out = worker.folder / "group-out"
    produce(broker, "grouped", *"abcd")
    put(worker, "group", connector__class="FileStreamSink", topics="grouped", file=str(out))
    at = {"kafka_topic": "grouped", "kafka_partition": 0}
    offsets = "/connectors/group/offsets"
    eventually(
        lambda: (
            worker.call("GET", offsets).body
            == {"offsets": [{"partition": at, "offset": {"kafka_offset": 4}}]}
        )
    )
    worker.call("PUT", "/connectors/group/stop")
    worker.wait_for("group", connector="STOPPED")
    told = {"offsets": [{"partition": at, "offset": {"kafka_offset": "2"}}]}
    assert worker.call("PATCH", offsets, told).status == 200
    worker.call("PUT", "/connectors/group/resume")
    eventually(lambda: lines(out) == ["a", "b", "c", "d", "c", "d"])
    worker.call("PUT", "/connectors/group/stop")
    worker.wait_for("group", connector="STOPPED")
    told = {"offsets": [{"partition": at, "offset": None}]}
    assert worker.call("PATCH", offsets, told).status == 200
    assert worker.call("GET", offsets).body == {"offsets": []}
    assert worker.call("DELETE", offsets).status == 200


def test_a_task_that_fails_says_why_starts_again_and_nobody_else_is_held_up(
    worker: ConnectWorker,
) -> None:
    put(
        worker,
        "failing",
        connector__class="CountingSource",
        topic="failed",
        fail="3",
        errors__task__restart__max__delay__ms="0",
    )
    worker.wait_for("failing", connector="RUNNING", t0="FAILED")
    task = worker.call("GET", "/connectors/failing/tasks/0/status").body
    assert "RuntimeError: told to fail" in task["trace"]
    again = worker.call("POST", "/connectors/failing/restart?includeTasks=true&onlyFailed=true")
    assert again.status == 202
    assert [each["state"] for each in again.body["tasks"]] == ["RESTARTING"]
    worker.wait_for("failing", connector="RUNNING", t0="FAILED")
    assert worker.call("POST", "/connectors/failing/tasks/0/restart").status == 204
    assert worker.call("POST", "/connectors/failing/tasks/1/restart").status == 404
    worker.wait_for("failing", connector="RUNNING", t0="FAILED")
    put(worker, "failing", connector__class="CountingSource", topic="failed", fail="3")
    eventually(
        lambda: worker.call("GET", "/connectors/failing/tasks/0/status").body.get("restarts", 0) > 0
    )
    worker.call("DELETE", "/connectors/failing")


@pytest.mark.parametrize("header", ["a\0b"])
def test_a_header_whose_name_librdkafka_would_cut_is_refused(
    worker: ConnectWorker, header: str
) -> None:
    told = {"connector__class": "CountingSource", "topic": "cut", "header": header}
    put(worker, "cut", **told, errors__task__restart__max__delay__ms="0")
    worker.wait_for("cut", connector="RUNNING", t0="FAILED")
    trace = worker.call("GET", "/connectors/cut/tasks/0/status").body["trace"]
    assert "a header's name is no text that Kafka's client takes" in trace
    worker.call("DELETE", "/connectors/cut")


def test_a_status_shows_what_a_connector_and_a_task_say_of_themselves(
    worker: ConnectWorker,
) -> None:
    put(worker, "noting", connector__class="CountingSource", topic="noted", said="It counts.")
    worker.wait_for("noting", connector="RUNNING", t0="RUNNING")
    eventually(
        lambda: (
            worker.call("GET", "/connectors/noting/tasks/0/status").body.get("note")
            == "All are told."
        )
    )
    status = worker.call("GET", "/connectors/noting/status").body
    assert status["connector"]["note"] == "It counts."
    (shown,) = [
        each
        for each in worker.call("GET", "/page/state").body["connectors"]
        if each["name"] == "noting"
    ]
    assert (shown["note"], shown["tasks"][0]["note"]) == ("It counts.", "All are told.")
    worker.call("DELETE", "/connectors/noting")


def test_a_source_whose_file_is_missing_says_so(worker: ConnectWorker) -> None:
    missing = worker.folder / "missing.txt"
    put(worker, "waits", connector__class="FileStreamSource", topic="waits", file=str(missing))

    def note() -> str | None:
        said: str | None = worker.call("GET", "/connectors/waits/tasks/0/status").body.get("note")
        return said

    eventually(lambda: "There is no file" in (note() or ""))
    missing.write_text("here\n")
    eventually(lambda: note() is None)
    worker.call("DELETE", "/connectors/waits")


def test_what_blocks_for_ever_holds_up_nothing(worker: ConnectWorker) -> None:
    put(worker, "blocking", connector__class="CountingSource", topic="blocked", block="yes")
    worker.wait_for("blocking", connector="RUNNING", t0="RUNNING")
    put(worker, "stuck", connector__class="BlockingConnector")
    put(worker, "beside", connector__class="CountingSource", topic="beside")
    worker.wait_for("beside", connector="RUNNING", t0="RUNNING")
    for name in ("blocking", "stuck", "beside"):
        assert worker.call("DELETE", f"/connectors/{name}").status == 204
    eventually(lambda: worker.call("GET", "/connectors/blocking/status").status == 404)
    eventually(lambda: worker.call("GET", "/connectors/stuck/status").status == 404)


def test_secrets_are_never_returned(worker: ConnectWorker, folder: Path) -> None:
    variable = f"${{file:{folder}/secrets.properties:password}}"
    put(worker, "hush", connector__class="CountingSource", topic="hushed", secret="swordfish")
    shown = worker.call("GET", "/connectors/hush/config").body
    assert shown["secret"] == "[hidden]"
    # What is shown may be put again.
    worker.call("PUT", "/connectors/hush/config", {**shown, "topic": variable})
    worker.wait_for("hush", connector="RUNNING", t0="RUNNING")
    assert worker.call("GET", "/connectors/hush").body["config"]["topic"] == variable
    eventually(lambda: worker.call("GET", "/connectors/hush/topics").body["hush"]["topics"] != [])
    # It stays where it went: with another address it has to be given again.
    moved = {**shown, "peer.url": "http://stranger:1"}
    for method, path, body in (
        ("PUT", "/connectors/hush/config", moved),
        ("PATCH", "/connectors/hush/config", {"peer.url": "http://stranger:1"}),
        ("POST", "/connector-plugins/CountingSource/preview", {**moved, "name": "hush"}),
    ):
        refused = worker.call(method, path, body)
        assert (refused.status, "secret must be given again" in refused.body["message"]) == (
            400,
            True,
        )
    given = worker.call("PATCH", "/connectors/hush/config", {**moved, "secret": "other"})
    assert given.status == 200
    told = {
        "connector.class": "FileStreamSource",
        "topic": "t",
        "name": "x",
        "batch.size": variable,
    }
    infos = worker.call("PUT", "/connector-plugins/FileStreamSource/config/validate", told).body
    (wrong,) = [each["value"] for each in infos["configs"] if each["value"]["errors"]]
    assert wrong["value"] == variable
    everything = json.dumps([infos, worker.call("GET", "/connectors/hush/tasks").body])
    assert "hunter2" not in everything
    assert "swordfish" not in everything
    worker.call("DELETE", "/connectors/hush")


def test_a_sinks_topics_match_a_pattern_of_javas_when_they_come(
    worker: ConnectWorker, broker: LocalBroker, folder: Path
) -> None:
    out = folder / "matched.out"
    pattern = r"shop\.(?!secret$)(?<name>[a-z]+)-\d+|shop\.late"
    put(worker, "matched", connector__class="FileStreamSink", topics__regex=pattern, file=str(out))
    worker.wait_for("matched", connector="RUNNING", t0="RUNNING")

    def note() -> str | None:
        task = worker.call("GET", "/connectors/matched/status").body["tasks"][0]
        found: str | None = task.get("note")
        return found

    eventually(lambda: "No topic matches topics.regex=" in str(note()))
    for topic in ("shop.secret", "shop.orders-1", "shop.orders-d", "shop.orders-22"):
        produce(broker, topic, topic)
    eventually(lambda: sorted(lines(out)) == ["shop.orders-1", "shop.orders-22"])
    eventually(lambda: note() is None)
    worker.call("DELETE", "/connectors/matched")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "/connectors/none", None, 404, "Connector none not found"),
        ("GET", "/connectors/none/status", None, 404, "No status found for connector none"),
        ("PUT", "/connectors/none/pause", None, 404, "Unknown connector none"),
        ("POST", "/connectors/none/restart", None, 404, "Unknown connector: none"),
        ("DELETE", "/connectors/none", None, 404, "Connector none not found"),
        ("GET", "/connectors/none/offsets", None, 404, "Connector none not found"),
        ("GET", "/nothing", None, 404, "HTTP 404 Not Found"),
        ("PATCH", "/connectors", None, 405, "HTTP 405 Method Not Allowed"),
        ("POST", "/connectors", b"{", 400, "no JSON"),
        ("POST", "/connectors", [], 400, "no JSON object"),
        ("POST", "/connectors", {"name": "x"}, 400, "configuration"),
        ("POST", "/connectors", {"name": "x", "config": {}}, 400, "contains no connector type"),
        (
            "POST",
            "/connectors",
            {"name": "x", "config": {}, "initial_sate": "STOPPED"},
            400,
            "Unknown field 'initial_sate'",
        ),
        (
            "POST",
            "/connectors",
            {"name": "x", "config": {"connector.class": "Nobody"}},
            400,
            "Failed to find any class",
        ),
        (
            "POST",
            "/connectors",
            {"name": "x\0y", "config": {"connector.class": "FileStreamSource", "topic": "t"}},
            400,
            "control sequences",
        ),
        (
            "POST",
            "/connectors",
            {"name": "x", "config": {"connector.class": "FileStreamSink"}},
            400,
            "Must configure one of topics or topics.regex",
        ),
        (
            "PUT",
            "/connectors/x/config",
            {
                "connector.class": "FileStreamSource",
                "topic": "t",
                "exactly.once.support": "required",
            },
            400,
            "does not have exactly-once source support",
        ),
        ("PUT", "/connector-plugins/Nobody/config/validate", {}, 400, "no connector type"),
        ("GET", "/connector-plugins/Nobody/config", None, 404, "Unknown plugin"),
        ("GET", "/admin/loggers/no.such.logger", None, 404, "not found"),
        ("PUT", "/admin/loggers/root", {}, 400, "'level' parameter"),
        ("PUT", "/admin/loggers/root", {"level": "LOUD"}, 404, "invalid log level"),
    ],
)
def test_what_is_wrong_is_said(
    worker: ConnectWorker, method: str, path: str, body: Any, status: int, said: str
) -> None:
    answered = worker.call(method, path, body)
    assert answered.status == status
    assert answered.body["error_code"] == status
    assert said in answered.body["message"]


SINK: dict[str, Any] = {"connector.class": "FileStreamSink", "topics": "odd", "file": "/dev/null"}
SOURCE: dict[str, Any] = {
    "connector.class": "FileStreamSource",
    "topic": "odd",
    "file": "/dev/null",
}


@pytest.mark.parametrize("odd", ["\ud800", "a\udcffb", "a\0b"])
@pytest.mark.parametrize(
    ("config", "name"),
    [
        (SOURCE, "connector.class"),
        (SOURCE, "topic"),
        (SOURCE, "file"),
        (SOURCE, "tasks.max"),
        (SOURCE, "key.converter"),
        (SOURCE, "transforms"),
        (SOURCE, "predicates"),
        (SOURCE, "offsets.storage.topic"),
        (SOURCE, "producer.override.client.id"),
        (SINK, "topics"),
        (SINK, "topics.regex"),
        (SINK, "consumer.override.group.id"),
        (SINK, "consumer.override.client.id"),
        (SINK, "errors.deadletterqueue.topic.name"),
        (SINK, "?"),
    ],
)
def test_a_text_that_is_no_unicode_is_refused_before_librdkafka_gets_it(
    worker: ConnectWorker, config: dict[str, Any], name: str, odd: str
) -> None:
    told = {**config, "name": "odd", odd if name == "?" else name: odd}
    if name == "topics.regex":
        del told["topics"]
    kind = config["connector.class"]
    checked = worker.call("PUT", f"/connector-plugins/{kind}/config/validate", told)
    made = worker.call("PUT", "/connectors/odd/config", told)
    if "\0" in odd:
        assert checked.status < 500
        assert made.status < 500
        worker.call("DELETE", "/connectors/odd")
        assert worker.call("GET", "/health").status == 200
        return
    assert checked.status == 400
    assert made.status == 400
    assert "no Unicode" in made.body["message"]
    for method, path in (("POST", "/connectors"), ("PATCH", "/connectors/there/config")):
        assert worker.call(method, path, {"name": "odd", "config": told}).status == 400
    assert worker.call("GET", "/health").status == 200


def test_odd_offsets_are_refused(worker: ConnectWorker) -> None:
    worker.call("PUT", "/connectors/odd-offsets/config", {**SINK, "name": "odd-offsets"})
    eventually(lambda: worker.call("PUT", "/connectors/odd-offsets/stop").status == 204)
    for topic, offset in (("\ud800", 1), ("a\0b", 1), ("", 1), ("odd", 1 << 63), ("odd", -1 << 63)):
        entry = {
            "partition": {"kafka_topic": topic, "kafka_partition": 0},
            "offset": {"kafka_offset": offset},
        }
        told = worker.call("PATCH", "/connectors/odd-offsets/offsets", {"offsets": [entry]})
        assert 400 <= told.status < 500, told
    worker.call("DELETE", "/connectors/odd-offsets")


def test_a_form_is_no_json(worker: ConnectWorker) -> None:
    told = {"Content-Type": "application/x-www-form-urlencoded"}
    assert worker.call("POST", "/connectors", b"name=x", told).status == 415


def test_names_with_slashes_and_values_of_a_million_characters(worker: ConnectWorker) -> None:
    config = {"connector.class": "FileStreamSource", "topic": "t", "file": "x" * 1_000_000}
    path = "/connectors/a%2Fb%20c"
    assert worker.call("PUT", f"{path}/config", config).status == 201
    assert worker.call("GET", path).body["name"] == "a/b c"
    assert worker.call("DELETE", path).status == 204


def test_plugins_and_what_they_may_be_told(worker: ConnectWorker) -> None:
    shown = worker.call("GET", "/connector-plugins").body
    assert {each["type"] for each in shown} == {"source", "sink"}
    everything = worker.call("GET", "/connector-plugins?connectorsOnly=false").body
    assert {"converter", "header_converter"} <= {each["type"] for each in everything}
    keys = worker.call("GET", "/connector-plugins/FileStreamSource/config").body
    assert [each["name"] for each in keys][:4] == ["file", "topic", "batch.size", "name"]
    told = {"connector.class": "FileStreamSource", "tasks.max": "0"}
    infos = worker.call("PUT", "/connector-plugins/FileStreamSource/config/validate", told).body
    assert infos["name"] == "FileStreamSource"
    errors = {
        each["value"]["name"]: each["value"]["errors"]
        for each in infos["configs"]
        if each["value"] and each["value"]["errors"]
    }
    assert sorted(errors) == ["name", "tasks.max", "topic"]
    assert infos["error_count"] == 3


def test_loggers_health_and_metrics(worker: ConnectWorker) -> None:
    assert worker.call("GET", "/admin/loggers").body["root"]["level"] == "INFO"
    assert worker.call("PUT", "/admin/loggers/connect.rest", {"level": "debug"}).status == 200
    level = worker.call("GET", "/admin/loggers/connect.rest").body
    assert level["level"] == "DEBUG"
    assert level["last_modified"] > 0
    assert worker.call("GET", "/health").body["status"] == "healthy"
    assert worker.call("GET", "/health/live").status == 200
    assert worker.call("GET", "/health/ready").status == 200
    assert worker.call("GET", "/").body["kafka_cluster_id"]
    put(worker, "measured", connector__class="CountingSource", topic="measured", count="7")
    written = 'kafka_connect_source_task_source_record_write_total{connector="measured",task="0"}'
    eventually(lambda: f"{written} 7.0" in worker.call("GET", "/metrics").body)


def test_a_worker_with_credentials_answers_nobody_else(
    broker: LocalBroker, folder: Path, tmp_path: Path
) -> None:
    told = settings(broker, tmp_path, **{"rest.basic.auth.credentials": "me:secret,you:other"})
    told["plugin.path"] = ""
    with ConnectWorker(tmp_path, told) as guarded:
        assert guarded.call("GET", "/connectors").status == 401
        for pair, status in (("me:secret", 200), ("you:other", 200), ("me:other", 401)):
            given = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
            assert guarded.call("GET", "/connectors", headers=given).status == status
        assert guarded.call("GET", "/health/live").status == 200


def test_pages_of_other_sites_change_nothing_and_names_of_sites_are_not_served(
    broker: LocalBroker, worker: ConnectWorker, tmp_path: Path
) -> None:
    body = {"name": "x", "config": {}}
    for headers, status in (
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "evil.example"}, 421),
    ):
        refused = worker.call("POST", "/connectors", body, headers=headers)
        assert refused.status == status
        assert refused.body["error_code"] == status
    assert worker.call("GET", "/", headers={"Host": "evil.example"}).status == 421
    told = settings(broker, tmp_path)
    told |= {"allowed.hosts": "connect.example", "access.control.allow.origin": "http://ui.example"}
    with ConnectWorker(tmp_path, told) as open_worker:
        for headers in ({"Host": "connect.example:8083"}, {"Origin": "http://ui.example"}):
            assert open_worker.call("POST", "/connectors", body, headers=headers).status == 400
        assert open_worker.call("GET", "/", headers={"Host": "evil.example"}).status == 421


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("key.converter=", "key.converter"),
        ("offset.flush.interval.ms=soon", "offset.flush.interval.ms"),
        ("listeners=https://:1", "listeners.https.ssl.keystore.location"),
        ("connector.client.config.override.policy=Some", "override.policy"),
    ],
)
def test_a_worker_that_cannot_start_says_why(tmp_path: Path, line: str, said: str) -> None:
    name, _, value = line.partition("=")
    told = {"offset.storage.file.filename": str(tmp_path / "offsets"), name: value}
    worker = ConnectWorker(tmp_path, told)
    with pytest.raises(AssertionError, match="did not start"):
        worker.start()
    assert worker.process is not None
    assert worker.process.wait(60) == 1
    worker.kill()
    assert said in worker.log()
