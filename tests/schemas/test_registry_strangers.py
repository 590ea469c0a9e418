"""What strangers send to the registry, and records in its topic that no registry has written."""

import json
import logging
import random
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from common.process.json_text import read_json
from schemas.registry.domain import Registry
from schemas.registry.records import Content, Entry, Reference
from tests.schemas.memory_topic import Caller, Log, calling, with_client

STRING = '"string"'
SCHEMA_KEY = {"keytype": "SCHEMA", "subject": "a", "version": 1, "magic": 1}
SCHEMA_VALUE = {"subject": "a", "version": 1, "id": 1, "schema": STRING, "deleted": False}
HALF = '"\\ud800"'


def record(key: dict[str, Any], value: Any) -> tuple[bytes, bytes]:
    return json.dumps(key).encode(), json.dumps(value).encode()


def with_text(name: str, text: str, of: dict[str, Any] = SCHEMA_VALUE) -> bytes:
    """Write a record whose member is what `json.dumps` would not write."""
    return json.dumps({**of, name: "@"}).replace('"@"', text).encode()


def schema_records() -> list[tuple[bytes, bytes]]:
    key = json.dumps(SCHEMA_KEY).encode()
    long = "1" * 5000
    strange_values = [
        *(with_text("id", text) for text in ("1e999", "-1", long, "null", "NaN", "[]", HALF)),
        *(with_text("schema", text) for text in (HALF, '"\\udc00a"')),
        *(with_text("schemaType", text) for text in (HALF,)),
        *(with_text("metadata", f'{{"properties":{{"a":{text}}}}}') for text in (HALF, long)),
        *(with_text("metadata", text) for text in ('{"properties":7}', '{"tags":{"a":1}}', "[1]")),
        *(with_text("ruleSet", text) for text in ('{"domainRules":[7]}', '{"domainRules":7}')),
        *(
            with_text("references", f'[{{"name":"n","subject":"s","version":{text}}}]')
            for text in ("1e999", long, "null", "[]", "1e10", "-5")
        ),
        with_text("references", f'[{{"name":{HALF},"subject":"s","version":1}}]'),
        with_text("references", "7"),
        with_text("references", '{"a":1}'),
        b"[" * 100_000,
        b'"' + b"\xed\xa0\x80" + b'"',
        json.dumps(SCHEMA_VALUE).encode().replace(b'"a"', b'"\xed\xa0\x80"'),
        b"\xff\xfe",
    ]
    strange_keys = [
        *(with_text("version", text, SCHEMA_KEY) for text in ("1e999", long, "[]", "-3", "1e99")),
        with_text("subject", HALF, SCHEMA_KEY),
        with_text("subject", HALF, {"keytype": "DELETE_SUBJECT", "magic": 0}),
        with_text("context", HALF, {"keytype": "CONTEXT", "tenant": "default", "magic": 0}),
        b"[" * 100_000,
    ]
    good = json.dumps(SCHEMA_VALUE).encode()
    return [*((key, value) for value in strange_values), *((each, good) for each in strange_keys)]


def setting_records() -> list[tuple[bytes, bytes]]:
    config, mode = ({"keytype": kind, "subject": "b", "magic": 0} for kind in ("CONFIG", "MODE"))
    return [
        record(config, {"compatibilityLevel": "SIDEWAYS"}),
        record(config, {"compatibilityLevel": {"a": 1}}),
        record(config, {"compatibilityLevel": "FULL", "alias": 5}),
        record(config, {"compatibilityLevel": "FULL", "compatibilityGroup": []}),
        record(mode, {"mode": {"a": 1}}),
        record(mode, {"mode": "SLEEP"}),
        record({"keytype": "DELETE_SUBJECT", "subject": "a", "magic": 0}, {"version": "x"}),
    ]


