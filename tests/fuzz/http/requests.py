"""Requests as clients send them to each server, and what the fuzzer makes of them."""

import json
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from tests.fuzz.http.servers import CONNECT, DASHBOARD, ORDERS, REGISTRY, REST_PROXY, STREAMS

_JSON: Final = "application/json"
_ORDER: Final = {
    "customer_id": "c1",
    "lines": [{"product_id": "85123A", "quantity": 2, "unit_price": "2.55"}],
    "ordered_at": "2026-01-31T12:00:00Z",
}
_SCHEMA: Final = {
    "schema": '{"type":"record","name":"R","fields":[{"name":"a","type":["null","string"]}]}',
    "references": [{"name": "n", "subject": "s", "version": 1}],
}
_PROTO: Final = {
    "schema": 'syntax = "proto3"; message A { int32 a = 1; }',
    "schemaType": "PROTOBUF",
}
_JSON_SCHEMA: Final = {"schema": '{"properties":{"a":{"enum":[1,"b"]}}}', "schemaType": "JSON"}
_VERSIONS: Final = "/subjects/s/versions"
_SOURCE: Final = "FileStreamSource"
_OFFSETS: Final = {"offsets": [{"partition": {"filename": "/none"}, "offset": {"position": 1}}]}
_CONNECTOR: Final = {
    "name": "fuzzed",
    "config": {"connector.class": "FileStreamSource", "file": "/none", "topic": "t"},
    "initial_state": "STOPPED",
}
_RECORDS: Final = {"records": [{"key": "a", "value": {"b": 1}, "partition": 0}]}


@dataclass(frozen=True)
class Request:
    """One request, before it is written."""

    method: str
    path: str
    body: Any = None
    content_type: str = _JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


def _gets(*paths: str) -> list[Request]:
    return [Request("GET", path) for path in paths]


VALID: Final = {
    REGISTRY: [
        *_gets("/subjects", "/schemas?offset=0&limit=2", "/schemas/ids/1", "/config", "/mode/s"),
        *_gets("/subjects/s/versions/1?format=resolved", "/contexts", "/schemas/types"),
        *[
            Request("POST", path, body)
            for path in (
                "/subjects/s/versions",
                "/subjects/s",
                "/compatibility/subjects/s/versions",
            )
            for body in (_SCHEMA, _PROTO, _JSON_SCHEMA)
        ],
        Request("PUT", "/config/s", {"compatibility": "FULL", "alias": "t"}),
        Request("PUT", "/mode/s", {"mode": "READWRITE"}),
        Request("DELETE", "/subjects/s?permanent=true"),
    ],
    CONNECT: [
        *_gets("/connectors?expand=status&expand=info", "/connector-plugins", "/connectors/fuzzed"),
        *_gets("/connectors/fuzzed/offsets", "/connectors/fuzzed/status", "/admin/loggers"),
        Request("POST", "/connectors", _CONNECTOR),
        Request("PUT", "/connectors/fuzzed/config", _CONNECTOR["config"]),
        Request("PUT", f"/connector-plugins/{_SOURCE}/config/validate", _CONNECTOR["config"]),
        Request("PATCH", "/connectors/fuzzed/offsets", _OFFSETS),
        Request("DELETE", "/connectors/fuzzed"),
    ],
    ORDERS: [
        *_gets("/v1/orders/x", "/v1/orders/x/validated?timeout=0", "/v1/orders?q=a"),
        Request("POST", "/v1/orders", _ORDER, headers=((b"Idempotency-Key", b"k"),)),
        Request("POST", "/v1/orders", _ORDER, headers=((b"traceparent", b"00-1-2-01"),)),
        Request("DELETE", "/v1/orders/x"),
        Request("POST", "/v1/orders/x/shipment"),
    ],
    STREAMS: _gets(
        *("/v1/products", "/v1/products/85123A", "/v1/customers/17850", "/v1/levels?scope=local"),
        *("/v1/alerts", "/v1/latency", "/v1/instances", "/metrics", "/"),
    ),
    DASHBOARD: [
        *_gets("/", "/api/summary", "/api/revenue-by-day", "/static/app.js", "/metrics"),
        Request("GET", "/api/snapshot", headers=((b"Last-Event-ID", b"3"),)),
    ],
    REST_PROXY: [
        *_gets("/topics", "/topics/t", "/v3/clusters", "/consumers/g/instances/i/records"),
        Request("POST", "/topics/t", _RECORDS, "application/vnd.kafka.json.v2+json"),
        Request("POST", "/consumers/g", {"format": "json"}, "application/vnd.kafka.v2+json"),
        Request("POST", "/v3/clusters/c/topics", {"topic_name": "t", "partitions_count": 1}),
    ],
}
_PARTS: Final = ("", "..", "%2F", "%00", "%ED%A0%80", "%7B%7D", "9" * 400, "-1", "a?b=c")
_STRANGE: Final[list[Any]] = [
    *(None, True, -1, 0, 2**31, 2**63, 2**64, 1.5, 1e308, float("nan"), float("inf"), 10**400),
    *("", "a" * 300, "\ud800", "\x00", "../..", "1e999999999999999999999", "${env:HOME}", "\u202e"),
    *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", [], {}, [[]], {"": {"": []}}),
]
_BYTES: Final = (
    b"\x00",
    b"\xff",
    b"\xed\xa0\x80",
    b"%",
    b"%00",
    b"%ED%A0%80",
    b"\r",
    b"{",
    b"*",
    b"//",
)
_HEADERS: Final = (
    (b"Content-Encoding", b"gzip"),
    (b"Content-Length", b"-1"),
    (b"Content-Type", b"text/plain; charset=\xff"),
    (b"Transfer-Encoding", b"chunked"),
    (b"Expect", b"100-continue"),
    (b"Origin", b"http://evil.example"),
    (b"Host", b"evil.example"),
    (b"Accept", b"text/html;q=\xff"),
    (b"Authorization", b"Basic \xff"),
    (b"Cookie", b"=;" * 900),
    (b"Range", b"bytes=9-1,-"),
    (b"Upgrade", b"websocket"),
    (b"X-Forwarded-Host", b"[::"),
    (b"If-Modified-Since", b"Mon, 99 Foo 99999999 99:99:99 GMT"),
    (b"Idempotency-Key", b"k\xff"),
    (b"Last-Event-ID", b"\xc2\xb2"),
)


