"""Version 3: records sent one by one, in a stream, in a batch."""

import base64
import json
import socket
from urllib.parse import urlsplit

import pytest

from tests.lib.rest_calls import JSON, Answer, RestCalls

pytestmark = pytest.mark.slow

SCHEMA = '{"type": "record", "name": "n.Person", "fields": [{"name": "age", "type": "int"}]}'


class Records:
    """The calls that send records to one topic."""

    def __init__(self, rest: RestCalls, topic: str) -> None:
        self.rest, self.topic = rest, topic
        self.cluster_id = rest.get("/v3/clusters").body["data"][0]["cluster_id"]
        self.path = f"/v3/clusters/{self.cluster_id}/topics/{topic}/records"

    def send(self, *records: object) -> list[dict[str, object]]:
        body = b" ".join(json.dumps(each).encode() for each in records)
        answer = self.rest.post(self.path, body, JSON)
        assert answer.status == 200, answer
        return list(answer.body)

    def post(self, body: object, content_type: str = JSON) -> Answer:
        return self.rest.post(self.path, body, content_type)

    def batch(self, entries: object) -> Answer:
        return self.rest.post(f"{self.path}:batch", {"entries": entries}, JSON)


@pytest.fixture
def records(rest: RestCalls, topic: str) -> Records:
    return Records(rest, topic)


def test_a_record_has_a_report(records: Records) -> None:
    (report,) = records.send(
        {
            "partition_id": 1,
            "headers": [{"name": "h", "value": "aGk="}, {"name": "none", "value": None}],
            "key": {"type": "STRING", "data": "k"},
            "value": {"type": "JSON", "data": {"a": 1}},
            "timestamp": "2021-02-05T19:14:42.123Z",
        }
    )
    assert report == {
        "error_code": 200,
        "cluster_id": records.cluster_id,
        "topic_name": records.topic,
        "partition_id": 1,
        "offset": 0,
        "timestamp": "2021-02-05T19:14:42.123Z",
        "key": {"type": "STRING", "size": 1},
        "value": {"type": "JSON", "size": 7},
    }


def test_headers_and_bytes_are_those_that_were_sent(
    records: Records, rest: RestCalls, group: str
) -> None:
    data = base64.b64encode(b"\0\1\2").decode()
    records.send(
        {"headers": [{"name": "h", "value": data}], "value": {"type": "BINARY", "data": data}}
    )
    made = rest.post(f"/consumers/{group}", {"auto.offset.reset": "earliest"})
    rest.post(f"{made.body['base_uri']}/subscription", {"topics": [records.topic]})
    (record,) = rest.get(f"{made.body['base_uri']}/records").body
    assert (record["key"], record["value"]) == (None, data)
    assert record["headers"] == [{"key": "h", "value": data}]


