"""A preview shows what a connector would do with ten records, and does none of it."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from connect.client.commands import preview_text
from connect.definitions.concealing import Concealing
from connect.herder.names import RefusalError
from connect.preview import shown
from connect.preview.limits import RECORDS, Ended, Seen
from connect.preview.run import Previews
from millstream.connect import Schema, SourceRecord, Struct
from millstream.testing import LocalBroker
from tests.lib.connect_worker import Answer, ConnectWorker

STRING = "org.apache.kafka.connect.storage.StringConverter"
PLUGINS = '''
import time
from millstream.connect import *

class OddSource(SourceConnector):
    """What it does is said by `odd`."""

    @classmethod
    def config(cls):
        return (
            ConfigDef()
            .define("secret", ConfigDef.Type.PASSWORD, Importance.HIGH, "", default=None)
            .define("odd", ConfigDef.Type.STRING, Importance.HIGH, "", default="")
        )

    def task_class(self):
        return OddTask

class OddTask(SourceTask):
    async def start(self, settings):
        self.odd, self.secret = settings["odd"], settings.get("secret", "")
        self.number = 0
        if self.odd == "raises":
            raise ConnectException("nobody lets " + self.secret + " in")

    async def poll(self):
        if self.odd == "blocks" and self.number:
            time.sleep(60)
        self.number += 1
        values = {"blocks": "one", "long": "x" * 5_000_000, "secret": "it is " + self.secret}
        return [SourceRecord(topic="odd", value=values[self.odd])] * (
            1 if self.odd == "blocks" else 100_000
        )
'''


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("previews")
    (path / "plugins").mkdir()
    (path / "plugins" / "odd_plugins.py").write_text(PLUGINS)
    (path / "secrets.properties").write_text("password=hunter2\n")
    lines = [f"line {number}" for number in range(100)]
    (path / "in").write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def worker(broker: LocalBroker, folder: Path) -> Iterator[ConnectWorker]:
    told = {
        "bootstrap.servers": broker.bootstrap_servers,
        "offset.storage.file.filename": str(folder / "offsets"),
        "plugin.path": str(folder / "plugins"),
        "config.providers": "file",
        "config.providers.file.class": "FileConfigProvider",
    }
    with ConnectWorker(folder, told) as started:
        yield started


def ask(worker: ConnectWorker, plugin: str, config: dict[str, str]) -> Answer:
    return worker.call("POST", f"/connector-plugins/{plugin}/preview", {"name": "tried", **config})


def previewed(worker: ConnectWorker, plugin: str, config: dict[str, str]) -> Any:
    status, body, _ = ask(worker, plugin, config)
    assert status == 200, body
    return body


def topics(broker: LocalBroker) -> set[str]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    return set(admin.list_topics(timeout=60).topics)


@pytest.mark.slow
def test_a_source_is_read_through_its_transformations_and_nothing_is_written(
    worker: ConnectWorker, broker: LocalBroker, folder: Path
) -> None:
    config = {
        "file": f"{folder}/in",
        "topic": "unseen",
        "transforms": "wrap,only,route",
        "transforms.wrap.type": "HoistField$Value",
        "transforms.wrap.field": "line",
        "transforms.only.type": "Filter",
        "transforms.only.predicate": "other",
        "transforms.route.type": "RegexRouter",
        "transforms.route.regex": "un(.*)",
        "transforms.route.replacement": "$1",
        "predicates": "other",
        "predicates.other.type": "TopicNameMatches",
        "predicates.other.pattern": "other",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    said = previewed(worker, "FileStreamSource", config)

    assert (said["type"], said["tasks"], said["ended"]) == ("source", 1, Ended.RECORDS.value)
    assert [each["read"]["value"] for each in said["records"]] == [
        f"line {number}" for number in range(RECORDS)
    ]
    first = said["records"][0]
    assert first["outcome"] == "would be written"
    assert first["read"]["source"]["offset"] == {"position": 7}
    wrap, only, route, converters = first["steps"]
    assert wrap["changed"] == ["value", "value_schema"]
    assert wrap["result"]["value"] == {"line": "line 0"}
    assert wrap["result"]["value_schema"] == {"line": "string"}
    assert (only["step"], only["applied"], only["changed"]) == ("only", False, [])
    assert (route["changed"], route["result"]["topic"]) == (["topic"], "seen")
    assert converters["result"]["value"] == {"text": '{"line":"line 0"}'}
    assert converters["result"]["topic"] == "seen"
    assert not {"seen", "unseen"} & topics(broker)
    assert worker.call("GET", "/connectors").body == []
    assert not (folder / "offsets").exists()

    # Nobody registers a schema for it either: there is no registry at that address.
    avro = {"value.converter": "AvroConverter", "value.converter.schema.registry.url": "http://n"}
    registering = previewed(worker, "FileStreamSource", {**config, **avro})["records"][0]
    assert registering["outcome"] == "would be written"
    assert registering["steps"][-1]["left_out"] == "it would register schemas"

    text = preview_text(said)
    assert text.startswith("record 1: would be written\n")
    assert "its predicate does not hold" in text
    assert text.endswith("10 records, nothing written: as many as a preview shows")


@pytest.mark.slow
def test_a_source_without_records_is_not_waited_for(worker: ConnectWorker, folder: Path) -> None:
    (folder / "empty").write_text("")
    said = previewed(worker, "FileStreamSource", {"file": f"{folder}/empty", "topic": "none"})
    assert (said["records"], said["ended"]) == ([], Ended.PATIENCE.value)


@pytest.mark.slow
def test_a_sink_is_shown_what_put_would_get_and_its_group_knows_nothing(
    worker: ConnectWorker, broker: LocalBroker, folder: Path
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(30):
        value = b"garbage" if number == 3 else b'{"n": %d, "secret": "hunter2"}' % number
        producer.produce("numbers", value, key=b"\xff", headers=[("h", b"1")])
    assert producer.flush(30) == 0
    config = {
        "topics": "numbers",
        "file": f"{folder}/out",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "transforms": "own",
        "transforms.own.type": "InsertField$Value",
        "transforms.own.static.field": "by",
        "transforms.own.static.value": f"${{file:{folder}/secrets.properties:password}}",
    }

    said = previewed(worker, "FileStreamSink", config)
    assert (said["from"], len(said["records"])) == ("next", RECORDS)
    good, bad = said["records"][2], said["records"][3]
    assert (good["outcome"], bad["outcome"]) == ("would be put", "failed")
    assert good["read"]["key"] == {"base64": "/w=="}
    assert good["read"]["offset"] == 2
    assert good["steps"][0]["result"]["headers"] == [{"name": "h", "value": 1}]
    assert good["steps"][1]["result"]["value"] == {"n": 2, "secret": "[hidden]", "by": "[hidden]"}
    assert bad["steps"][0]["error"]["stage"] == "converters"
    assert "DataException" in bad["steps"][0]["error"]["class"]
    assert "hunter2" not in json.dumps(said)
    assert not (folder / "out").exists()
    assert "failed" in preview_text(said)

    tolerant = previewed(worker, "FileStreamSink", {**config, "errors.tolerance": "all"})
    assert tolerant["records"][3]["outcome"] == "skipped"

    place = TopicPartition("numbers", 0)
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "connect-tried"}
    )
    try:
        [committed] = consumer.committed([place], timeout=60)
        assert committed.offset < 0
        consumer.commit(offsets=[TopicPartition("numbers", 0, 25)], asynchronous=False)
        said = previewed(worker, "FileStreamSink", config)
        assert [each["read"]["offset"] for each in said["records"]] == list(range(25, 30))
        assert said["ended"] == Ended.END.value
        consumer.commit(offsets=[TopicPartition("numbers", 0, 30)], asynchronous=False)
        said = previewed(
            worker, "FileStreamSink", {**config, "topics.regex": "num.*", "topics": ""}
        )
        assert (said["from"], said["records"][0]["read"]["offset"]) == ("last", 20)
        assert consumer.committed([place], timeout=60)[0].offset == 30
    finally:
        consumer.close()
    missing = previewed(worker, "FileStreamSink", {**config, "topics": "missing"})
    assert "None of its topics is there: missing" in missing["error"]["message"]


@pytest.mark.slow
def test_what_has_no_preview_says_why(worker: ConnectWorker) -> None:
    standard_input = ask(worker, "FileStreamSource", {"topic": "lines"})
    assert (standard_input.status, standard_input.body["message"]) == (
        400,
        "FileStreamSourceConnector has no preview: standard input cannot be read a second time",
    )
    wrong = ask(worker, "FileStreamSource", {"file": "x"})
    assert wrong.status == 400
    assert 'Missing required configuration "topic"' in wrong.body["message"]
    assert ask(worker, "Unknown", {}).status == 400
    other = ask(worker, "FileStreamSink", {"connector.class": "FileStreamSource", "topic": "a"})
    assert "does not match request type" in other.body["message"]


@pytest.mark.slow
def test_what_a_connector_does_wrong_is_shown_and_the_worker_lives(worker: ConnectWorker) -> None:
    odd = {"secret": "hunter2", "value.converter": STRING}
    raised = previewed(worker, "OddSource", {**odd, "odd": "raises"})
    assert raised["error"]["message"] == "nobody lets [hidden] in"
    assert raised["ended"] == Ended.ERROR.value

    secret = previewed(worker, "OddSource", {**odd, "odd": "secret"})
    assert secret["records"][0]["read"]["value"] == "it is [hidden]"
    assert len(secret["records"]) == RECORDS

    long = previewed(worker, "OddSource", {**odd, "odd": "long"})
    assert len(long["records"]) == RECORDS
    assert len(long["records"][0]["read"]["value"]) == shown.TEXT_LIMIT + 1

    blocking = {**odd, "odd": "blocks"}
    with ThreadPoolExecutor(3) as pool:
        three = [pool.submit(ask, worker, "OddSource", blocking) for _ in range(3)]
        answers = sorted((each.result() for each in three), key=lambda each: each.status)
    assert [each.status for each in answers] == [200, 200, 429]
    assert [each["read"]["value"] for each in answers[0].body["records"]] == ["one"]
    assert answers[0].body["ended"] == Ended.TIME.value
    # Both still block for a minute; they were left behind, and hold up no other preview.
    assert ask(worker, "OddSource", {**odd, "odd": "secret"}).status == 200
    assert worker.call("GET", "/health").status == 200


def test_no_more_than_so_many_previews_are_left_behind() -> None:
    environment: Any = None
    previews = Previews(environment)
    blocked: Any = SimpleNamespace(is_alive=lambda: True)
    previews._left = [blocked] * 16
    with pytest.raises(RefusalError, match="16 previews do not end"):
        asyncio.run(previews.preview({}))


def test_what_is_shown_is_short_and_without_secrets() -> None:
    hidden = dict.fromkeys(["hunter2", "ab"], "[hidden]")
    assert shown.clean(Concealing(hidden), {"hunter2": ["a hunter2", "ab", "abc", 1]}) == {
        "[hidden]": ["a [hidden]", "[hidden]", "abc", 1]
    }
    # Cut first, the half of a secret would be left.
    cut = shown.clean(Concealing({"s" * 30: "[hidden]"}), "x" * (shown.TEXT_LIMIT - 10) + "s" * 30)
    assert "ss" not in cut


def test_any_record_can_be_shown() -> None:
    schema = Schema.struct({"at": Schema.int64(), "more": Schema.array(Schema.string())})
    value = Struct(schema, {"at": 1, "more": ["a"]})
    told = shown.record(SourceRecord(topic="t", value=value, value_schema=schema, key=object()))
    assert told["value"] == {"at": 1, "more": ["a"]}
    assert told["value_schema"] == {"at": "int64", "more": ["string"]}
    assert told["key"].startswith("<object object")
    assert shown.value(None, float("nan")) in ("NaN", None)


def test_a_preview_ends_before_it_is_too_long_to_show() -> None:
    seen = Seen.begun(lambda record: record)
    seen.add({"value": "x" * 900_000})
    seen.add({"value": "x" * 900_000})
    assert (len(seen.records), seen.ended, seen.goes_on()) == (1, Ended.SIZE, False)
