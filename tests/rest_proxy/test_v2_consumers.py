"""Version 2: consumer instances."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer

from millstream.testing import LocalStack
from tests.lib.rest_calls import JSON, V2, Answer, RestCalls, records_type

pytestmark = pytest.mark.slow

BINARY = records_type("binary")


class Instance:
    """One consumer instance and its calls."""

    def __init__(self, rest: RestCalls, group: str, **settings: Any) -> None:
        told = {name.replace("_", "."): value for name, value in settings.items()}
        made = rest.post(f"/consumers/{group}", {"auto.offset.reset": "earliest", **told})
        assert made.status == 200, made
        self.rest, self.url = rest, made.body["base_uri"]

    def post(self, path: str, body: Any = None) -> Answer:
        return self.rest.post(f"{self.url}/{path}", body)

    def get(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.rest.get(f"{self.url}/{path}", body, **headers)

    def values(self, path: str = "records") -> list[Any]:
        answer = self.get(path)
        assert answer.status == 200, answer
        return [base64.b64decode(each["value"]) for each in answer.body]


Make = Callable[..., Instance]


@pytest.fixture
def make(rest: RestCalls, group: str) -> Make:
    return lambda **settings: Instance(rest, group, **settings)


@pytest.fixture
def filled(stack: LocalStack, topic: str) -> str:
    """A topic with ten records in its partition 0."""
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    for number in range(10):
        headers: list[tuple[str, str | bytes | None]] = []
        if number == 0:
            headers.append(("n", b"0"))
        producer.produce(
            topic, b"%d" % number, partition=0, timestamp=1000 + number, headers=headers
        )
    assert producer.flush(30) == 0
    return topic


def test_the_first_read_after_a_subscription_is_not_empty(make: Make, filled: str) -> None:
    instance = make()
    assert instance.post("subscription", {"topics": [filled]}).status == 204
    assert instance.values() == [b"%d" % number for number in range(10)]
    assert instance.get("subscription").body == {"topics": [filled]}
    assert instance.get("assignments").body["partitions"] == [
        {"topic": filled, "partition": 0},
        {"topic": filled, "partition": 1},
    ]


def test_records_have_their_timestamps_and_headers(make: Make, filled: str) -> None:
    instance = make()
    instance.post("subscription", {"topics": [filled]})
    first, second, *_ = instance.get("records", Accept=BINARY).body
    assert first == {
        "topic": filled,
        "key": None,
        "value": "MA==",
        "partition": 0,
        "offset": 0,
        "timestamp": 1000,
        "headers": [{"key": "n", "value": "MA=="}],
    }
    assert "headers" not in second


def test_a_pattern_subscribes_to_what_matches(make: Make, filled: str) -> None:
    instance = make()
    assert instance.post("subscription", {"topic_pattern": f"^{filled}$"}).status == 204
    assert len(instance.values()) == 10


def test_a_pattern_that_is_none_is_refused(make: Make) -> None:
    answer = make().post("subscription", {"topic_pattern": "("})
    assert (answer.status, answer.code) == (422, 42206)


def test_a_record_above_max_bytes_arrives_and_each_read_goes_on(make: Make, filled: str) -> None:
    instance = make(consumer_request_timeout_ms=300)
    instance.post("subscription", {"topics": [filled]})
    assert instance.values("records?max_bytes=0") == [b"0"]
    assert instance.values("records?max_bytes=3") == [b"1", b"2", b"3"]
    assert instance.values("records") == [b"%d" % number for number in range(4, 10)]


def test_assigned_partitions_are_read(make: Make, filled: str) -> None:
    instance = make()
    partitions = {"partitions": [{"topic": filled, "partition": 0}]}
    assert instance.post("assignments", partitions).status == 204
    assert instance.get("assignments").body == partitions
    assert len(instance.values()) == 10


def test_positions_are_set_by_offset_time_beginning_and_end(make: Make, filled: str) -> None:
    instance = make(consumer_request_timeout_ms=300)
    place = {"topic": filled, "partition": 0}
    instance.post("assignments", {"partitions": [place]})
    assert instance.post("positions", {"offsets": [{**place, "offset": 8}]}).status == 204
    assert instance.values() == [b"8", b"9"]
    at = {**place, "timestamp": "1970-01-01T00:00:01.007Z"}
    assert instance.post("positions", {"timestamps": [at]}).status == 204
    assert instance.values() == [b"7", b"8", b"9"]
    assert instance.post("positions/beginning", {"partitions": [place]}).status == 204
    assert len(instance.values()) == 10
    assert instance.post("positions/end", {"partitions": [place]}).status == 204
    assert instance.values() == []


def test_offsets_are_committed_as_those_of_the_last_record_handled(make: Make, filled: str) -> None:
    place = {"topic": filled, "partition": 0}
    instance = make(auto_commit_enable="false")
    instance.post("assignments", {"partitions": [place]})
    assert instance.get("offsets", {"partitions": [place]}).body == {"offsets": []}
    told = {"offsets": [{**place, "offset": 4, "metadata": "half"}]}
    assert instance.post("offsets", told).body == []
    found = instance.get("offsets", {"partitions": [place]}).body
    assert found == {"offsets": [{**place, "offset": 5, "metadata": "half"}]}
    instance.values("records?max_bytes=3")
    assert instance.post("offsets").body == []
    found = instance.get("offsets", {"partitions": [place]}).body
    assert found["offsets"][0]["offset"] == 3


def test_a_deleted_instance_has_committed_what_it_gave(make: Make, filled: str) -> None:
    first = make()
    first.post("subscription", {"topics": [filled]})
    assert len(first.values("records?max_bytes=4")) == 4
    assert first.rest.delete(first.url).status == 204
    second = make()
    second.post("subscription", {"topics": [filled]})
    assert second.values() == [b"%d" % number for number in range(4, 10)]


def test_an_instance_has_a_subscription_or_an_assignment(make: Make, filled: str) -> None:
    instance = make()
    assert instance.get("records").code == 40903
    partitions = {"partitions": [{"topic": filled, "partition": 0}]}
    instance.post("subscription", {"topics": [filled]})
    assert instance.post("assignments", partitions).code == 40903
    assert instance.rest.delete(f"{instance.url}/subscription").status == 204
    assert instance.get("subscription").body == {"topics": []}
    assert instance.post("assignments", partitions).status == 204
    assert instance.post("subscription", {"topics": [filled]}).code == 40903


def test_positions_of_what_is_not_assigned_are_refused(make: Make, filled: str) -> None:
    instance = make()
    instance.post("assignments", {"partitions": [{"topic": filled, "partition": 0}]})
    other = {"topic": filled, "partition": 1}
    assert instance.post("positions", {"offsets": [{**other, "offset": 1}]}).code == 40903
    assert instance.post("positions/end", {"partitions": [other]}).code == 40903
    assert instance.post("offsets", {"offsets": [{**other, "offset": 1}]}).code == 40903
    missing = {"partitions": [{"topic": filled, "partition": 9}]}
    assert instance.post("assignments", missing).code == 40402


def test_offsets_without_partitions_are_refused(make: Make) -> None:
    assert make().get("offsets").code == 40402


def test_the_format_is_the_instance_s(make: Make, filled: str) -> None:
    instance = make(format="JSON")
    instance.post("subscription", {"topics": [filled]})
    assert instance.get("records", Accept=BINARY).code == 40601
    assert instance.get("records", Accept="text/html").code == 406
    read = instance.get("records", Accept=V2)
    assert read.headers["Content-Type"].startswith(records_type("json"))
    assert [each["value"] for each in read.body] == list(range(10))


def test_a_record_of_another_format_is_named_and_can_be_passed(
    make: Make, rest: RestCalls, topic: str
) -> None:
    rest.post(
        f"/topics/{topic}",
        {"records": [{"value": "MQ==", "partition": 1}]},
        BINARY,
    )
    for text in (b"1", b"no", b"3"):
        value = base64.b64encode(text).decode()
        rest.post(f"/topics/{topic}", {"records": [{"value": value, "partition": 0}]}, BINARY)
    instance = make(format="json", consumer_request_timeout_ms=300)
    place = {"topic": topic, "partition": 0}
    instance.post("assignments", {"partitions": [place]})
    assert [each["value"] for each in instance.get("records").body] == [1]
    refused = instance.get("records")
    assert (refused.code, f"{topic}-0 at offset 1" in refused.body["message"]) == (42207, True)
    instance.post("positions", {"offsets": [{**place, "offset": 2}]})
    assert [each["value"] for each in instance.get("records").body] == [3]


def test_names_are_taken_once(rest: RestCalls, group: str) -> None:
    told = {"name": "one"}
    first = rest.post(f"/consumers/{group}", told)
    assert first.body["instance_id"] == "one"
    assert first.body["base_uri"] == f"{rest.url}/consumers/{group}/instances/one"
    assert rest.post(f"/consumers/{group}", told).code == 40902
    assert rest.delete(f"/consumers/{group}/instances/one").status == 204
    assert rest.delete(f"/consumers/{group}/instances/one").code == 40403
    assert rest.post(f"/consumers/{group}").body["instance_id"].startswith("rest-consumer-")


@pytest.mark.parametrize(
    "told",
    [
        {"format": "xml"},
        {"auto.offset.reset": "middle"},
        {"auto.commit.enable": "perhaps"},
        {"fetch.min.bytes": "many"},
        {"consumer.request.timeout.ms": -5},
        {"heartbeat.interval.ms": 1},
    ],
)
def test_a_wrong_setting_is_42204(rest: RestCalls, group: str, told: dict[str, object]) -> None:
    answer = rest.post(f"/consumers/{group}", told)
    assert (answer.status, answer.code) == (422, 42204)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "subscription"),
        ("GET", "subscription"),
        ("DELETE", "subscription"),
        ("POST", "assignments"),
        ("GET", "assignments"),
        ("POST", "positions"),
        ("POST", "positions/beginning"),
        ("POST", "positions/end"),
        ("POST", "offsets"),
        ("GET", "records"),
    ],
)
def test_an_instance_that_is_not_there_is_40403(rest: RestCalls, method: str, path: str) -> None:
    bodies: dict[str, object] = {
        "subscription": {"topics": ["a"]},
        "positions": {"offsets": []},
        "offsets": {"offsets": []},
    }
    body = bodies.get(path, {"partitions": []}) if method == "POST" else None
    answer = rest.call(method, f"/consumers/g/instances/none/{path}", body, V2)
    assert (answer.status, answer.code) == (404, 40403)
    assert "load balancer" in answer.body["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("subscription", {}),
        ("subscription", {"topics": ["a"], "topic_pattern": "a"}),
        ("subscription", {"topics": [1]}),
        ("assignments", {}),
        ("assignments", {"partitions": [{"topic": "a"}]}),
        ("positions", {}),
        ("positions", {"timestamps": [{"topic": "a", "partition": 0, "timestamp": "noon"}]}),
        ("positions", {"offsets": [{"topic": "a", "partition": 0, "offset": -1}]}),
        ("offsets", {"offsets": [{"topic": "a", "partition": 1 << 40, "offset": 1}]}),
    ],
)
def test_a_body_that_means_nothing_is_422(make: Make, path: str, body: object) -> None:
    answer = make().post(path, body)
    assert (answer.status, answer.code) == (422, 42206), answer


def test_a_body_of_another_type_is_415(rest: RestCalls, group: str) -> None:
    assert rest.post(f"/consumers/{group}", {}, "text/plain").code == 415
    assert rest.post(f"/consumers/{group}", {}, JSON).status == 200
    assert rest.post(f"/consumers/{group}", [], V2).code == 42206
    assert rest.post(f"/consumers/{group}", b"{", V2).code == 400