def test_a_schema_is_named_in_every_way(records: Records) -> None:
    topic = records.topic
    (made,) = records.send({"value": {"type": "AVRO", "schema": SCHEMA, "data": {"age": 1}}})
    value = made["value"]
    assert isinstance(value, dict)
    assert (value["subject"], value["schema_version"]) == (f"{topic}-value", 1)
    named = [
        {"data": {"age": 1}},
        {"type": "AVRO", "data": {"age": 1}},
        {"schema_id": value["schema_id"], "data": {"age": 1}},
        {"schema_version": 1, "data": {"age": 1}},
        {"subject": f"{topic}-value", "data": {"age": 1}},
        {"subject_name_strategy": "TOPIC_NAME", "schema_version": 1, "data": {"age": 1}},
    ]
    for report in records.send(*({"value": each} for each in named)):
        assert report["value"] == value
    strategies = [
        {"type": "AVRO", "schema": SCHEMA, "subject_name_strategy": each, "data": {"age": 1}}
        for each in ("RECORD_NAME", "TOPIC_RECORD_NAME")
    ]
    subjects = [
        report["value"]["subject"]  # type: ignore[index]
        for report in records.send(*({"value": each} for each in strategies))
    ]
    assert subjects == ["n.Person", f"{topic}-n.Person"]


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({"value": {"type": "BINARY", "data": "?"}}, 400),
        ({"value": {"type": "BINARY", "data": 1}}, 400),
        ({"key": {"type": "BINARY", "data": "fooba"}}, 400),
        ({"value": {"type": "XML", "data": "?"}}, 42206),
        ({"value": {"type": "STRING", "data": 5}}, 400),
        ({"value": {"type": "JSON", "data": 5, "schema_id": 1}}, 42206),
        ({"value": {"schema": SCHEMA, "data": {"age": 1}}}, 42206),
        ({"value": {"type": "AVRO", "schema": SCHEMA, "schema_id": 1, "data": {}}}, 42206),
        ({"value": {"type": "AVRO", "schema": SCHEMA, "data": {"age": "old"}}}, 42203),
        ({"value": {"type": "AVRO", "schema": "{", "data": {}}}, 42205),
        ({"value": {"schema_id": 99999, "data": 1}}, 40801),
        ({"value": {"data": 1}}, 40801),
        ({"value": {"subject_name_strategy": "SOME", "schema_version": 1, "data": 1}}, 42206),
        ({"value": 5}, 42206),
        ({"val": {"type": "JSON", "data": 5}}, 42206),
        ({"partition_id": -1}, 42206),
        ({"partition_id": 9, "value": {"type": "JSON", "data": 5}}, 40402),
        ({"timestamp": "noon"}, 42206),
        ({"headers": [{"name": "h", "value": "?"}]}, 400),
        (5, 42206),
    ],
)
def test_a_wrong_record_has_its_reason_in_its_report(
    records: Records, record: object, code: int
) -> None:
    good = {"value": {"type": "JSON", "data": 1}}
    first, wrong, last = records.send(good, record, good)
    assert (first["error_code"], last["error_code"]) == (200, 200)
    assert wrong["error_code"] == code, wrong
    assert wrong["message"]


def test_bad_json_ends_a_stream_with_one_report(records: Records) -> None:
    good = b'{"value": {"type": "JSON", "data": 1}}'
    reports = records.post(good + good + b"nonsense" + good).body
    assert [each["error_code"] for each in reports] == [200, 200, 400]
    reports = records.post(good + good[:20]).body
    assert [each["error_code"] for each in reports] == [200, 400]


@pytest.mark.parametrize("body", [b"[]", b'{"records": []}', b"nonsense", b"{", b"\xff"])
def test_a_body_that_is_no_stream_is_400(records: Records, body: bytes) -> None:
    answer = records.post(body)
    assert (answer.status, answer.code) == (400, 400)


def test_an_empty_body_and_one_of_another_type(records: Records) -> None:
    assert records.post(b"").body[0]["error_code"] == 42206
    assert records.post(b"{}", "text/plain").code == 415
    other = records.rest.post(f"/v3/clusters/other/topics/{records.topic}/records", b"{}", JSON)
    assert (other.status, other.code) == (404, 404)


def test_reports_come_back_while_the_body_still_arrives(records: Records) -> None:
    parts = urlsplit(records.rest.url)
    record = b'{"value": {"type": "JSON", "data": 1}}'
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as sent:
        head = f"POST {records.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        sent.sendall(head.encode())
        received = sent.makefile("rb")
        for number in range(3):
            sent.sendall(b"%x\r\n%s\r\n" % (len(record), record))
            line = b""
            while b'"error_code":200' not in line:
                line = received.readline()
                assert line, f"the stream ended at record {number}"
        sent.sendall(b"0\r\n\r\n")


def test_a_batch_has_successes_and_failures_by_id(records: Records) -> None:
    answer = records.batch(
        [
            {"id": "a", "value": {"type": "JSON", "data": 1}},
            {"id": "b", "value": {"type": "BINARY", "data": "?"}},
        ]
    )
    assert answer.status == 207
    (success,), (failure,) = answer.body["successes"], answer.body["failures"]
    assert (success["id"], success["offset"], success["topic_name"]) == ("a", 0, records.topic)
    assert (failure["id"], failure["error_code"]) == ("b", 400)


@pytest.mark.parametrize(
    "ids", [[], ["a", "a"], [""], ["x" * 81], [str(number) for number in range(11)]]
)
def test_a_batch_that_is_none_is_42208(records: Records, ids: list[str]) -> None:
    answer = records.batch([{"id": each} for each in ids])
    assert (answer.status, answer.code) == (422, 42208)
    assert records.batch([{}]).code == 42206
