"""Texts that a library in C takes badly: each is refused, and the proxy lives."""

import socket
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.lib.rest_calls import JSON, V2, RestCalls, records_type

pytestmark = pytest.mark.slow

HALF = "\ud800"
ZERO = "fruit\0vegetables"
LONG = "x" * 40_000
"""Longer than a text of Kafka's protocol: 32,767 bytes."""
ODD = {"half": HALF, "zero": ZERO, "long": LONG}

BODIES: dict[str, tuple[str, str, Any]] = {
    "a topic's name": ("/v3/{c}/topics", JSON, {"topic_name": "?"}),
    "a setting's name": (
        "/v3/{c}/topics",
        JSON,
        {"topic_name": "odd", "configs": [{"name": "?", "value": "x"}]},
    ),
    "a setting's value": (
        "/v3/{c}/topics",
        JSON,
        {"topic_name": "odd", "configs": [{"name": "cleanup.policy", "value": "?"}]},
    ),
    "a changed setting's name": (
        "/v3/{c}/topics/there/configs:alter",
        JSON,
        {"data": [{"name": "?", "value": "1"}]},
    ),
    "a changed setting's value": (
        "/v3/{c}/topics/there/configs:alter",
        JSON,
        {"data": [{"name": "cleanup.policy", "value": "?"}]},
    ),
    "a header's name": (
        "/v3/{c}/topics/there/records",
        JSON,
        {"headers": [{"name": "?", "value": None}], "value": {"type": "STRING", "data": "a"}},
    ),
    "a consumer's name": ("/consumers/odd", V2, {"name": "?"}),
    "a topic of a subscription": (
        "/consumers/odd/instances/odd/subscription",
        V2,
        {"topics": ["?"]},
    ),
    "a pattern of a subscription": (
        "/consumers/odd/instances/odd/subscription",
        V2,
        {"topic_pattern": "?"},
    ),
    "a topic of an assignment": (
        "/consumers/odd/instances/odd/assignments",
        V2,
        {"partitions": [{"topic": "?", "partition": 0}]},
    ),
    "a topic of offsets": (
        "/consumers/odd/instances/odd/offsets",
        V2,
        {"offsets": [{"topic": "?", "partition": 0, "offset": 0}]},
    ),
    "a topic of positions": (
        "/consumers/odd/instances/odd/positions",
        V2,
        {"offsets": [{"topic": "?", "partition": 0, "offset": 0}]},
    ),
    "a schema": (
        "/topics/there",
        records_type("avro"),
        {"value_schema": "?", "records": [{"value": 1}]},
    ),
    "a subject": (
        "/v3/{c}/topics/there/records",
        JSON,
        {"value": {"type": "AVRO", "subject": "?", "data": 1}},
    ),
    **{
        f"the {field} of an access rule": (
            "/v3/{c}/acls",
            JSON,
            {
                "resource_type": "TOPIC",
                "resource_name": "a",
                "pattern_type": "LITERAL",
                "principal": "User:a",
                "host": "*",
                "operation": "READ",
                "permission": "ALLOW",
                field: "?",
            },
        )
        for field in ("resource_name", "principal", "host", "operation")
    },
}
PATHS = (
    "GET /topics/?",
    "DELETE /v3/{c}/topics/?",
    "GET /v3/{c}/topics/?",
    "GET /v3/{c}/topics/?/configs",
    "GET /v3/{c}/consumer-groups/?",
    "GET /v3/{c}/consumer-groups/?/lags",
    "DELETE /v3/{c}/consumer-groups/?",
    "GET /v3/{c}/acls?resource_name=?",
    "GET /v3/{c}/acls?principal=?",
    "DELETE /v3/{c}/acls?resource_type=TOPIC&resource_name=?",
    "GET /consumers/?/instances/a/records",
    "GET /consumers/a/instances/?/records",
)


