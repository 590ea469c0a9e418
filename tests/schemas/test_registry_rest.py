"""The registry's REST interface: Confluent's paths, bodies and codes."""

import asyncio
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from schemas.registry.records import Content, Entry
from schemas.registry.rest.answers import TOPIC_KEY
from tests.schemas.memory_topic import Caller, calling, with_client

STRING, INT = '"string"', '"int"'
RECORD = '{"type":"record","name":"R","fields":[]}'
ONE_FIELD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'


def test_registers_finds_and_lists() -> None:
    async def check(caller: Caller) -> None:
        body = {"schema": '{"type" : "record", "name": "R", "fields": []}'}
        path = "/subjects/a-value/versions"
        first = await caller.ask("POST", f"{path}?normalize=False", body)
        assert (first["id"], first["version"], first["schema"]) == (1, 1, RECORD)
        assert await caller.ask("POST", path, body) == first
        entry = await caller.ask("POST", "/subjects/a-value", body)
        assert entry == {"subject": "a-value", **first}
        for version in ("1", "latest", "-1"):
            assert await caller.ask("GET", f"{path}/{version}") == entry
        assert await caller.ask("GET", "/subjects") == ["a-value"]
        assert await caller.ask("GET", path) == [1]
        by_id = await caller.ask("GET", "/schemas/ids/1")
        assert by_id == {"guid": first["guid"], "schema": RECORD}
        named = await caller.ask("GET", "/schemas/ids/1?subject=a-value&fetchMaxId=true")
        assert (named["subject"], named["version"], named["maxId"]) == ("a-value", 1, 1)
        assert (await caller.ask("GET", "/schemas/ids/1/schema"))["name"] == "R"
        assert (await caller.ask("GET", f"{path}/1/schema"))["name"] == "R"
        places = await caller.ask("GET", "/schemas/ids/1/versions")
        assert places == [{"subject": "a-value", "version": 1}]
        assert await caller.ask("GET", "/schemas/ids/1/subjects") == ["a-value"]
        guid = first["guid"]
        assert await caller.ask("GET", f"/schemas/guids/{guid}") == by_id
        ids = await caller.ask("GET", f"/schemas/guids/{guid}/ids")
        assert ids == [{"context": ".", "id": 1}]
        assert await caller.ask("GET", "/schemas") == [entry]
        assert await caller.ask("GET", "/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]
        assert await caller.ask("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
        assert await caller.ask("GET", "/mode") == {"mode": "READWRITE"}

    calling(check)


def test_refuses_with_confluents_codes() -> None:
    async def check(caller: Caller) -> None:
        good = {"schema": STRING}
        for path in ("/subjects/x/versions", "/subjects/x/versions/1", "/subjects/x/metadata"):
            await caller.refused(40401, "GET", path)
        await caller.refused(40401, "POST", "/subjects/x", good)
        await caller.refused(40401, "DELETE", "/subjects/x")
        await caller.refused(40401, "DELETE", "/subjects/x/versions/1")
        await caller.register("a", STRING)
        await caller.refused(40402, "GET", "/subjects/a/versions/2")
        await caller.refused(40402, "DELETE", "/subjects/a/versions/2")
        for version in ("zero", "0", "-2", "2147483648", "1.0", "%C2%B2"):
            await caller.refused(42202, "GET", f"/subjects/a/versions/{version}")
        await caller.refused(40403, "GET", "/schemas/ids/9")
        await caller.refused(404, "GET", "/schemas/ids/x")
        await caller.refused(40403, "GET", "/schemas/guids/x")
        await caller.refused(40403, "POST", "/subjects/a", {"schema": INT})
        await caller.refused(40408, "GET", "/config/a")
        await caller.refused(40409, "GET", "/mode/a")
        await caller.refused(42203, "PUT", "/config", {"compatibility": "SIDEWAYS"})
        await caller.refused(42204, "PUT", "/mode", {"mode": "SLEEP"})
        await caller.refused(422, "PUT", "/config", {"defaultRuleSet": {}})
        await caller.refused(42208, "POST", "/subjects/__GLOBAL/versions", good)
        await caller.refused(42208, "POST", "/subjects/a%07b/versions", good)
        await caller.refused(40402, "POST", "/compatibility/subjects/a/versions/7", good)
        await caller.refused(404, "GET", "/associations/resources/-/a?resourceType=topic")
        await caller.refused(404, "GET", "/subjects?limit=many")
        await caller.refused(405, "DELETE", "/subjects/a/versions")

    calling(check)


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        None,
        {"schema": ""},
        {"schema": 5},
        {"schema": '{"type":"record"}'},
        {"schema": '"no_such_type"'},
        {"schema": '{"type":"record","name":"R","fields":[{"name":"a"}]}'},
        {"schema": '{"type":"enum","name":"E","symbols":[5]}'},
        {"schema": "[" * 50_000},
        {"schema": STRING, "schemaType": "XML"},
        {"schema": STRING, "references": [{"name": "x"}]},
        {"schema": STRING, "references": 7},
        {"schema": STRING, "references": [{"name": "x", "subject": "none", "version": 1}]},
        {"schema": STRING, "metadata": [1]},
        {"schema": STRING, "id": "x"},
        {"schema": STRING, "version": 2**31},
        {"schema": '{"type":"objec"}', "schemaType": "JSON"},
        {"schema": "{", "schemaType": "JSON"},
        {"schema": "5", "schemaType": "JSON"},
        {"schema": "", "schemaType": "PROTOBUF"},
        {"schema": "messag A {}", "schemaType": "PROTOBUF"},
        {"schema": "message A { string a = 1; } messag", "schemaType": "PROTOBUF"},
    ],
)
def test_what_is_no_schema_is_refused(body: Any) -> None:
    async def check(caller: Caller) -> None:
        await caller.refused(42201, "POST", "/subjects/a/versions", body)
        await caller.refused(40401, "GET", "/subjects/a/versions")

    calling(check)


