"""Valid and invalid REST calls that are sent to Apache Kafka Connect's worker and to Millstream's.

Both workers run standalone on the same broker. Values that must differ (ids, times, traces,
addresses) are masked; everything else must be equal.
"""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

JSON = "application/json"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
_PATIENCE_SECONDS = 20.0


class Call(NamedTuple):
    """One request; with `until`, it is repeated until its answer contains that text."""

    method: str
    path: str
    body: Any = None
    until: str = ""
    raw: str | None = None
    content_type: str = JSON

    @property
    def name(self) -> str:
        text = self.raw if self.raw is not None else json.dumps(self.body)
        kind = "" if self.content_type == JSON else f" ({self.content_type})"
        return f"{self.method} {self.path[:200]}{kind}" + (
            "" if text == "null" else f" {text[:200]}"
        )


class Answer(NamedTuple):
    status: int
    body: Any
    location: str | None


def source(**changes: Any) -> dict[str, Any]:
    settings = {"connector.class": SOURCE, "tasks.max": "1", "file": "@in.txt", "topic": "lines"}
    return _changed(settings, changes)


def sink(**changes: Any) -> dict[str, Any]:
    settings = {"connector.class": SINK, "tasks.max": "1", "file": "@out.txt", "topics": "lines"}
    return _changed(settings, changes)


