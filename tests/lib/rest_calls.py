"""Calls to a REST interface."""

import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit

V2 = "application/vnd.kafka.v2+json"
JSON = "application/json"


def records_type(name: str) -> str:
    """Return the media type of records in a format, in version 2."""
    return f"application/vnd.kafka.{name}.v2+json"


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self) -> int:
        """The error code in the body."""
        return int(self.body["error_code"])


class RestCalls:
    """Sends calls to one server, each with a new connection."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.call("GET", path, body, V2 if body is not None else None, **headers)

    def delete(self, path: str, **headers: str) -> Answer:
        return self.call("DELETE", path, None, None, **headers)

    def post(self, path: str, body: Any = None, content_type: str = V2, **headers: str) -> Answer:
        return self.call("POST", path, body, content_type, **headers)

    def call(
        self, method: str, path: str, body: Any, content_type: str | None, **headers: str
    ) -> Answer:
        """Send a call; `path` may be a whole URL. A body other than bytes is sent as JSON."""
        parts = urlsplit(self.url)
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        if content_type is not None:
            told["Content-Type"] = content_type
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        try:
            connection.request(method, path.removeprefix(self.url), data, told)
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        return Answer(response.status, _shown(raw), dict(response.getheaders()))


class Cluster:
    """The calls below `/v3/clusters/{cluster_id}`."""

    def __init__(self, rest: RestCalls) -> None:
        self.rest = rest
        self.cluster_id = rest.get("/v3/clusters").body["data"][0]["cluster_id"]
        self.path = f"/v3/clusters/{self.cluster_id}"
        self.url = rest.url + self.path

    def get(self, path: str = "") -> Answer:
        return self.rest.get(self.path + path)

    def send(self, method: str, path: str, body: object = None) -> Answer:
        return self.rest.call(method, self.path + path, body, None if body is None else JSON)

    def topic(self, name: str, partitions: int = 2) -> str:
        answer = self.send("POST", "/topics", {"topic_name": name, "partitions_count": partitions})
        assert answer.status == 201, answer
        return f"/topics/{name}"


def _shown(raw: bytes) -> Any:
    if not raw:
        return None
    lines = raw.split(b"\r\n")
    if len(lines) > 1 and raw.endswith(b"\r\n"):
        return [json.loads(line) for line in lines if line]
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode()