def test_incompatible_schema_is_refused_and_the_level_decides() -> None:
    async def check(caller: Caller) -> None:
        await caller.register("a", RECORD)
        body = {"schema": ONE_FIELD}
        message = await caller.refused(40901, "POST", "/subjects/a/versions", body)
        assert 'incompatible with an earlier schema for subject "a", details: [' in message
        path = "/compatibility/subjects/a/versions"
        assert await caller.ask("POST", f"{path}/latest", body) == {"is_compatible": False}
        told = await caller.ask("POST", f"{path}?verbose=true", body)
        assert "READER_FIELD_MISSING_DEFAULT_VALUE" in told["messages"][0]
        assert await caller.ask("PUT", "/config/a", {"compatibility": "forward"}) == {
            "compatibility": "forward"
        }
        assert await caller.ask("GET", "/config/a") == {"compatibilityLevel": "FORWARD"}
        assert await caller.ask("POST", path, body) == {"is_compatible": True}
        assert await caller.register("a", ONE_FIELD) == 2
        old = await caller.ask("DELETE", "/config/a")
        assert old == {"compatibilityLevel": "FORWARD"}
        await caller.refused(40408, "GET", "/config/a")
        found = await caller.ask("GET", "/config/a?defaultToGlobal=true")
        assert found == {"compatibilityLevel": "BACKWARD"}
        none = await caller.ask("POST", "/compatibility/subjects/new/versions/latest", body)
        assert none == {"is_compatible": True}

    calling(check)


def test_verbose_check_of_what_is_no_schema_says_so() -> None:
    async def check(caller: Caller) -> None:
        path, body = "/compatibility/subjects/a/versions", {"schema": '"strin"'}
        await caller.refused(42201, "POST", path, body)
        told = await caller.ask("POST", f"{path}?verbose=true", body)
        assert not told["is_compatible"]
        assert "strin" in told["messages"][0]

    calling(check)


def test_versions_are_deleted_softly_then_for_good() -> None:
    async def check(caller: Caller) -> None:
        await caller.register("a", RECORD)
        await caller.ask("PUT", "/config", {"compatibility": "NONE"})
        await caller.register("a", ONE_FIELD)
        path = "/subjects/a/versions"
        await caller.refused(40407, "DELETE", f"{path}/1?permanent=true")
        assert await caller.ask("DELETE", f"{path}/1") == 1
        await caller.refused(40406, "DELETE", f"{path}/1")
        assert await caller.ask("GET", path) == [2]
        assert await caller.ask("GET", f"{path}?deleted=true") == [1, 2]
        assert await caller.ask("GET", f"{path}?deletedOnly=true") == [1]
        await caller.refused(40402, "GET", f"{path}/1")
        assert (await caller.ask("GET", f"{path}/1?deleted=true"))["deleted"] is True
        assert (await caller.ask("GET", "/schemas/ids/1"))["schema"] == RECORD
        assert await caller.ask("GET", "/schemas/ids/1/versions") == []
        assert await caller.ask("DELETE", f"{path}/1?permanent=true") == 1
        await caller.refused(40403, "GET", "/schemas/ids/1")
        await caller.refused(40405, "DELETE", "/subjects/a?permanent=true")
        assert await caller.ask("DELETE", "/subjects/a") == [2]
        await caller.refused(40404, "DELETE", "/subjects/a")
        assert await caller.ask("GET", "/subjects") == []
        assert await caller.ask("GET", "/subjects?deleted=true") == ["a"]
        assert await caller.ask("GET", "/subjects?deletedOnly=true") == ["a"]
        assert await caller.ask("DELETE", "/subjects/a?permanent=true") == [2]
        await caller.refused(40401, "DELETE", "/subjects/a?permanent=true")

    calling(check)


