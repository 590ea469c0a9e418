"""Registry, REST proxy, Connect and its connectors on a broker with TLS, passwords and rules."""

import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.testing import LocalStack
from millstream.testing.security import USER
from tests.lib.local_console import LocalConsole
from tests.lib.pipeline_processes import call
from tests.lib.rest_calls import RestCalls

pytestmark = pytest.mark.interop

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    with LocalStack(
        security="sasl_ssl", authorizer_class_name=AUTHORIZER, super_users=f"User:{USER}"
    ) as running:
        yield running


def test_the_registry_writes_its_topic(stack: LocalStack) -> None:
    body = {"schema": '"string"'}
    assert call("POST", f"{stack.schema_registry_url}/subjects/s/versions", body).status == 200


def test_connectors_read_what_the_proxy_writes(stack: LocalStack) -> None:
    worker = stack.programs["connect"]
    file = worker.folder / "sunk.txt"
    config = {"connector.class": "FileStreamSink", "topics": "lines", "file": str(file)}
    config["value.converter"] = "org.apache.kafka.connect.storage.StringConverter"
    answer = call("POST", f"{stack.connect_url}/connectors", {"name": "sink", "config": config})
    assert answer.status == 201, answer
    headers = {"Content-Type": "application/vnd.kafka.json.v2+json"}
    records = {"records": [{"value": "one"}, {"value": "two"}]}
    sent = call("POST", f"{stack.rest_proxy_url}/topics/lines", records, headers)
    assert [each["offset"] for each in sent.body["offsets"]] == [0, 1]
    deadline = time.monotonic() + 30
    while not file.exists() or len(file.read_text().splitlines()) < 2:
        assert time.monotonic() < deadline, stack.logs()
        time.sleep(0.05)
    assert file.read_text().splitlines() == ['"one"', '"two"']


def test_the_console_shows_a_secured_cluster_to_its_users_only(
    stack: LocalStack, tmp_path: Path
) -> None:
    users = tmp_path / "users.properties"
    users.write_text("ann=secret\n")
    http = tmp_path / "http.properties"
    http.write_text(f"authentication.method=BASIC\nauthentication.users.file={users}\n")
    options = ("--command-config", stack.client_file(), "--http-config", str(http))
    with LocalConsole(stack.bootstrap_servers, *options) as console:
        calls = RestCalls(console.url)
        assert calls.get("/health/live").status == 200
        assert [calls.get(path).status for path in ("/", "/api/topics")] == [401, 401]
        ann = {"Authorization": "Basic " + b64encode(b"ann:secret").decode()}
        found = calls.get("/api/topics", **ann)
        assert found.status == 200, found.body
        assert "lines" in [each["name"] for each in found.body["topics"]]
        rows = calls.get("/api/topics/lines/records", **ann).body["rows"]
        assert {row["value"]["text"] for row in rows} == {'"one"', '"two"'}


def test_a_connector_may_be_somebody_else(stack: LocalStack) -> None:
    config = {
        "connector.class": "FileStreamSink",
        "topics": "lines",
        "file": str(stack.programs["connect"].folder / "never.txt"),
        "consumer.override.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="admin" password="wrong-secret";'
        ),
    }
    name = "stranger"
    answer = call("POST", f"{stack.connect_url}/connectors", {"name": name, "config": config})
    assert answer.status == 201
    deadline = time.monotonic() + 30
    while "uthentication" not in stack.programs["connect"].log_tail():
        assert time.monotonic() < deadline, stack.logs()
        time.sleep(0.1)
    for path in ("", "/config", "/status", "/tasks"):
        shown = call("GET", f"{stack.connect_url}/connectors/{name}{path}")
        assert "wrong-secret" not in str(shown.body)
    assert "wrong-secret" not in stack.programs["connect"].log_tail()
