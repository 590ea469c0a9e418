"""Whatever others write into a worker's topics, it reads on, and what it shows is still JSON."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connect.definitions import secrets
from connect.definitions.validation import kind_of
from connect.group.protocol import ProtocolError, decode_assignment, decode_metadata
from connect.herder.herder import Herder
from connect.herder.names import TaskId
from connect.herder.offsets import OffsetState
from connect.plugins.scan import find_plugins

PLUGINS = find_plugins()
NAMES = st.sampled_from(
    [
        *("connector-c", "connector-d", "task-c-0", "task-c-1", "task-c--1", "task-c-\u00b2"),
        *("task-c-" + "9" * 5000, "task-x", "commit-c", "commit-d", "target-state-c"),
        *("tasks-fencing-c", "restart-connector-c", "logger-cluster-x", "session-key", "x", ""),
        *("status-connector-c", "status-task-c-0", "status-task-c-" + "9" * 5000),
        *("status-topic-t:connector-c", "status-topic-t", "status-"),
    ]
)
WORDS = st.sampled_from(
    [
        *("properties", "connector.class", "FileStreamSource", "tasks", "state", "state.v2"),
        *("STARTED", "RUNNING", "worker_id", "generation", "trace", "version", "restarts", "note"),
        *("topic", "task", "discoverTimestamp", "task-count", "key", "algorithm", "level"),
        *("creation-timestamp", "connector", "name", "tasks.max", "transforms"),
    ]
)
ODD = st.sampled_from(
    [1e999, -1e999, 1 << 70, -1, 0, 1, 2, 1_000_000_000, "\ud800", "1", "a" * 300, "${env:X}", None]
)
FORMS = st.recursive(
    ODD | WORDS | st.booleans() | st.floats(allow_nan=True),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=12,
)
VALUES = st.none() | FORMS.map(lambda form: json.dumps(form).encode()) | st.binary(max_size=9)
RECORDS = st.lists(st.tuples(NAMES, VALUES), max_size=8)


def record(key: str, form: Any) -> tuple[str, bytes]:
    return key, json.dumps(form).encode()


KEY = {"key": "YQ==", "algorithm": "x"}
STATUS = {"state": "RUNNING", "worker_id": "w", "generation": 1}
CONFIG = {"properties": {"connector.class": "FileStreamSource", "name": "c"}}


@given(RECORDS, RECORDS)
@example([], [record("status-connector-c", {**STATUS, "generation": 1e999})])
@example([], [record("status-connector-c", {**STATUS, "trace": {"a": 1}, "version": [1]})])
@example([], [record("status-topic-t:connector-c", {"topic": {"task": 1e999}})])
@example([record("connector-c", {"properties": {"connector.class": ["x"]}})], [])
@example([record("connector-c", {"properties": {"connector.class": 5, "x": {"y": 1}}})], [])
@example([record("connector-c", CONFIG), record("commit-c", {"tasks": 1_000_000_000})], [])
@example([record("connector-c", CONFIG), record("commit-c", {"tasks": -1})], [])
@example([record("connector-c", CONFIG), record("tasks-fencing-c", {"task-count": 1 << 70})], [])
@example(
    [record("session-key", {"key": "YQ==", "algorithm": "x", "creation-timestamp": 1e999})], []
)
@example([("task-c-" + "9" * 5000, b"{}"), ("task-c-\u00b2", b"{}")], [])
def test_no_record_stops_a_worker(
    config: list[tuple[str, bytes | None]], status: list[tuple[str, bytes | None]]
) -> None:
    herder = Herder("here:1", is_exactly_once=lambda told: kind_of(PLUGINS, told) == "source")
    for key, value in config:
        herder.replay_config(key, value)
    for key, value in status:
        herder.replay_status(key, value)
    for _ in range(3):
        herder.step(1)
    for name in herder.config.connectors():
        shown = secrets.shown(PLUGINS, herder.config.connector_configs[name])
        assert all(isinstance(each, str | None) for each in shown.values())
        assert herder.config.task_count(name) <= 100_000
        json.dumps(herder.config.task_configs(name))
    for each in (*herder.statuses.connectors.values(), *herder.statuses.tasks.values()):
        assert isinstance(each.trace, str | None)
        assert isinstance(each.version, str | None)
        json.dumps(each.body())


@given(st.lists(st.tuples(VALUES, VALUES), max_size=4))
@example([(b'[{"a":1},{"b":"\\ud800"}]', b"{}"), (b'["c",{"x":1e999}]', b'{"y":1e999}')])
def test_no_record_of_offsets_stops_a_worker(
    found: list[tuple[bytes | None, bytes | None]],
) -> None:
    state = OffsetState()
    for key, value in found:
        state.replay(key, value)
    for _, offset in state.of_connector("c"):
        assert isinstance(offset, dict)
    state.records()


@given(st.binary(max_size=60))
def test_no_words_of_a_member_stop_a_worker(said: bytes) -> None:
    for decode in (decode_metadata, decode_assignment):
        try:
            decode(said)
        except ProtocolError:
            continue


@pytest.mark.parametrize("text", ["c-1", "c-0", "a-b-2"])
def test_names_of_tasks_are_read(text: str) -> None:
    assert str(TaskId.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["c", "c-", "c--1", "c-\u00b2", "c-" + "9" * 5000, "c-99999999999"]
)
def test_names_that_are_none_are_none(text: str) -> None:
    parsed = TaskId.parse(text)
    assert parsed is None or parsed.task < 1 << 31