def test_schema_in_use_by_another_stays() -> None:
    async def check(caller: Caller) -> None:
        inner = '{"type":"record","name":"I","namespace":"shop","fields":[]}'
        outer = '{"type":"record","name":"O","namespace":"shop","fields":[{"name":"i","type":"I"}]}'
        await caller.register("inner", inner)
        reference = {"name": "shop.I", "subject": "inner", "version": 1}
        assert await caller.register("outer", outer, references=[reference]) == 2
        assert await caller.ask("GET", "/subjects/inner/versions/1/referencedby") == [2]
        stored = await caller.ask("GET", "/subjects/outer/versions/1")
        assert stored["references"] == [reference]
        resolved = await caller.ask("GET", "/subjects/outer/versions/1?format=resolved")
        assert '"type":{"type":"record","name":"I","fields":[]}' in resolved["schema"]
        await caller.refused(42206, "DELETE", "/subjects/inner/versions/1")
        await caller.refused(42206, "DELETE", "/subjects/inner")
        await caller.ask("DELETE", "/subjects/outer")
        await caller.ask("DELETE", "/subjects/inner")
        await caller.refused(42206, "DELETE", "/subjects/inner?permanent=true")

    calling(check)


def test_modes_say_what_may_be_written() -> None:
    async def check(caller: Caller) -> None:
        await caller.register("a", STRING)
        assert await caller.ask("PUT", "/mode/a", {"mode": "readonly"}) == {"mode": "READONLY"}
        body = {"schema": INT}
        await caller.refused(42205, "POST", "/subjects/a/versions", body)
        await caller.refused(42205, "DELETE", "/subjects/a")
        await caller.refused(42205, "PUT", "/config/a", {"compatibility": "NONE"})
        assert await caller.register("a", STRING) == 1
        assert await caller.register("b", INT) == 2
        assert await caller.ask("DELETE", "/mode/a") == {"mode": "READONLY"}
        await caller.refused(40401, "DELETE", "/mode/a")
        await caller.refused(42205, "POST", "/subjects/c/versions", {**body, "id": 7})
        await caller.refused(42205, "PUT", "/mode", {"mode": "IMPORT"})
        await caller.ask("PUT", "/mode/c", {"mode": "IMPORT"})
        assert await caller.register("c", '"long"', id=7, version=3) == 7
        assert await caller.ask("GET", "/subjects/c/versions") == [3]
        await caller.refused(42205, "POST", "/subjects/c/versions", {"schema": '"double"', "id": 7})
        await caller.refused(42205, "POST", "/subjects/c/versions", {"schema": '"double"'})
        assert await caller.register("d", '"double"') == 8

    calling(check)


def test_contexts_are_rooms_of_their_own() -> None:
    async def check(caller: Caller) -> None:
        await caller.register("a", STRING)
        assert await caller.register(":.lab:a", INT) == 1
        assert await caller.ask("GET", "/contexts") == [".", ".lab"]
        assert await caller.ask("GET", "/subjects") == [":.lab:a", "a"]
        assert await caller.ask("GET", "/contexts/.lab/subjects") == [":.lab:a"]
        assert await caller.ask("GET", "/subjects?subjectPrefix=:.lab:") == [":.lab:a"]
        path = "/contexts/.lab/subjects/a/versions/1"
        assert (await caller.ask("GET", path))["schema"] == INT
        assert (await caller.ask("GET", "/contexts/.lab/schemas/ids/1"))["schema"] == INT
        assert (await caller.ask("GET", "/schemas/ids/1?subject=:.lab:a"))["schema"] == INT
        assert (await caller.ask("GET", "/schemas/ids/1"))["schema"] == STRING
        await caller.ask("PUT", "/config/:.lab:", {"compatibility": "NONE"})
        assert await caller.register(":.lab:a", RECORD) == 2
        found = await caller.ask("GET", "/subjects/a/versions/2")
        assert found["subject"] == ":.lab:a", "a plain name is looked for in all contexts"
        await caller.refused(42211, "DELETE", "/contexts/.lab")
        await caller.ask("DELETE", "/subjects/:.lab:a")
        await caller.ask("DELETE", "/subjects/:.lab:a?permanent=true")
        await caller.ask("DELETE", "/contexts/.lab", status=204)
        assert await caller.ask("GET", "/contexts") == ["."]

    calling(check)


