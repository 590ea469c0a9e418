"""Version 2: what there is, and records sent."""

import base64

import pytest

from millstream.testing import LocalStack
from tests.lib.rest_calls import JSON, V2, Answer, RestCalls, records_type

pytestmark = pytest.mark.slow

AVRO = records_type("avro")
RECORD = (
    '{"type": "record", "name": "Person", "fields": [{"name": "name", "type": ["null", "string"]}]}'
)

PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Person { string some_name = 1; int64 n = 2; google.protobuf.Timestamp at = 3; }
"""


def created(rest: RestCalls, topic: str) -> str:
    answer = rest.post(f"/topics/{topic}", {"records": [{"value": 1}]}, records_type("json"))
    assert answer.status == 200, answer
    return topic


def test_topics_and_brokers_are_listed(rest: RestCalls, topic: str) -> None:
    created(rest, topic)
    topics, brokers = rest.get("/topics"), rest.get("/brokers")
    assert topic in topics.body
    assert topics.headers["Content-Type"].startswith(V2)
    assert brokers.body == {"brokers": [1]}
    assert rest.get("/topics", Accept=JSON).headers["Content-Type"].startswith(JSON)


def test_a_topic_has_its_settings_and_partitions(rest: RestCalls, topic: str) -> None:
    created(rest, topic)
    body = rest.get(f"/topics/{topic}").body
    partition = {
        "partition": 0,
        "leader": 1,
        "replicas": [{"broker": 1, "leader": True, "in_sync": True}],
    }
    assert body["name"] == topic
    assert body["configs"]["cleanup.policy"] == "delete"
    assert body["partitions"] == [partition, {**partition, "partition": 1}]
    assert rest.get(f"/topics/{topic}/partitions").body == body["partitions"]
    assert rest.get(f"/topics/{topic}/partitions/0").body == partition


def test_a_partition_has_its_offsets(rest: RestCalls, topic: str) -> None:
    records = {"records": [{"value": "YQ=="}, {"value": "Yg=="}]}
    rest.post(f"/topics/{topic}", {"records": [{"value": ""}]}, records_type("binary"))
    answer = rest.post(f"/topics/{topic}/partitions/1", records, records_type("binary"))
    offsets = [each["offset"] for each in answer.body["offsets"]]
    assert offsets[1] == offsets[0] + 1
    found = rest.get(f"/topics/{topic}/partitions/1/offsets").body
    assert found == {"beginning_offset": 0, "end_offset": offsets[1] + 1}


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/topics/none", 40401),
        ("/topics/none/partitions", 40401),
        ("/topics/none/partitions/0", 40401),
        ("/topics/none/partitions/0/offsets", 40401),
        ("/topics/{topic}/partitions/7", 40402),
        ("/topics/{topic}/partitions/7/offsets", 40402),
        ("/topics/{topic}/partitions/x", 404),
        ("/nowhere", 404),
    ],
)
def test_what_is_not_there_is_404_with_its_code(
    rest: RestCalls, topic: str, path: str, code: int
) -> None:
    created(rest, topic)
    answer = rest.get(path.replace("{topic}", topic))
    assert (answer.status, answer.code) == (404, code)
    assert answer.body["message"]


@pytest.mark.parametrize(
    ("kind", "value", "schema"),
    [
        ("binary", base64.b64encode(b"\0\xff").decode(), None),
        ("json", {"a": [1, 2.5, None, "é", 2**63]}, None),
        ("avro", {"name": {"string": "a"}}, RECORD),
        ("protobuf", {"some_name": "a", "n": "5"}, PROTO),
        ("jsonschema", {"n": 1}, '{"type": "object", "properties": {"n": {"type": "integer"}}}'),
    ],
)
def test_every_format_is_read_as_it_was_sent(
    rest: RestCalls, topic: str, group: str, kind: str, value: object, schema: str | None
) -> None:
    body: dict[str, object] = {"records": [{"key": value, "value": value}, {"value": None}]}
    if schema is not None:
        body |= {"key_schema": schema, "value_schema": schema}
    sent = rest.post(f"/topics/{topic}", body, records_type(kind))
    assert sent.status == 200, sent.body
    assert [each["error"] for each in sent.body["offsets"]] == [None, None]
    assert (sent.body["value_schema_id"] is None) == (schema is None)
    made = rest.post(f"/consumers/{group}", {"format": kind, "auto.offset.reset": "earliest"})
    instance = made.body["base_uri"]
    rest.post(f"{instance}/subscription", {"topics": [topic]})
    read = rest.get(f"{instance}/records", Accept=records_type(kind))
    assert read.headers["Content-Type"].startswith(records_type(kind))
    assert sorted(map(str, ([one["key"], one["value"]] for one in read.body))) == sorted(
        map(str, ([value, value], [None, None]))
    )
    assert all(one["timestamp"] > 0 and one["topic"] == topic for one in read.body)


def test_a_union_is_taken_with_and_without_its_branch(rest: RestCalls, topic: str) -> None:
    records = [{"value": {"name": "a"}}, {"value": {"name": {"string": "a"}}}]
    body = {"value_schema": RECORD, "records": [*records, {"value": {"name": None}}]}
    sent = rest.post(f"/topics/{topic}", body, AVRO)
    assert [each["error"] for each in sent.body["offsets"]] == [None] * 3
    by_id = {"value_schema_id": sent.body["value_schema_id"], "records": records}
    assert rest.post(f"/topics/{topic}", by_id, AVRO).status == 200


@pytest.mark.parametrize(
    ("content_type", "body", "code"),
    [
        ("text/plain", {}, 415),
        (V2, {"records": [{"value": 1}]}, 415),
        (JSON, {"records": [{"value": 1}]}, 415),
        (records_type("xml"), {"records": [{"value": 1}]}, 415),
        (records_type("json"), b"{", 400),
        (records_type("json"), b'{"records": [{"value": NaN}]}', 400),
        (records_type("json"), b'{"records": [{"value": 1e999}]}', 400),
        (records_type("json"), b"[" * 100_000, 400),
        (records_type("json"), b'{"records": [{"value": ' + b"[" * 100_000, 400),
        (records_type("json"), b'\xff{"records": []}', 400),
        (records_type("json"), {}, 42206),
        (records_type("json"), {"records": []}, 42206),
        (records_type("json"), {"records": [1]}, 42206),
        (records_type("json"), {"records": [{"val": 1}]}, 42206),
        (records_type("json"), {"records": [{"value": 1, "partition": -1}]}, 42206),
        (records_type("json"), {"records": [{"value": 1}], "value_schema_id": 1}, 42206),
        (records_type("json"), b'{"records": [{"value": "\\ud800"}]}', 400),
        (records_type("binary"), {"records": [{"value": "no base64"}]}, 422),
        (records_type("binary"), {"records": [{"key": "\u00e9"}]}, 422),
        (records_type("binary"), {"records": [{"value": {"a": 1}}]}, 400),
        (AVRO, {"records": [{"value": "no base64"}], "value_schema": '"int"'}, 42203),
        (AVRO, {"records": [{"value": 1}]}, 42202),
        (AVRO, {"records": [{"key": 1}]}, 42201),
        (AVRO, {"records": [{"value": 1}], "value_schema": "no schema"}, 42205),
        (AVRO, {"records": [{"value": 1}], "value_schema_id": 9999}, 40801),
        (AVRO, {"records": [{"value": 1}], "value_schema": '"string"'}, 42203),
        (AVRO, {"records": [{"value": 2**31}], "value_schema": '"int"'}, 42203),
    ],
)
def test_what_cannot_be_sent_is_refused_with_its_reason(
    rest: RestCalls, topic: str, content_type: str, body: object, code: int
) -> None:
    answer = rest.post(f"/topics/{topic}", body, content_type)
    assert answer.code == code, answer
    assert answer.status == (code if code < 1000 else code // 100)
    assert len(answer.body["message"]) > 10


def test_a_body_is_refused_whole_before_its_first_record_is_sent(
    rest: RestCalls, topic: str
) -> None:
    created(rest, topic)
    bad = b'{"records": [{"value": 1, "partition": 0}, {"value": 2, "partition": 0}, nonsense]}'
    assert rest.post(f"/topics/{topic}", bad, records_type("json")).code == 400
    ends = [
        rest.get(f"/topics/{topic}/partitions/{each}/offsets").body["end_offset"] for each in (0, 1)
    ]
    assert sum(ends) == 1


def test_a_record_that_kafka_refuses_has_its_error_and_the_others_are_there(
    rest: RestCalls, topic: str
) -> None:
    created(rest, topic)
    records = [{"value": 1, "partition": 0}, {"value": 1, "partition": 9}]
    answer = rest.post(f"/topics/{topic}", {"records": records}, records_type("json"))
    there, refused = answer.body["offsets"]
    assert (answer.status, there["error_code"], refused["error_code"]) == (200, None, 40402)
    assert refused["error"]
    big = {"records": [{"value": "x" * 2_000_000}, {"value": 1}]}
    answer = rest.post(f"/topics/{topic}", big, records_type("json"))
    assert [each["error_code"] for each in answer.body["offsets"]] == [413, None]


def test_records_for_a_partition_that_is_not_there_are_404(rest: RestCalls, topic: str) -> None:
    records = {"records": [{"value": 1}]}
    created(rest, topic)
    assert rest.post(f"/topics/{topic}/partitions/7", records, records_type("json")).code == 40402
    named = {"records": [{"value": 1, "partition": 0}]}
    assert rest.post(f"/topics/{topic}/partitions/0", named, records_type("json")).code == 42206


def test_what_nobody_can_be_shown_is_406(rest: RestCalls) -> None:
    assert rest.get("/topics", Accept="text/html").code == 406


def test_the_root_answers_programs_with_nothing_and_browsers_with_a_page(
    rest: RestCalls, stack: LocalStack
) -> None:
    assert rest.get("/").body == {}
    assert rest.post("/", {}).body == {}
    page = rest.get("/", Accept="text/html")
    assert stack.bootstrap_servers in page.body
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_probes_and_metrics(rest: RestCalls) -> None:
    assert rest.get("/health/live").body == {"status": "live"}
    assert rest.get("/health/ready").body == {"status": "ready"}
    text = rest.get("/metrics").body
    assert 'route="/topics/{topic}"' in text
    assert "millstream_rest_proxy_consumer_instances" in text


def test_an_incompatible_schema_is_refused_as_by_confluent(rest: RestCalls, topic: str) -> None:
    def sent(schema: str, value: object) -> Answer:
        body = {"value_schema": schema, "records": [{"value": value}]}
        return rest.post(f"/topics/{topic}", body, records_type("avro"))

    assert sent('"int"', 1).status == 200
    refused = sent('"string"', "a")
    assert (refused.status, refused.code) == (422, 42207)
    assert "incompatible" in refused.body["message"]


def test_a_slash_at_the_end_makes_no_difference(rest: RestCalls, topic: str, group: str) -> None:
    assert (
        rest.post(f"/topics/{topic}/", {"records": [{"value": 1}]}, records_type("json")).status
        == 200
    )
    made = rest.post(f"/consumers/{group}/", {"format": "json"}).body["base_uri"]
    told = {"partitions": [{"topic": topic, "partition": 0}]}
    assert rest.post(f"{made}/assignments/", told).status == 204
    place = {"topic": topic, "partition": 0, "offset": 0}
    assert rest.post(f"{made}/positions/", {"offsets": [place]}).status == 204
    assert rest.post(f"{made}/positions/beginning/", told).status == 204
    assert rest.get(f"{made}/records/").status == 200
    for path in ("/topics/", "/health/ready/", "/health/live/", "/metrics/", "/v3/clusters/"):
        assert rest.get(path).status == 200
    assert rest.delete(f"{made}/").status == 204