@pytest.mark.parametrize("strange", [*schema_records(), *setting_records()])
def test_record_that_no_registry_wrote_is_logged_and_passed_over(
    strange: tuple[bytes, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    log: Log = [Entry("good", 1, 5, Content(STRING)).record(), strange]
    registry = Registry()
    with caplog.at_level(logging.WARNING):
        for key, value in log:
            registry.replay(key, value)
    assert "registry ignores a record" in caplog.text
    assert len(caplog.text) < 1500
    assert registry.subjects(with_deleted=True) == ["good"]
    assert registry.highest_id(".") == 5

    async def check(caller: Caller) -> None:
        assert [entry["subject"] for entry in await caller.ask("GET", "/schemas")] == ["good"]
        assert await caller.ask("GET", "/subjects?deleted=true") == ["good"]
        assert await caller.register("a", '"int"') == 6
        assert await caller.register("b", '"int"') == 6

    calling(check, log)


def test_json_is_what_the_rfc_says() -> None:
    for data in ("NaN", "[-Infinity]", "1e999", HALF, "[" * 5000, b"\xed\xa0\x80", "1" * 5000):
        with pytest.raises(ValueError, match=r"\w"):
            read_json(data)
    assert read_json('"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    "body",
    [
        '{"schema":"\\"string\\"","id":1e999}',
        '{"schema":"\\"string\\"","id":true}',
        '{"schema":"\\"string\\"","version":' + "9" * 4000 + "}",
        '{"schema":"\\"string\\"","version":' + "9" * 5000 + "}",
        '{"schema":"\\"string\\"","references":1}',
        '{"schema":"\\"string\\"","references":[1]}',
        '{"schema":"\\"string\\"","references":"abc"}',
        '{"schema":"\\"string\\"","references":{"name":"a"}}',
        '{"schema":"\\"string\\"","references":[{"name":"a","subject":"b","version":1e999}]}',
        '{"schema":"\\"string\\"","references":[{"name":"a","subject":"b","version":true}]}',
        '{"schema":"\\"string\\"","references":[{"name":"a","subject":"b","version":-2}]}',
        '{"schema":"\\"string\\"","references":[{"name":"a","subject":"b","version":-1}]}',
        '{"schema":"\\"string\\"","references":[{"name":"\\ud800","subject":"b","version":1}]}',
        '{"schema":"\\"\\ud800\\""}',
        '{"schema":"{\\"type\\":\\"string\\",\\"doc\\":\\"\\\\ud800\\"}"}',
        '{"schema":"{\\"type\\":\\"string\\",\\"a\\":NaN}"}',
        '{"schema":"{\\"type\\":\\"string\\",\\"a\\":1e999}"}',
        '{"schema":"\\"string\\"","metadata":{"properties":{"a":"\\ud800"}}}',
        '{"schema":"\\"string\\"","metadata":{"properties":{"a":NaN}}}',
        '{"schema":"\\"string\\"","metadata":{"properties":7}}',
        '{"schema":"\\"string\\"","metadata":{"tags":{"a":7}}}',
        '{"schema":"\\"string\\"","metadata":{"sensitive":[7]}}',
        '{"schema":"\\"string\\"","ruleSet":{"domainRules":{"a":1}}}',
        '{"schema":"\\"string\\"","ruleSet":{"domainRules":[{"tags":[1]}]}}',
        '{"schema":"\\"string\\"","schemaType":7}',
        '{"schema":"\\"string\\"","schemaType":["AVRO"]}',
        '{"schema":"{\\"const\\":1e999}","schemaType":"JSON"}',
        '{"schema":"{\\"maximum\\":1e999}","schemaType":"JSON"}',
        '{"schema":"{\\"pattern\\":\\"(\\"}","schemaType":"JSON"}',
        '{"schema":"{\\"properties\\":{\\"a\\":7}}","schemaType":"JSON"}',
        '{"schema":"\\u0000","schemaType":"PROTOBUF"}',
        '{"schema":"' + "[" * 1000 + '"}',
        '{"schema":"' + '{\\"items\\":' * 300 + "{}" + "}" * 300 + '","schemaType":"JSON"}',
        "[" * 200_000,
    ],
)
def test_odd_body_is_refused_with_a_code_and_without_a_trace(body: str) -> None:
    async def check(client: TestClient) -> None:
        for path in ("/subjects/a/versions", "/subjects/a", "/compatibility/subjects/a/versions"):
            kind = {"Content-Type": "application/json"}
            async with client.post(path, data=body.encode(), headers=kind) as response:
                told = await response.json(content_type=None)
                assert response.status == 422, (path, told)
                assert told["error_code"] in (422, 42201)
                assert "Error(" not in told["message"]
                assert len(told["message"]) < 2000

    with_client(check)


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/subjects/a/versions/" + "9" * 5000, 42202),
        ("GET", "/schemas/ids/" + "9" * 5000, 404),
        ("GET", "/schemas/ids/" + "0" * 5000 + "1", 40403),
        ("GET", "/subjects?limit=" + "9" * 5000, 404),
        ("GET", "/schemas?offset=1e5", 404),
        ("GET", "/subjects/%ED%A0%80/versions", 400),
        ("GET", "/subjects/a%00b/versions", 40401),
        ("GET", "/config/%ED%A0%80", 400),
    ],
)
def test_odd_path_is_refused_with_a_code(method: str, path: str, code: int) -> None:
    calling(lambda caller: caller.refused(code, method, path))