def test_normalised_schemas_are_equal_whatever_the_order_of_their_attributes() -> None:
    async def check(caller: Caller) -> None:
        one = '{"type":"string","b":1,"a":2}'
        other = '{"type":"string","a":2,"b":1}'
        path = "/subjects/a/versions?normalize=True"
        assert (await caller.ask("POST", path, {"schema": one}))["id"] == 1
        assert (await caller.ask("POST", path, {"schema": other}))["id"] == 1
        await caller.ask("PUT", "/config/b", {"normalize": True})
        assert await caller.register("b", one) == 1
        assert await caller.register("b", other) == 1

    calling(check)


def test_metadata_is_part_of_a_schema_and_finds_it() -> None:
    async def check(caller: Caller) -> None:
        def owned(owner: str) -> dict[str, Any]:
            return {"properties": {"owner": owner}}

        assert await caller.register("a", STRING, metadata=owned("stock")) == 1
        assert await caller.register("a", STRING, metadata=owned("sales")) == 2
        found = await caller.ask("GET", "/subjects/a/metadata?key=owner&value=stock")
        assert (found["version"], found["metadata"]) == (1, owned("stock"))
        await caller.refused(40403, "GET", "/subjects/a/metadata?key=owner&value=nobody")

    calling(check)


def test_only_versions_of_one_compatibility_group_are_compared() -> None:
    async def check(caller: Caller) -> None:
        await caller.ask("PUT", "/config/a", {"compatibilityGroup": "major"})
        first, second = ({"properties": {"major": number}} for number in ("1", "2"))
        await caller.register("a", RECORD, metadata=first)
        body = {"schema": ONE_FIELD, "metadata": first}
        await caller.refused(40901, "POST", "/subjects/a/versions", body)
        assert await caller.register("a", ONE_FIELD, metadata=second) == 2

    calling(check)


def test_alias_reads_another_subject() -> None:
    async def check(caller: Caller) -> None:
        await caller.register("old", STRING)
        await caller.ask("PUT", "/config/new", {"alias": "old"})
        assert (await caller.ask("GET", "/subjects/new/versions/1"))["subject"] == "old"

    calling(check)


def test_lists_come_in_pages() -> None:
    async def check(caller: Caller) -> None:
        for subject in "abcde":
            await caller.register(subject, STRING)
        assert await caller.ask("GET", "/subjects?offset=1&limit=2") == ["b", "c"]
        assert await caller.ask("GET", "/subjects?offset=9") == []
        latest = await caller.ask("GET", "/schemas?latestOnly=true&limit=2")
        assert [entry["subject"] for entry in latest] == ["a", "b"]

    calling(check)


def test_json_and_protobuf_are_registered_served_and_compared() -> None:
    async def check(caller: Caller) -> None:
        schema = '{"type": "object", "properties": {"a": {"type": "string"}}}'
        await caller.register("j", schema, schemaType="JSON")
        served = await caller.ask("GET", "/schemas/ids/1")
        assert (served["schemaType"], served["schema"]) == ("JSON", schema.replace(" ", ""))
        other = {"schema": schema.replace("string", "integer"), "schemaType": "JSON"}
        message = await caller.refused(40901, "POST", "/subjects/j/versions", other)
        assert "TYPE_CHANGED" in message
        proto = 'syntax = "proto3";\n\nmessage A {\n  string a = 1;\n}\n'
        await caller.register("p", proto, schemaType="PROTOBUF")
        by_id = await caller.ask("GET", "/schemas/ids/2")
        assert (by_id["schemaType"], by_id["schema"]) == ("PROTOBUF", proto)
        spaced = {"schema": proto.replace("\n", "  \n"), "schemaType": "PROTOBUF"}
        assert (await caller.ask("POST", "/subjects/p", spaced))["id"] == 2
        changed = {"schema": proto.replace("string", "int32"), "schemaType": "PROTOBUF"}
        message = await caller.refused(40901, "POST", "/subjects/p/versions", changed)
        assert "FIELD_SCALAR_KIND_CHANGED" in message
        await caller.refused(42201, "GET", "/schemas/ids/2?format=odd")
        more = {"schema": schema.replace('"a"', '"b"'), "schemaType": "JSON"}
        await caller.refused(40901, "POST", "/subjects/j/versions", more)
        await caller.refused(422, "PUT", "/config/j", {"compatibilityPolicy": "SOFT"})
        await caller.ask("PUT", "/config/j", {"compatibilityPolicy": "lenient"})
        assert await caller.register("j", **more) == 3

    calling(check)