def _changed(settings: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    settings = settings | {name.replace("_", "."): value for name, value in changes.items()}
    return {name: value for name, value in settings.items() if value is not ...}


def create(name: Any, config: Any, **more: Any) -> Call:
    return Call("POST", "/connectors", {"name": name, "config": config, **more})


def validate(plugin: str, config: Any) -> Call:
    return Call("PUT", f"/connector-plugins/{plugin}/config/validate", config)


def running(name: str, tasks: int = 1) -> Call:
    """Wait until a connector and its tasks run."""
    return Call("GET", f"/connectors/{name}/status#{tasks}", until="RUNNING")


def _what_is_there() -> Iterator[Call]:
    yield Call("GET", "/")
    yield Call("GET", "/health")
    yield Call("GET", "/connectors")
    yield Call("GET", "/connectors/")
    yield Call("GET", "/nowhere")
    yield Call("DELETE", "/connectors")
    yield Call("PUT", "/connectors", {})
    yield Call("POST", "/", {})
    yield Call("GET", "/connector-plugins/")
    yield Call("GET", "/connectors?expand=status&expand=info")
    yield Call("GET", "/connectors?expand=nonsense")
    for path in ("", "/config", "/status", "/tasks", "/tasks/0/status", "/topics", "/offsets"):
        yield Call("GET", f"/connectors/none{path}")
    yield Call("GET", "/connectors/none/tasks-config")
    yield Call("GET", "/connectors/none/nowhere")
    yield Call("GET", "/connectors/none/tasks/x/status")
    for path in ("pause", "resume", "stop", "topics/reset"):
        yield Call("PUT", f"/connectors/none/{path}")
    yield Call("POST", "/connectors/none/restart")
    yield Call("POST", "/connectors/none/restart?includeTasks=true")
    yield Call("POST", "/connectors/none/restart?includeTasks=true&onlyFailed=true")
    yield Call("POST", "/connectors/none/tasks/0/restart")
    yield Call("DELETE", "/connectors/none")
    yield Call("DELETE", "/connectors/none/offsets")
    yield Call("PATCH", "/connectors/none/config", {"a": "b"})
    yield Call("PATCH", "/connectors/none/offsets", {"offsets": [{"partition": {}, "offset": {}}]})
    yield Call("GET", "/connectors/none/restart")
    yield Call("PUT", "/connectors/none/restart")
    yield Call("POST", "/connectors/none/pause")
    yield Call("GET", "/connectors/none/pause")


def _bad_creations() -> Iterator[Call]:
    yield Call("POST", "/connectors", raw="")
    yield Call("POST", "/connectors", raw="{")
    yield Call("POST", "/connectors", raw="[]")
    yield Call("POST", "/connectors", raw="7")
    yield Call("POST", "/connectors", raw='"text"')
    yield Call("POST", "/connectors", raw="{}", content_type="text/plain")
    yield Call("POST", "/connectors", {})
    yield Call("POST", "/connectors", {"name": "one"})
    yield Call("POST", "/connectors", {"config": {}})
    yield Call("POST", "/connectors", {"name": "one", "config": {}, "more": 1})
    yield Call("POST", "/connectors", {"name": "one", "config": []})
    yield Call("POST", "/connectors", {"name": {"a": 1}, "config": {}})
    yield create("one", {})
    yield create("one", {"connector.class": "com.example.Unknown"})
    yield create("one", {"connector.class": ""})
    yield create("one", {"connector.class": SOURCE})
    yield create("one", source(name="other"))
    yield create("", source())
    yield create("   ", source())
    yield create(None, source())
    yield create("nul\u0000name", source())
    yield create("line\nbreak", source())
    yield create("one", source(tasks_max="0"))
    yield create("one", source(tasks_max="many"))
    yield create("one", source(tasks_max="-1", topic=""))
    yield create("one", source(topic=...))
    yield create("one", source(batch_size="x"))
    yield create("one", source(key_converter="com.example.Unknown"))
    yield create("one", source(errors_tolerance="some"))
    yield create("one", source(errors_retry_timeout="soon"))
    yield create("one", source(errors_log_enable="perhaps"))
    yield create("one", source(transforms="a"))
    yield create("one", source(transforms="a,a"))
    yield create("one", source(config_action_reload="explode"))
    yield create("one", source(exactly_once_support="maybe"))
    yield create("one", source(transaction_boundary="x"))
    yield create("one", source(), initial_state="SLEEPING")
    yield create("one", source(), initial_state=7)
    yield create("one", sink(topics=...))
    yield create("one", sink(topics_regex="a.*"))
    yield create("one", sink(topics=..., topics_regex="["))
    yield create("one", sink(errors_deadletterqueue_topic_name="lines"))
    yield Call("GET", "/connectors")
    yield Call("PUT", "/connectors/one/config", source(name="other"))
    yield Call("PUT", "/connectors/one/config", {})
    yield Call("PUT", "/connectors/one/config", raw="[]")
    yield Call("PUT", "/connectors/one/config", raw="")
    yield Call("PUT", "/connectors/one/config", raw="{")
    yield Call("PUT", "/connectors/one/config", raw="{}", content_type="text/plain")
    yield Call("PUT", "/connectors/one/config", source(topic=...))
    yield Call("GET", "/connectors/one")


def _a_source_lives() -> Iterator[Call]:
    yield create("src", source())
    yield running("src")
    yield create("src", source())
    yield create(" src ", source())
    yield Call("GET", "/connectors")
    yield Call("GET", "/connectors/src")
    yield Call("GET", "/connectors/src/")
    yield Call("GET", "/connectors/src/config")
    yield Call("GET", "/connectors/src/tasks")
    yield Call("GET", "/connectors/src/tasks-config")
    yield Call("GET", "/connectors/src/tasks/0/status")
    yield Call("GET", "/connectors/src/tasks/1/status")
    yield Call("GET", "/connectors/src/tasks/-1/status")
    yield Call("GET", "/connectors/src/topics", until="lines")
    yield Call("GET", "/connectors?expand=status")
    yield Call("GET", "/connectors?expand=info")
    yield Call("GET", "/connectors?expand=info&expand=status")
    yield Call("PUT", "/connectors/src/topics/reset")
    yield Call("GET", "/connectors/src/offsets", until="position")
    yield Call("PATCH", "/connectors/src/offsets", {"offsets": []})
    yield Call("PATCH", "/connectors/src/offsets", {})
    yield Call("PATCH", "/connectors/src/offsets", raw="{")
    yield Call("PATCH", "/connectors/src/offsets", raw="[]")
    position = {"partition": {"filename": "@in.txt"}, "offset": {"position": 0}}
    yield Call("PATCH", "/connectors/src/offsets", {"offsets": [position]})
    yield Call("DELETE", "/connectors/src/offsets")
    yield Call("PUT", "/connectors/src/config", source(batch_size="10"))
    yield running("src")
    yield Call("PUT", "/connectors/src/config", source(batch_size="10"))
    yield running("src")
    yield Call("PATCH", "/connectors/src/config", {"batch.size": "20"})
    yield running("src")
    yield Call("PATCH", "/connectors/src/config", {"batch.size": None, "tasks.max": "2"})
    yield running("src")
    yield Call("PATCH", "/connectors/src/config", {"topic": ""})
    yield Call("PATCH", "/connectors/src/config", raw="[]")
    yield Call("PATCH", "/connectors/src/config", {})
    yield running("src")
    yield Call("GET", "/connectors/src/config")
    yield Call("PUT", "/connectors/src/pause")
    yield Call("GET", "/connectors/src/status#1", until="PAUSED")
    yield Call("PUT", "/connectors/src/pause")
    yield Call("PUT", "/connectors/src/resume")
    yield running("src")
    yield Call("PUT", "/connectors/src/resume")
    yield Call("POST", "/connectors/src/restart")
    yield running("src")
    yield Call("POST", "/connectors/src/restart?includeTasks=true&onlyFailed=true")
    yield Call("POST", "/connectors/src/restart?onlyFailed=true")
    yield Call("POST", "/connectors/src/restart?includeTasks=true")
    yield running("src")
    yield Call("POST", "/connectors/src/restart?includeTasks=x")
    yield running("src")
    yield Call("POST", "/connectors/src/tasks/0/restart")
    yield running("src")
    yield Call("POST", "/connectors/src/tasks/x/restart")


def _offsets() -> Iterator[Call]:
    yield Call("PUT", "/connectors/src/stop")
    yield Call("GET", "/connectors/src/status#0", until="STOPPED")
    yield Call("PUT", "/connectors/src/stop")
    yield Call("GET", "/connectors/src")
    yield Call("GET", "/connectors/src/tasks")
    yield Call("GET", "/connectors/src/offsets")
    file = {"filename": "@in.txt"}
    for offset in (
        {"position": 5},
        {"position": -1},
        {"position": "5"},
        {"x": 1},
        {"position": 1.5},
    ):
        entry = {"partition": file, "offset": offset}
        yield Call("PATCH", "/connectors/src/offsets", {"offsets": [entry]})
    yield Call("PATCH", "/connectors/src/offsets", {"offsets": [{"offset": {"position": 5}}]})
    wrong = {"partition": {"file": "a"}, "offset": {"position": 5}}
    yield Call("PATCH", "/connectors/src/offsets", {"offsets": [wrong]})
    yield Call("GET", "/connectors/src/offsets")
    entry = {"partition": file, "offset": None}
    yield Call("PATCH", "/connectors/src/offsets", {"offsets": [entry]})
    yield Call("GET", "/connectors/src/offsets")
    yield Call("DELETE", "/connectors/src/offsets")
    yield Call("PUT", "/connectors/src/resume")
    yield running("src")
    yield create("asleep", source(topic="other"), initial_state="STOPPED")
    yield Call("GET", "/connectors/asleep/status#0", until="STOPPED")
    yield Call("DELETE", "/connectors/asleep")
    yield create("dozing", source(topic="other"), initial_state="paused")
    yield Call("GET", "/connectors/dozing/status#0", until="PAUSED")
    yield Call("DELETE", "/connectors/dozing")


def _a_sink_lives() -> Iterator[Call]:
    yield create("snk", sink())
    yield running("snk")
    yield Call("GET", "/connectors/snk")
    yield Call("GET", "/connectors/snk/tasks")
    yield Call("GET", "/connectors/snk/topics", until="lines")
    # Three lines, and the same three again after the reset of the source's offsets.
    yield Call("GET", "/connectors/snk/offsets", until='"kafka_offset": 6')
    yield Call("PUT", "/connectors/snk/stop")
    yield Call("GET", "/connectors/snk/status#0", until="STOPPED")
    for partition in (
        {},
        {"kafka_topic": "lines"},
        {"kafka_topic": None, "kafka_partition": 0},
        {"kafka_topic": "lines", "kafka_partition": None},
        {"kafka_topic": "lines", "kafka_partition": "x"},
    ):
        entry = {"partition": partition, "offset": {"kafka_offset": 1}}
        yield Call("PATCH", "/connectors/snk/offsets", {"offsets": [entry]})
    here = {"kafka_topic": "lines", "kafka_partition": 0}
    yield Call("PATCH", "/connectors/snk/offsets", {"offsets": [{"partition": here, "offset": {}}]})
    for offset in ("x", 1, "2"):
        entry = {"partition": here, "offset": {"kafka_offset": offset}}
        yield Call("PATCH", "/connectors/snk/offsets", {"offsets": [entry]})
        yield Call("GET", "/connectors/snk/offsets")
    yield Call("DELETE", "/connectors/snk/offsets")
    yield Call("GET", "/connectors/snk/offsets")
    yield Call("DELETE", "/connectors/snk")
    yield Call("GET", "/connectors/snk")
    yield Call("GET", "/connectors/snk/status")


def _plugins() -> Iterator[Call]:
    yield Call("GET", "/connector-plugins")
    yield Call("GET", "/connector-plugins/FileStreamSource/config")
    yield Call("GET", f"/connector-plugins/{SINK}/config")
    yield Call("GET", "/connector-plugins/Unknown/config")
    yield Call("GET", "/connector-plugins/FileStreamSource")
    for plugin in (SOURCE, "FileStreamSource", "FileStreamSourceConnector"):
        yield validate(plugin, {"name": "one", **source()})
    yield validate(SINK, {"name": "one", **sink()})
    yield validate("FileStreamSource", {})
    yield validate("FileStreamSource", {"connector.class": SOURCE})
    yield validate("FileStreamSource", source())
    yield validate("FileStreamSource", {"name": "one", **sink()})
    yield validate("Unknown", {"connector.class": "Unknown"})
    yield validate(
        "FileStreamSource", {"name": "one", **source(connector_class="FileStreamSource")}
    )
    yield validate("FileStreamSource", {"name": "a\tb", **source(topic="", tasks_max="0")})
    yield validate("FileStreamSink", {"name": "one", **sink(topics_regex="x")})
    yield validate("FileStreamSource", {"name": "one", **source(more="settings")})
    overrides = {
        "producer.override.acks": "1",
        "producer.override.no.such.setting": "x",
        "admin.override.retries": "3",
        "consumer.override.max.poll.records": "9",
    }
    for plugin, made in (("FileStreamSource", source), ("FileStreamSink", sink)):
        yield validate(plugin, {"name": "one", **made(**overrides)})
    for version in ("4.3.1", "[1.0,5.0)", "[1.0,2.0],[4,)", "latest"):
        asked = {"connector.plugin.version": version}
        yield validate("FileStreamSource", {"name": "one", **source(), **asked})
    for version in ("1.0", "(4.3.1,5)", "[1.0,2.0],[3,4)", "4.3", "9-rc1"):
        yield create("one", {**source(), "connector.plugin.version": version})
    long_keys = {"key.converter": "org.apache.kafka.connect.converters.LongConverter"}
    for name, config in (("header", {}), ("key", long_keys)):
        asked = {f"{name}.converter.plugin.version": "4.3.1"}
        yield validate("FileStreamSource", {"name": "one", **source(), **config, **asked})
    router = {
        "transforms": "a",
        "transforms.a.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.a.regex": "a",
        "transforms.a.replacement": "b",
    }
    for asked in ({}, {"transforms.a.plugin.version": "[4,5)"}):
        yield validate("FileStreamSource", {"name": "one", **source(), **router, **asked})
    wrong = {**router, "transforms.a.plugin.version": "9"}
    yield create("one", {**source(), **wrong})
    yield create("one", {**source(), "connector.plugin.version": "[garbage"})
    yield Call("PUT", "/connector-plugins/FileStreamSource/config/validate", raw="[]")
    yield Call("PUT", "/connector-plugins/FileStreamSource/config/validate", raw="")
    yield Call("POST", "/connector-plugins/FileStreamSource/config/validate", {})


def _loggers() -> Iterator[Call]:
    yield Call("GET", "/admin/loggers/org.apache.kafka.nowhere")
    yield Call("PUT", "/admin/loggers/root", {})
    yield Call("PUT", "/admin/loggers/root", {"level": "LOUD"})
    yield Call("PUT", "/admin/loggers/org.apache.kafka.connect.millstream", {"level": "WARN"})
    yield Call("GET", "/admin/loggers/org.apache.kafka.connect.millstream")
    yield Call(
        "PUT", "/admin/loggers/org.apache.kafka.connect.millstream?scope=cluster", {"level": "info"}
    )
    yield Call("GET", "/admin/loggers/org.apache.kafka.connect.millstream")
    yield Call(
        "PUT", "/admin/loggers/org.apache.kafka.connect.millstream?scope=x", {"level": "error"}
    )
    yield Call("DELETE", "/admin/loggers/root")


def _garbage() -> Iterator[Call]:
    million = "m" * 1_000_000
    yield Call("POST", "/connectors", raw="\udcff\udcfe\x00\x01")
    yield Call("POST", "/connectors", raw="[" * 100_000)
    yield Call("POST", "/connectors", raw='{"name": "\udcff", "config": {}}')
    yield Call("PUT", "/connectors/one/config", raw=million)
    yield Call("PATCH", "/connectors/one/config", raw="{'a': 'b'}")
    yield Call("PATCH", "/connectors/src/offsets", raw='{"offsets": {"partition": 1}}')
    yield Call("PATCH", "/connectors/src/offsets", {"offsets": [7]})
    yield Call("PUT", "/admin/loggers/root", raw="[]")
    yield Call("GET", "/connectors/none%00")
    yield Call("GET", "/connectors/%ff")
    yield Call("GET", "/connectors/..%2fadmin")
    yield Call("GET", "/connectors?expand=%00")
    yield Call("GET", f"/connectors/{'n' * 5_000}")
    yield validate("FileStreamSource", {"name": million, **source(topic=million)})
    yield create("long", source(topic="other", more=million), initial_state="STOPPED")
    yield Call("GET", "/connectors/long")
    yield Call("PATCH", "/connectors/long/config", {"more": million.upper()})
    yield Call("DELETE", "/connectors/long")
    yield create("one", source(key_converter=million))
    yield create("one", source(tasks_max="9" * 1_000))
    yield create("one", source(tasks_max=1e300))
    yield create("one", source(**{"topic.creation.groups": "a,a"}))
    yield create("one", source(**{"producer.override.acks": "x", "consumer.override.x": "y"}))
    yield Call("DELETE", "/connectors/one")


def _the_end() -> Iterator[Call]:
    yield Call("POST", "/connectors/src/tasks", [])
    yield Call("PUT", "/connectors/src/fence")
    yield Call("PUT", "/connectors/new/config", source(topic="other"))
    yield running("new")
    yield Call("DELETE", "/connectors/new")
    yield Call("DELETE", "/connectors/new")
    yield Call("DELETE", "/connectors/src")
    yield Call("GET", "/connectors/src/status")
    yield Call("GET", "/connectors/src/offsets")
    yield Call("GET", "/connectors")
    # Last the calls whose effects Apache's worker cannot undo.
    yield create("a/b c", source(topic="other"), initial_state="STOPPED")
    yield Call("GET", "/connectors/a%2Fb%20c")
    yield Call("DELETE", "/connectors/a%2Fb%20c")
    yield create("one", source(topic=None))


CALLS = [
    *_what_is_there(),
    *_bad_creations(),
    *_a_source_lives(),
    *_offsets(),
    *_a_sink_lives(),
    *_plugins(),
    *_loggers(),
    *_garbage(),
    *_the_end(),
]


def send_all(url: str, folder: Path, calls: list[Call] = CALLS) -> list[Answer]:
    """Send the calls in order; the files that they name are in the folder."""
    (folder / "in.txt").write_text("one\ntwo\nthree\n")
    return [_masked(_send(url, folder, call), folder) for call in calls]


def _send(url: str, folder: Path, call: Call) -> Answer:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        answer = _send_once(url, folder, call)
        if _is_there(call, answer) or time.monotonic() > deadline:
            return answer
        time.sleep(0.05)


def _is_there(call: Call, answer: Answer) -> bool:
    _, _, tasks = call.path.partition("#")
    if not tasks:
        return call.until in json.dumps(answer.body)
    if answer.status != 200:
        return False
    states = [task["state"] for task in answer.body["tasks"]]
    return answer.body["connector"]["state"] == call.until and states == [call.until] * int(tasks)


def _send_once(url: str, folder: Path, call: Call) -> Answer:
    text = call.raw
    if text is None and call.body is not None:
        text = json.dumps(call.body)
    if text is not None:
        text = re.sub(r"@(\w+\.txt)", lambda found: str(folder / found[1]), text)
    path, _, _ = call.path.partition("#")
    headers = {"Content-Type": call.content_type, "Accept": JSON}
    data = None if text is None else text.encode("utf-8", "surrogateescape")
    request = urllib.request.Request(url + path, data, headers, method=call.method)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return _read(response)
    except urllib.error.HTTPError as error:
        with error:
            return _read(error)


def _read(response: Any) -> Answer:
    text = response.read().decode()
    try:
        body = json.loads(text) if text else None
    except ValueError:
        body = text
    return Answer(response.status, body, response.headers.get("Location"))


_MASKED = {
    "worker_id",
    "trace",
    "version",
    "commit",
    "kafka_cluster_id",
    "last_modified",
    "documentation",
}


def _masked(answer: Answer, folder: Path) -> Answer:
    location = answer.location and re.sub(r"^http://[^/]+", "", answer.location)
    return Answer(answer.status, _mask(answer.body, str(folder)), location)


def _mask(value: Any, folder: str) -> Any:
    if isinstance(value, dict):
        return {
            name: "*" if name in _MASKED and each is not None else _mask(each, folder)
            for name, each in value.items()
        }
    if isinstance(value, list):
        masked = [_mask(each, folder) for each in value]
        is_names = all(isinstance(each, str) for each in masked)
        # The names are in the order of a hash table.
        return sorted(masked) if is_names else masked
    if isinstance(value, str):
        return value.replace(folder + "/", "@")
    return value
