"""Mappings that a user has made: the sink adds the fields that they lack, and changes no other."""

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch as Client

from connect.connectors.elasticsearch.documents import mapping_of, missing_in
from connect.connectors.elasticsearch.sink_task import ElasticsearchSinkTask
from millstream.connect import Schema, Struct
from tests.lib.connect_tasks import sink_record, started_sink
from tests.lib.elasticsearch_server import Elasticsearch

INDEX = "mapped-by-a-user"
MOMENT = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
BEFORE = Schema.struct({"n": Schema.int32()})
AFTER = Schema.struct({"n": Schema.int32(), "at": Schema.timestamp()})
FIELDS = {"n": {"type": "integer"}, "at": {"type": "date"}}
WITH_N: Any = {"properties": {"n": {"type": "integer"}}}


@pytest.fixture
def client(elasticsearch: Elasticsearch) -> Iterator[Client]:
    with Client(elasticsearch.url) as made:
        yield made
        made.indices.delete(index=INDEX, ignore_unavailable=True)


def row(inner: Schema) -> Struct:
    part = Struct(inner, {"n": 1, "at": MOMENT} if inner is AFTER else {"n": 1})
    schema = Schema.struct({"lines": Schema.array(inner), "by": inner})
    return Struct(schema, {"lines": [part], "by": part})


@pytest.mark.slow
@pytest.mark.parametrize("first", [BEFORE, AFTER], ids=["added later", "there from the start"])
@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (
            {"properties": {"lines": {"type": "nested", "include_in_parent": True, **WITH_N}}},
            {"lines": {"type": "nested", "include_in_parent": True, "properties": FIELDS}},
        ),
        (
            {"properties": {"lines": {"type": "nested", "dynamic": "strict"}}},
            {"lines": {"type": "nested", "dynamic": "strict", "properties": FIELDS}},
        ),
        ({"properties": {"by": {"type": "object"}}}, {"by": {"properties": FIELDS}}),
        (
            {"properties": {"by": {"type": "object", "enabled": False}}},
            {"by": {"type": "object", "enabled": False}},
        ),
        ({"properties": {"by": {"type": "flattened"}}}, {"by": {"type": "flattened"}}),
        (
            {"subobjects": False, "properties": {"by.n": {"type": "long"}}},
            {"by.n": {"type": "long"}, "by.at": FIELDS["at"], "lines.at": FIELDS["at"]},
        ),
        (
            {"properties": {"by": {"subobjects": False, **WITH_N}}},
            {"by": {"subobjects": False, "properties": FIELDS}},
        ),
    ],
)
def test_fields_are_added_where_they_belong(
    elasticsearch: Elasticsearch, client: Client, own: Any, expected: Any, first: Schema
) -> None:
    client.indices.create(index=INDEX, mappings=own)
    task = ElasticsearchSinkTask()
    started_sink(task, {"connection.url": elasticsearch.url, "key.ignore": "true"})
    task.put([sink_record(0, None, row(first), topic=INDEX)])
    task.put([sink_record(1, None, row(AFTER), topic=INDEX)])
    task.stop()
    mapped = client.indices.get_mapping(index=INDEX)[INDEX]["mappings"]["properties"]
    assert {name: mapped[name] for name in expected} == expected
    client.indices.refresh(index=INDEX)
    assert client.count(index=INDEX)["count"] == 2


def test_fields_that_are_no_objects_are_told_by_names_with_dots() -> None:
    """Servers that do not flatten objects by themselves refuse them there."""
    wanted = mapping_of(row(AFTER).schema)["properties"]
    own = {"subobjects": False, "properties": {"by.n": {"type": "long"}}}
    assert missing_in(own, wanted) == {
        "by.at": {"type": "date"},
        "lines.n": {"type": "integer"},
        "lines.at": {"type": "date"},
    }
    flat = {"type": "object", "subobjects": False}
    inner = {"properties": {"by": flat, "lines": {"type": "keyword"}}}
    assert missing_in(inner, wanted) == {"by": {**flat, "properties": FIELDS}}
