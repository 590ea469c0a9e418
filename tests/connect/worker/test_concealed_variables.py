"""What a variable stands for is in no answer, whichever setting names it, whatever goes wrong."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from connect.definitions.concealing import Concealing, places
from millstream.testing import LocalBroker
from tests.lib.connect_topics import produce
from tests.lib.connect_worker import ConnectWorker, eventually

SECRETS = {
    "SHOP_ALIAS": "aliasofnobody",
    "SHOP_CLASS": "com.example.ClassOfNobody",
    "SHOP_SOURCE": "TellingSource",
    "SHOP_VERSION": "77.88.99",
    "SHOP_TOPIC": "topicofnobody",
    "SHOP_WORD": "wordofnobody",
}
# The connectors that there are may be listed.
UNSEEN = [secret for name, secret in SECRETS.items() if name != "SHOP_SOURCE"]
PLUGINS = """
from millstream.connect import *

class TellingSource(SourceConnector):
    def start(self, settings):
        if settings.get("at") == "connector":
            raise ConnectException("it was told " + settings["word"])
        super().start(settings)

    def task_configs(self, max_tasks):
        other = "word=" + self.settings["word"]
        return [{**self.settings, "under.another.name": other}]

    def task_class(self):
        return TellingTask

    def alter_offsets(self, settings, offsets):
        raise ConnectException("it was told " + settings["word"])

class BrokenSource(SourceConnector):
    def _told(self, settings, where):
        if settings.get("at") == where:
            raise KeyError("it was told " + settings["word"])

    def validate(self, settings):
        self._told(settings, "validation")
        return super().validate(settings)

    def exactly_once_support(self, settings):
        self._told(settings, "support")

    def changed_by_reading(self, settings):
        self._told(settings, "preview")

    def alter_offsets(self, settings, offsets):
        self._told(settings, "offsets")

    def task_class(self):
        return TellingTask

class TellingTask(SourceTask):
    def start(self, settings):
        assert settings["under.another.name"] == "word=wordofnobody"
        if settings.get("at") == "task":
            raise ConnectException("it was told " + settings["under.another.name"])

    def poll(self):
        return None
"""


@pytest.fixture(scope="module", params=["thread", "process"])
def worker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectWorker]:
    folder = tmp_path_factory.mktemp("concealed")
    (folder / "plugins").mkdir()
    (folder / "plugins" / "telling_plugins.py").write_text(PLUGINS)
    with LocalBroker() as broker, patch.dict(os.environ, SECRETS):
        produce(broker, "there", "x")
        told = {
            "bootstrap.servers": broker.bootstrap_servers,
            "offset.storage.file.filename": str(folder / "offsets"),
            "plugin.path": str(folder / "plugins"),
            "config.providers": "env",
            "config.providers.env.class": "EnvVarConfigProvider",
            "tasks.isolation": request.param,
        }
        with ConnectWorker(folder, told) as started:
            yield started
        assert [secret for secret in UNSEEN if secret in started.log()] == []


def unseen(answered: Any) -> Any:
    """Assert that no variable's value is in an answer, and return it."""
    text = json.dumps([answered.body, answered.headers])
    assert [secret for secret in UNSEEN if secret in text] == []
    return answered


LINES = {"connector.class": "FileStreamSink", "topics": "there", "file": "x"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        {**LINES, "transforms": "${env:SHOP_ALIAS}"},
        {**LINES, "transforms": "${env:SHOP_ALIAS}", "transforms.aliasofnobody.type": "Flatten"},
        {**LINES, "transforms": "a", "transforms.a.type": "${env:SHOP_CLASS}"},
        {**LINES, "transforms": "a", "transforms.a.type": "x.${env:SHOP_CLASS}.y"},
        {**LINES, "predicates": "${env:SHOP_ALIAS}"},
        {**LINES, "predicates": "p", "predicates.p.type": "${env:SHOP_CLASS}"},
        {
            **LINES,
            "transforms": "a",
            "transforms.a.type": "Flatten$Value",
            "transforms.a.predicate": "${env:SHOP_ALIAS}",
        },
        {**LINES, "connector.class": "${env:SHOP_CLASS}"},
        {**LINES, "connector.plugin.version": "${env:SHOP_VERSION}"},
        {**LINES, "value.converter": "${env:SHOP_CLASS}"},
        {**LINES, "tasks.max": "${env:SHOP_WORD}"},
        {**LINES, "errors.tolerance": "${env:SHOP_WORD}"},
        {**LINES, "topics.regex": "(${env:SHOP_WORD}"},
        {**LINES, "consumer.override.${env:SHOP_WORD}": "${env:SHOP_WORD}"},
        {"connector.class": "FileStreamSource", "topic": "t", "batch.size": "a${env:SHOP_WORD}"},
    ],
)
def test_no_answer_to_a_configuration_shows_it(
    worker: ConnectWorker, config: dict[str, str]
) -> None:
    plugin = config["connector.class"].rpartition(".")[2]
    whole = {"name": "c", **config}
    validated = worker.call("PUT", f"/connector-plugins/{plugin}/config/validate", whole)
    unseen(validated)
    unseen(worker.call("POST", f"/connector-plugins/{plugin}/preview", whole))
    unseen(worker.call("PUT", "/connectors/c/config", config))
    for path in ("", "/config", "/tasks"):
        unseen(worker.call("GET", f"/connectors/c{path}"))
    unseen(worker.call("DELETE", "/connectors/c"))