def test_protobuf_schema_is_the_same_as_text_and_as_descriptor() -> None:
    """Java's clients send text, Python's and C's a descriptor: they may share a subject."""

    async def check(caller: Caller) -> None:
        proto = 'syntax = "proto3"; package p; message A { B b = 1; } message B { string s = 1; }'
        await caller.register("p-value", proto, schemaType="PROTOBUF")
        path = "/subjects/p-value/versions"
        descriptor = (await caller.ask("GET", f"{path}/1?format=serialized"))["schema"]
        body = {"schema": descriptor, "schemaType": "PROTOBUF"}
        assert (await caller.ask("POST", "/subjects/p-value", body))["version"] == 1
        again = await caller.ask("POST", path, body)
        assert (again["id"], again["schema"]) == (1, descriptor), "in the form in which it came"
        assert await caller.ask("GET", path) == [1]

    calling(check)


def test_protobuf_schema_that_another_registry_has_written_is_found() -> None:
    proto = 'syntax = "proto3";\n// A.\nmessage A { B b = 1; }\nmessage B { string s = 1; }'
    stored = [
        Entry("p", 1, 4, Content("not a file", "PROTOBUF")).record(),
        Entry("p", 2, 5, Content(proto, "PROTOBUF")).record(),
        Entry("p", 3, 6, Content(proto.replace("string", "int32"), "PROTOBUF")).record(),
    ]

    async def check(caller: Caller) -> None:
        body = {"schema": proto.replace("// A.", ""), "schemaType": "PROTOBUF"}
        assert (await caller.ask("POST", "/subjects/p", body))["version"] == 2
        assert (await caller.ask("POST", "/subjects/p/versions", body))["id"] == 5
        assert await caller.ask("GET", "/subjects/p/versions") == [1, 2, 3]
        await caller.refused(
            40403, "POST", "/subjects/p", {**body, "schema": proto + "enum E {Z=0;}"}
        )

    calling(check, list(stored))


def test_body_that_is_no_json_or_of_another_type_is_refused() -> None:
    async def check(caller: Caller) -> None:
        async with caller._client.post("/subjects/a/versions", data=b"{") as response:
            assert response.status == 422
        for kind, status in (("text/plain", 415), ("application/json", 200)):
            async with caller._client.post(
                "/subjects/a/versions",
                data=b'{"schema":"\\"string\\""}',
                headers={"Content-Type": kind, "Accept": "application/json"},
            ) as response:
                assert response.status == status
                assert response.content_type == "application/json"

    calling(check)


def test_browsers_get_a_page_at_the_root_and_clients_what_confluents_answers() -> None:
    async def check(caller: Caller) -> None:
        assert await caller.ask("GET", "/") == {}

    async def look(client: TestClient) -> None:
        answer = await client.get("/", headers={"Accept": "text/html"})
        assert answer.content_type == "text/html"
        assert "<h1>Schema registry</h1>" in await answer.text()

    calling(check)
    with_client(look)


def test_what_is_asked_before_the_topic_is_read_is_answered_when_it_is() -> None:
    """A registry that has just been started again must not say that it knows nothing."""

    async def check(client: TestClient) -> None:
        topic = client.app[TOPIC_KEY]
        await Caller(client).register("a", STRING)
        topic._loaded.clear()
        asking = asyncio.ensure_future(Caller(client).ask("GET", "/schemas/ids/1"))
        done, _ = await asyncio.wait({asking}, timeout=0.05)
        assert not done
        topic._loaded.set()
        assert (await asking)["schema"] == STRING

    with_client(check)


def test_topic_that_cannot_be_read_is_the_stores_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schemas.registry.rest.answers.LOAD_SECONDS", 0.01)

    async def check(client: TestClient) -> None:
        client.app[TOPIC_KEY]._loaded.clear()
        await Caller(client).refused(50001, "GET", "/subjects/x/versions/latest")
        async with client.get("/health/live") as answer:
            assert answer.status == 200

    with_client(check)