@pytest.fixture(scope="module")
def cluster(stack: Any) -> str:
    rest = RestCalls(stack.rest_proxy_url)
    sent = {"records": [{"value": 1}]}
    assert rest.post("/topics/there", sent, records_type("json")).status == 200
    return "clusters/" + str(rest.get("/v3/clusters").body["data"][0]["cluster_id"])


def filled(told: Any, text: str) -> Any:
    """Return a body with a text at each place of a question mark."""
    if isinstance(told, dict):
        return {name: filled(value, text) for name, value in told.items()}
    if isinstance(told, list):
        return [filled(each, text) for each in told]
    return text if told == "?" else told


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("where", BODIES)
def test_an_odd_text_in_a_body_is_refused(
    rest: RestCalls, cluster: str, where: str, odd: str
) -> None:
    path, content_type, body = BODIES[where]
    rest.post("/consumers/odd", {"name": "odd"})
    answer = rest.post(path.format(c=cluster), filled(body, ODD[odd]), content_type)
    errors = str(answer.body)
    assert 400 <= answer.status < 500 or "error_code" in errors, answer
    assert "An error of the REST proxy itself" not in errors
    assert answer.status != 503, answer
    assert rest.get("/health/ready").status == 200


def test_the_largest_offset_has_none_after_it(rest: RestCalls, cluster: str) -> None:
    made = rest.post("/consumers/largest", {"name": "a"}).body["base_uri"]
    told = {"topic": "there", "partition": 0, "offset": (1 << 63) - 1}
    assert rest.post(f"{made}/offsets", {"offsets": [told]}).status == 422
    rest.delete(made)


@pytest.mark.parametrize("odd", ["%FF", "%ED%A0%80", "fruit%00vegetables", "x" * 4000])
@pytest.mark.parametrize("call", PATHS)
def test_an_odd_text_in_an_address_is_refused(
    rest: RestCalls, cluster: str, call: str, odd: str
) -> None:
    method, _, path = call.format(c=cluster).partition(" ")
    head, _, rest_of = path.rpartition("?") if path.endswith("?") else path.partition("?")
    answer = rest.call(method, head + odd + rest_of, None, None)
    is_filter = len(odd) > 100 and call.startswith("GET /v3/{c}/acls")
    assert answer.status in ((200,) if is_filter else (400, 404, 405, 422)), answer
    assert rest.get("/health/ready").status == 200


def test_a_group_with_a_zero_byte_is_not_the_group_before_it(rest: RestCalls, cluster: str) -> None:
    made = rest.post("/consumers/fruit", {"name": "a"}).body["base_uri"]
    rest.post(f"{made}/subscription", {"topics": ["there"]})
    rest.get(f"{made}/records")
    rest.delete(made)
    assert rest.delete(f"/v3/{cluster}/consumer-groups/{quote(ZERO)}").code == 42206


@pytest.mark.parametrize(
    "host", [b"a\xff", b"x:99999", b"x:abc", b"x:-1", b"a b", b"a/b", b"a@b", b"[::1", b"xn--\xc3"]
)
@pytest.mark.parametrize("path", [b"/", b"/topics", b"/v3/clusters", b"/health/ready"])
def test_a_host_that_is_none_is_refused(rest: RestCalls, host: bytes, path: bytes) -> None:
    assert _status(rest, b"GET " + path, b"Host: " + host) == 400


@pytest.mark.parametrize("header", ["Accept", "X-Forwarded-Host", "Origin", "Forwarded"])
def test_a_header_that_is_no_text_is_refused(rest: RestCalls, header: str) -> None:
    assert _status(rest, b"GET /topics", b"Host: a\r\n" + header.encode() + b": a\xff") == 400


def _status(rest: RestCalls, line: bytes, headers: bytes) -> int:
    parts = urlsplit(rest.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0)) as sending:
        sending.sendall(line + b" HTTP/1.1\r\n" + headers + b"\r\nConnection: close\r\n\r\n")
        return int(sending.recv(100).split()[1])