def test_setting_that_is_not_of_its_kind_is_refused() -> None:
    async def check(client: TestClient) -> None:
        for path, body in (
            ("/config/a", '{"compatibility":7}'),
            ("/config/a", '{"alias":"\\ud800"}'),
            ("/config/a", '{"alias":7}'),
            ("/config/a", '{"normalize":"yes"}'),
            ("/mode/a", '{"mode":["READONLY"]}'),
            ("/mode", '{"mode":1e999}'),
        ):
            kind = {"Content-Type": "application/json"}
            async with client.put(path, data=body, headers=kind) as response:
                assert response.status == 422, (path, body, await response.text())
                assert (await response.json(content_type=None))["error_code"] >= 422

    with_client(check)


def test_subject_may_have_any_characters() -> None:
    async def check(caller: Caller) -> None:
        for subject in ("a%7Bb%7D", "a%20b", "%7B%7D", "a%2Fb", "%F0%9F%98%80", "a:b", "a%25b"):
            assert await caller.register(subject, STRING) == 1
            assert await caller.ask("GET", f"/subjects/{subject}/versions") == [1]
            await caller.ask("PUT", f"/config/{subject}", {"compatibility": "NONE"})
            assert await caller.ask("DELETE", f"/subjects/{subject}") == [1]

    calling(check)


def test_reference_to_version_minus_one_is_to_the_newest() -> None:
    async def check(caller: Caller) -> None:
        await caller.ask("PUT", "/config", {"compatibility": "NONE"})
        for size in (1, 2):
            await caller.register("inner", f'{{"type":"fixed","name":"F","size":{size}}}')
        reference = {"name": "F", "subject": "inner", "version": -1}
        outer = '{"type":"record","name":"O","fields":[{"name":"f","type":"F"}]}'
        await caller.register("outer", outer, references=[reference])
        stored = await caller.ask("GET", "/subjects/outer/versions/1")
        assert stored["references"] == [{**reference, "version": 2}]
        body = {"schema": outer, "references": [reference]}
        assert (await caller.ask("POST", "/subjects/outer", body))["version"] == 1
        missing = {**body, "references": [{**reference, "subject": "none"}]}
        await caller.refused(42201, "POST", "/subjects/outer", missing)

    calling(check)


def chain(length: int) -> Log:
    """Make records each of which holds a field of the type before it."""
    log: Log = [Entry("s0", 1, 1, Content('{"type":"record","name":"R0","fields":[]}')).record()]
    for number in range(1, length):
        before = number - 1
        field = f'{{"name":"f","type":"R{before}"}}'
        schema = f'{{"type":"record","name":"R{number}","fields":[{field}]}}'
        references = (Reference(f"R{before}", f"s{before}", 1),)
        log.append(Entry(f"s{number}", 1, number + 1, Content(schema, "AVRO", references)).record())
    return log


def test_long_chain_of_references_is_followed() -> None:
    async def check(caller: Caller) -> None:
        found = await caller.ask("GET", "/subjects/s99/versions/1?format=resolved")
        assert found["schema"].count('"type":"record"') == 100
        reference = {"name": "R349", "subject": "s349", "version": 1}
        schema = '{"type":"record","name":"Last","fields":[{"name":"f","type":"R349"}]}'
        assert await caller.register("last", schema, references=[reference]) == 351

    calling(check, chain(350))


@pytest.mark.parametrize(
    ("accept", "status", "answered"),
    [
        ("*/*", 200, "application/vnd.schemaregistry.v1+json"),
        ("application/json", 200, "application/json"),
        ("application/vnd.schemaregistry+json", 200, "application/vnd.schemaregistry+json"),
        (
            "application/vnd.schemaregistry.v1+json, application/json; q=0.9",
            200,
            "application/vnd.schemaregistry.v1+json",
        ),
        (
            "application/vnd.schemaregistry.v1+json; q=0.5, application/json",
            200,
            "application/json",
        ),
        ("application/*", 200, "application/vnd.schemaregistry.v1+json"),
        ("text/html, */*; q=0.1", 200, "application/vnd.schemaregistry.v1+json"),
        ("APPLICATION/JSON", 200, "application/json"),
        ("", 200, "application/vnd.schemaregistry.v1+json"),
        ("text/plain", 406, "application/vnd.schemaregistry.v1+json"),
        ("application/xml, text/*", 406, "application/vnd.schemaregistry.v1+json"),
        ("application/json; q=0", 406, "application/vnd.schemaregistry.v1+json"),
        ("application/json; q=high", 406, "application/vnd.schemaregistry.v1+json"),
    ],
)
def test_answer_has_a_type_that_the_caller_accepts(accept: str, status: int, answered: str) -> None:
    async def check(client: TestClient) -> None:
        async with client.get("/subjects", headers={"Accept": accept}) as response:
            assert (response.status, response.content_type) == (status, answered)
            body = await response.json(content_type=None)
            assert body == [] if status == 200 else body["error_code"] == 406

    with_client(check)