def mutated(request: Request, random: Random) -> bytes:
    """Return the bytes of a request that was changed in its body, path, headers or bytes."""
    count = random.randint(1, 3)
    growing = random.randrange(count)
    for number in range(count):
        match random.randrange(5):
            case 0 | 1 if request.body is not None:
                body = _changed(request.body, random, may_grow=number == growing)
                request = replace(request, body=body)
            case 2:
                request = replace(request, path=_changed_path(request.path, random))
            case 3:
                request = replace(request, headers=(*request.headers, random.choice(_HEADERS)))
            case _:
                methods = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "QUERY")
                request = replace(request, method=random.choice(methods))
    written = written_as(request)
    return _changed_bytes(written, random) if random.random() < 0.2 else written


def written_as(request: Request, host: bytes = b"127.0.0.1") -> bytes:
    """Return the bytes of a request."""
    body = b""
    if request.body is not None:
        body = json.dumps(request.body).encode("utf-8", "surrogatepass")
    head = f"{request.method} {request.path} HTTP/1.1\r\n".encode("latin-1", "replace")
    lines = [b"Host: " + host, b"Content-Type: " + request.content_type.encode()]
    lines.append(b"Content-Length: %d" % len(body))
    lines += [name + b": " + value for name, value in request.headers]
    return head + b"\r\n".join(lines) + b"\r\n\r\n" + body


def _changed(value: Any, random: Random, *, may_grow: bool) -> Any:
    """Change one part of a value; repeat a list that the part is in only if it `may_grow`, once.

    Repeated lists within repeated lists would be a text of terabytes, and depth added to depth is
    more than `json` can write.
    """
    if random.random() < 0.2 or not isinstance(value, list | dict) or not value:
        return _strange(value, random, may_grow=may_grow)
    if isinstance(value, list):
        place = random.randrange(len(value))
        count = random.choice((1, 1, 1, 40)) if may_grow else 1
        part = _changed(value[place], random, may_grow=may_grow and count == 1)
        return [*value[:place], part, *value[place + 1 :]] * count
    name = random.choice(list(value))
    if random.random() < 0.1:
        return {**value, random.choice(("", "\ud800", "x" * 300)): value[name]}
    return {**value, name: _changed(value[name], random, may_grow=may_grow)}


def _strange(value: Any, random: Random, *, may_grow: bool) -> Any:
    match random.randrange(4):
        case 0 if isinstance(value, str):
            place = random.randint(0, len(value))
            return value[:place] + random.choice('"{}[]\\\x00\ud800;=,') + value[place:]
        case 1:
            nested: Any = value
            for _ in range(random.choice((3, 80, 700) if may_grow else (3, 80))):
                nested = [nested]
            return nested
        case _:
            return random.choice(_STRANGE)


def _changed_path(path: str, random: Random) -> str:
    parts = path.split("/")
    place = random.randrange(len(parts))
    parts[place] = random.choice(
        ("", "..", "%2F", "%00", "%ED%A0%80", "%7B%7D", "9" * 400, "-1", "a?b=c")
    )
    return (
        "/".join(parts)
        if random.random() < 0.8
        else path + random.choice(("?", "?a=%FF", "/", "#"))
    )


def _changed_bytes(data: bytes, random: Random) -> bytes:
    place = random.randint(0, len(data))
    match random.randrange(3):
        case 0:
            return data[:place]
        case 1:
            return data[:place] + random.choice(_BYTES) + data[place:]
        case _:
            return data[:place] + data[place + random.randint(1, 9) :]