@pytest.mark.slow
@pytest.mark.parametrize("at", ["connector", "task", "nowhere"])
def test_no_trace_and_no_tasks_settings_show_it(worker: ConnectWorker, at: str) -> None:
    config = {"connector.class": "${env:SHOP_SOURCE}", "word": "${env:SHOP_WORD}", "at": at}
    unseen(worker.call("PUT", f"/connectors/{at}/config", config))

    def settled() -> bool:
        states = worker.states(at)
        wanted = {"connector": {"connector": "FAILED"}, "task": {"connector": "RUNNING"}}
        tasks = {} if at == "connector" else {"0": "FAILED" if at == "task" else "RUNNING"}
        return states == {**wanted.get(at, {"connector": "RUNNING"}), **tasks}

    eventually(settled)
    status = unseen(worker.call("GET", f"/connectors/{at}/status")).body
    traces = [each.get("trace", "") for each in (status["connector"], *status["tasks"])]
    assert any("it was told" in trace for trace in traces) is (at != "nowhere")
    unseen(worker.call("GET", "/page/state"))
    tasks = unseen(worker.call("GET", f"/connectors/{at}/tasks")).body
    if at != "connector":
        assert tasks[0]["config"]["under.another.name"] == "word=${env:SHOP_WORD}"
    worker.call("PUT", f"/connectors/{at}/stop")
    worker.wait_for(at, connector="STOPPED")
    refused = unseen(worker.call("DELETE", f"/connectors/{at}/offsets"))
    assert (refused.status, "it was told" in refused.body["message"]) == (500, True)
    worker.call("DELETE", f"/connectors/{at}")


@pytest.mark.slow
@pytest.mark.parametrize("at", ["validation", "support", "preview", "offsets"])
def test_no_mistake_of_a_plugin_shows_it(worker: ConnectWorker, at: str) -> None:
    """What it raises is none of Connect's errors; the log of it is looked at by the fixture."""
    config = {
        "connector.class": "BrokenSource",
        "word": "${env:SHOP_WORD}",
        "exactly.once.support": "required" if at == "support" else "requested",
        "at": at,
    }
    whole = {"name": at, **config}
    path = "/connector-plugins/BrokenSource"
    answers = [unseen(worker.call("PUT", f"{path}/config/validate", whole))]
    if at == "preview":
        answers.append(unseen(worker.call("POST", f"{path}/preview", whole)))
    if at == "offsets":
        worker.call(
            "POST", "/connectors", {"name": at, "config": config, "initial_state": "STOPPED"}
        )
        worker.wait_for(at, connector="STOPPED")
        answers.append(unseen(worker.call("DELETE", f"/connectors/{at}/offsets")))
        worker.call("DELETE", f"/connectors/{at}")
    assert "it was told " in json.dumps(answers[-1].body)
    assert "KeyError" in worker.log()


def test_a_trace_without_texts_has_the_places_and_kinds_of_all_errors() -> None:
    def fails() -> None:
        try:
            int("wordofnobody")
        except ValueError as error:
            raise KeyError("wordofnobody") from error

    with pytest.raises(KeyError) as raised:
        fails()
    shown = places(raised.value)
    assert shown.index("ValueError") < shown.index("KeyError")
    assert shown.count("in fails\n") == 2
    assert "'wordofnobody'" not in shown.replace('int("wordofnobody")', "").replace(
        'raise KeyError("wordofnobody")', ""
    )


@pytest.mark.slow
def test_no_note_of_a_task_shows_it(worker: ConnectWorker) -> None:
    config = {"connector.class": "FileStreamSink", "topics.regex": "${env:SHOP_WORD}"}
    worker.call("PUT", "/connectors/noted/config", config)

    def note() -> str | None:
        status = unseen(worker.call("GET", "/connectors/noted/status"))
        tasks = status.body["tasks"] if status.status == 200 else []
        return tasks[0].get("note") if tasks else None

    eventually(lambda: note() == "No topic matches topics.regex=${env:SHOP_WORD} yet.")
    worker.call("DELETE", "/connectors/noted")


def test_short_values_are_concealed_where_they_are_all_there_is(tmp_path: Path) -> None:
    del tmp_path
    concealing = Concealing({"1": "${env:N}", "swordfish": "[hidden]", "fish": "${env:F}"})
    assert concealing.all({"swordfish": ["a swordfish", "fish", "1", "21", 1, None]}) == {
        "[hidden]": ["a [hidden]", "${env:F}", "${env:N}", "21", 1, None]
    }