def test_fault_of_ours_is_answered_with_a_code_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("schemas.registry.domain.Registry.contexts", fail)

    async def check(caller: Caller) -> None:
        message = await caller.refused(500, "GET", "/contexts")
        assert message == "HTTP 500 Internal Server Error"

    calling(check)
    assert "registry failed to answer path=/contexts" in caplog.text


def test_body_may_be_sent_as_any_of_the_types_there_are() -> None:
    async def check(client: TestClient) -> None:
        for kind in ("application/vnd.schemaregistry+json", "application/json; charset=utf-8"):
            async with client.post(
                "/subjects/a/versions",
                data=b'{"schema":"\\"string\\""}',
                headers={"Content-Type": kind},
            ) as response:
                assert response.status == 200

    with_client(check)


PATHS = (
    "/subjects/a/versions",
    "/subjects/a",
    "/compatibility/subjects/a/versions/latest?verbose=true",
    "/config/a",
    "/mode/a",
    "/config",
)
SEEDS = (
    {"schema": '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'},
    {"schema": '{"type":"object","properties":{"a":{"$ref":"#"}}}', "schemaType": "JSON"},
    {"schema": 'syntax = "proto3"; message A { map<int32, A> a = 1; }', "schemaType": "PROTOBUF"},
    {"schema": STRING, "references": [{"name": "n", "subject": "a", "version": 1}]},
    {"schema": STRING, "metadata": {"properties": {"a": "b"}, "tags": {"t": ["x"]}}},
    {"compatibility": "FULL", "alias": "b", "normalize": True},
    {"mode": "READWRITE"},
)
STRANGE = (
    *(None, True, 0, -1, 1e300, 2**31, 2**64, "", "\x00", "\ud800", "a" * 3000, "%s", "{}"),
    *([], {}, [[]], {"": None}, [None], "\N{GRINNING FACE}", "latest", "../..", "1e999"),
)


def mutated(value: Any, dice: random.Random) -> Any:
    """Change one place of a JSON value."""
    if dice.random() < 0.25 or not isinstance(value, dict | list | str) or not value:
        return dice.choice(STRANGE)
    if isinstance(value, str):
        at = dice.randrange(len(value))
        return value[:at] + dice.choice(("", "{", '"', "\\", "0", "\x7f", value)) + value[at + 1 :]
    if isinstance(value, list):
        at = dice.randrange(len(value))
        return [*value[:at], mutated(value[at], dice), *value[at + 1 :]]
    name = dice.choice(list(value))
    return {**value, name: mutated(value[name], dice)}


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_sent_no_answer_is_a_servers_error(seed: int) -> None:
    """Each answer has a code of its own, and all that is known can still be listed."""

    async def check(client: TestClient) -> None:
        dice = random.Random(seed)
        for _ in range(150):
            body = mutated(mutated(dice.choice(SEEDS), dice), dice)
            data = bytearray(json.dumps(body).encode())
            if data and dice.random() < 0.2:
                data[dice.randrange(len(data))] = dice.randrange(256)
            path = dice.choice(PATHS)
            method = "PUT" if path.startswith(("/config", "/mode")) else "POST"
            kind = {"Content-Type": "application/json"}
            async with client.request(method, path, data=bytes(data), headers=kind) as response:
                text = await response.text()
                assert response.status < 500, (path, bytes(data), text)
                if response.status >= 400:
                    told = json.loads(text)
                    assert isinstance(told["error_code"], int), text
                    assert told["message"], text
        for path in ("/schemas?deleted=true", "/subjects?deleted=true", "/contexts"):
            async with client.get(path) as response:
                assert response.status == 200
                json.loads(await response.text())

    with_client(check)


def test_page_of_another_site_registers_nothing_and_reads_nothing() -> None:
    async def check(client: TestClient) -> None:
        body = json.dumps({"schema": STRING}).encode()
        for headers, status in (
            ({"Origin": "http://evil.example"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Host": "evil.example"}, 421),
        ):
            for kind in ({}, {"Content-Type": "application/json"}):
                post = client.post(
                    "/subjects/a/versions",
                    data=body,
                    headers={**headers, **kind},
                    skip_auto_headers=["Content-Type"],
                )
                async with post as response:
                    assert response.status == status
                    assert (await response.json(content_type=None))["error_code"] == status
        async with client.get("/subjects") as response:
            assert await response.json(content_type=None) == []
        async with client.get("/subjects", headers={"Host": "evil.example"}) as response:
            assert response.status == 421

    with_client(check)
