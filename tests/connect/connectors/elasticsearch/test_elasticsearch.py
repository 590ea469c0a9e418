"""The Elasticsearch sink: what it makes of records, and a real Elasticsearch of what it sends."""

import base64
import datetime
import json
import socket
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from elasticsearch import Elasticsearch as Client
from hypothesis import given
from hypothesis import strategies as st

from connect.connectors.elasticsearch.documents import Documents, mapping_of
from connect.connectors.elasticsearch.settings import CONFIG
from connect.connectors.elasticsearch.sink import ElasticsearchSinkConnector
from connect.connectors.elasticsearch.sink_task import ElasticsearchSinkTask
from connect.transforms.headers import HeaderFromValue
from millstream.connect import (
    ConfigException,
    ConnectException,
    DataException,
    RetriableException,
    Schema,
    Struct,
)
from millstream.connect.data.records import headers_of
from tests.lib.busy_elasticsearch import BusyElasticsearch
from tests.lib.connect_tasks import sink_record, started_sink
from tests.lib.elasticsearch_server import Elasticsearch

ORDER = Schema.struct(
    {
        "id": Schema.int64(),
        "note": Schema.string(),
        "price": Schema.decimal(2),
        "at": Schema.timestamp(),
    }
)
AT = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)


def order(id_: int, note: str = "x") -> Struct:
    return Struct(ORDER, {"id": id_, "note": note, "price": Decimal("1.50"), "at": AT})


def documents(**settings: str) -> Documents:
    told = {name.replace("_", "."): value for name, value in settings.items()}
    return Documents(CONFIG.parse({"connection.url": "http://x", **told}))


def lines(operation: Any) -> list[Any]:
    return [json.loads(line) for line in operation.lines]


def test_a_keyed_record_is_a_document_with_its_offset_as_version() -> None:
    assert lines(documents().operation(sink_record(7, 1, order(1), topic="Orders"))) == [
        {"index": {"_index": "orders", "_id": "1", "version": 7, "version_type": "external"}},
        {"id": 1, "note": "x", "price": 1.5, "at": 1767312000000},
    ]


def test_without_keys_the_place_is_the_id() -> None:
    operation = documents(key_ignore="true").operation(sink_record(7, None, {"a": {1: 2}}))
    assert lines(operation) == [
        {"index": {"_index": "orders", "_id": "orders+0+7"}},
        {"a": [{"key": 1, "value": 2}]},
    ]


def test_tombstones_delete_or_are_ignored_or_fail() -> None:
    tombstone = sink_record(9, "k", None)
    assert lines(documents(behavior_on_null_values="DELETE").operation(tombstone)) == [
        {"delete": {"_index": "orders", "_id": "k", "version": 9, "version_type": "external"}}
    ]
    assert documents(behavior_on_null_values="ignore").operation(tombstone) is None
    with pytest.raises(DataException, match="null value"):
        documents().operation(tombstone)


def test_a_header_may_be_the_version() -> None:
    headers = headers_of([("v", "41")])
    operation = documents(external_version_header="v").operation(
        sink_record(7, 1, order(1), headers=headers)
    )
    assert lines(operation)[0]["index"]["version"] == 41


@pytest.mark.parametrize("value", ["text", [1], 7.0 * 1e308 * 10, {"a": float("nan")}])
def test_what_is_no_document_is_refused(value: Any) -> None:
    record = sink_record(1, 1, {"a": 1})
    object.__setattr__(record, "value", value)
    with pytest.raises(DataException):
        documents().operation(record)


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3) | st.none()))
def test_any_map_is_two_lines(value: dict[str, Any]) -> None:
    operation = documents().operation(sink_record(1, "k", value))
    assert operation is not None
    assert all(b"\n" not in line for line in operation.lines)
    assert lines(operation)[1] == value


def test_a_schema_is_a_mapping() -> None:
    nested = Schema.struct({"tags": Schema.array(Schema.int32()), "day": Schema.date()})
    assert mapping_of(Schema.struct({"inner": nested, "ok": Schema.boolean()})) == {
        "properties": {
            "inner": {"properties": {"tags": {"type": "integer"}, "day": {"type": "date"}}},
            "ok": {"type": "boolean"},
        }
    }


def test_a_field_may_be_the_version_by_way_of_a_header() -> None:
    copy = HeaderFromValue()
    copy.configure({"fields": "id", "headers": "version", "operation": "copy"})
    record = copy.apply(sink_record(7, 1, order(41)))
    header = lines(documents(external_version_header="version").operation(record))[0]
    assert (header["index"]["version"], header["index"]["version_type"]) == (41, "external")


def test_a_server_that_has_too_much_to_do_gets_the_same_again_until_it_has_taken_it() -> None:
    with BusyElasticsearch([429, 503, "item", 429]) as busy:
        task = ElasticsearchSinkTask()
        told = {"connection.url": busy.url, "retry.backoff.ms": "10", "max.retries": "4"}
        side = started_sink(task, {**told, "schema.ignore": "true"})
        records = [sink_record(offset, offset, order(offset)) for offset in range(4)]
        for _ in range(4):
            with pytest.raises(RetriableException, match="request to Elasticsearch failed"):
                task.put(records)
        task.put(records)
        assert sorted(busy.documents) == ["0", "1", "2", "3"]
        # Each time it waits twice as long, and once it was taken it begins anew.
        assert side.timeouts_ms == [10, 20, 40, 80]
        busy.refusals = [503]
        with pytest.raises(RetriableException):
            task.put(records)
        assert side.timeouts_ms[-1] == 10
        task.stop()


def test_a_server_that_is_away_is_waited_for() -> None:
    """A real one is killed beneath a worker in test_real_parts.py."""
    with BusyElasticsearch([]) as server:
        task = ElasticsearchSinkTask()
        told = {"connection.url": server.url, "schema.ignore": "true", "max.retries": "2"}
        side = started_sink(task, {**told, "retry.backoff.ms": "1"})
        task.put([sink_record(0, 1, order(1, "a"))])
        server.stop()
        for _ in range(2):
            with pytest.raises(RetriableException):
                task.put([sink_record(1, 2, order(2, "b"))])
        assert side.timeouts_ms == [1, 2]
        with pytest.raises(ConnectException, match="request to Elasticsearch failed"):
            task.put([sink_record(1, 2, order(2, "b"))])
        server.start()
        task.put([sink_record(1, 2, order(2, "b"))])
        assert sorted(server.documents) == ["1", "2"]
        task.stop()


@pytest.fixture
def client(elasticsearch: Elasticsearch) -> Iterator[Client]:
    with Client(elasticsearch.url) as found:
        for index in list(found.indices.get(index="*", expand_wildcards="all")):
            found.indices.delete(index=index)
        yield found


def task_for(elasticsearch: Elasticsearch, **settings: str) -> tuple[ElasticsearchSinkTask, Any]:
    task = ElasticsearchSinkTask()
    told = {name.replace("_", "."): value for name, value in settings.items()}
    tolerates = told.pop("tolerates", "") == "true"
    base = {"connection.url": elasticsearch.url, "behavior.on.null.values": "delete"}
    side = started_sink(task, {**base, "retry.backoff.ms": "1", **told}, tolerates=tolerates)
    return task, side


def found(client: Client, index: str = "orders") -> dict[str, Any]:
    client.indices.refresh(index=index)
    hits = client.search(index=index, size=1000)["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


@pytest.mark.slow
def test_the_last_of_each_key_is_there_however_often_and_late_they_come(
    elasticsearch: Elasticsearch, client: Client
) -> None:
    task, _ = task_for(elasticsearch, batch_size="2")
    records = [
        sink_record(0, 1, order(1, "a")),
        sink_record(1, 2, order(2, "b")),
        sink_record(2, 1, order(1, "c")),
        sink_record(3, 2, None),
        sink_record(4, 3, order(3, "d")),
    ]
    for batch in (records, records[:2], records[2:]):
        task.put(batch)
    notes = {id_: one["note"] for id_, one in found(client).items()}
    assert notes == {"1": "c", "3": "d"}
    mapping = client.indices.get_mapping(index="orders")["orders"]["mappings"]["properties"]
    assert (mapping["at"]["type"], mapping["price"]["type"]) == ("date", "double")
    task.stop()


@pytest.mark.slow
def test_upsert_changes_only_what_a_record_holds(
    elasticsearch: Elasticsearch, client: Client
) -> None:
    task, _ = task_for(elasticsearch, write_method="upsert")
    task.put([sink_record(0, "k", {"a": 1, "b": 1}), sink_record(1, "k", {"b": 2})])
    assert found(client) == {"k": {"a": 1, "b": 2}}
    task.stop()


@pytest.mark.slow
def test_malformed_documents_fail_are_ignored_or_reported(
    elasticsearch: Elasticsearch, client: Client
) -> None:
    client.indices.create(index="orders", mappings={"properties": {"n": {"type": "integer"}}})
    bad, good = sink_record(0, "bad", {"n": "text"}), sink_record(1, "good", {"n": 1})
    task, _ = task_for(elasticsearch)
    with pytest.raises(ConnectException, match="parsing_exception"):
        task.put([bad, good])
    task.stop()
    for behavior, tolerates in (("ignore", "false"), ("warn", "false"), ("fail", "true")):
        task, side = task_for(
            elasticsearch, behavior_on_malformed_documents=behavior, tolerates=tolerates
        )
        task.put([bad, good, sink_record(2, None, {"n": 1})][: 3 if tolerates == "true" else 2])
        task.stop()
    assert [record.kafka_offset for record, _ in side.reported] == [2, 0]
    assert list(found(client)) == ["good"]


LATER = Schema.struct(
    {
        "id": Schema.int64(),
        "by": Schema.struct(
            {"name": Schema.string(), "at": Schema.timestamp(), "n": Schema.int8()}
        ),
    }
)
BEFORE = Schema.struct({"id": Schema.int64(), "by": Schema.struct({"name": Schema.string()})})


@pytest.mark.slow
def test_a_field_that_comes_later_inside_a_struct_is_mapped_by_its_path(
    elasticsearch: Elasticsearch, client: Client
) -> None:
    task, _ = task_for(elasticsearch)
    inner = BEFORE.field("by").schema
    task.put([sink_record(0, 1, Struct(BEFORE, {"id": 1, "by": Struct(inner, {"name": "a"})}))])
    inner = LATER.field("by").schema
    by = Struct(inner, {"name": "a", "at": AT, "n": 1})
    task.put([sink_record(1, 2, Struct(LATER, {"id": 2, "by": by}))])
    mapped = client.indices.get_mapping(index="orders")["orders"]["mappings"]["properties"]
    assert {name: one["type"] for name, one in mapped["by"]["properties"].items()} == {
        "name": "text",
        "at": "date",
        "n": "byte",
    }
    task.stop()


@pytest.mark.slow
def test_a_name_with_dots_is_a_path_and_what_is_mapped_there_stays(
    elasticsearch: Elasticsearch, client: Client
) -> None:
    inner = {"name": {"type": "keyword"}, "at": {"properties": {"day": {"type": "keyword"}}}}
    client.indices.create(index="orders", mappings={"properties": {"by": {"properties": inner}}})
    schema = Schema.struct(
        {
            "by.name": Schema.string(),
            "by.at.day": Schema.string(),
            "by.n": Schema.int8(),
            "to": Schema.struct({"c.d": Schema.int16()}),
        }
    )
    to = Struct(schema.field("to").schema, {"c.d": 2})
    value = Struct(schema, {"by.name": "a", "by.at.day": "b", "by.n": 1, "to": to})
    task, _ = task_for(elasticsearch)
    task.put([sink_record(0, 1, value)])
    assert found(client)["1"] == {
        "by.name": "a",
        "by.at.day": "b",
        "by.n": 1,
        "to": {"c.d": 2},
    }
    mapped = client.indices.get_mapping(index="orders")["orders"]["mappings"]["properties"]
    assert mapped["by"]["properties"] == inner | {"n": {"type": "byte"}}
    assert mapped["to"]["properties"]["c"]["properties"] == {"d": {"type": "short"}}
    task.stop()


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", ["2000", "1"])
def test_one_bad_record_never_costs_a_good_one(
    elasticsearch: Elasticsearch, client: Client, batch_size: str
) -> None:
    client.indices.create(
        index="orders",
        mappings={"dynamic": "strict", "properties": {"n": {"type": "integer"}}},
    )
    value: dict[str, Any] = {"n": 1}
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    bad = [
        sink_record(1, "", value),
        sink_record(2, "k" * 513, value),
        sink_record(3, "\u00e9" * 257, value),
        sink_record(4, "\ud800", value),
        sink_record(5, "v1", value, headers=headers_of([("v", -1)])),
        sink_record(6, "v2", value, headers=headers_of([("v", 1 << 63)])),
        sink_record(7, "v3", value, headers=headers_of([("v", float("inf"))])),
        sink_record(8, "m", {"n": "no number"}),
        sink_record(9, "s", {"other": 1}),
        sink_record(10, "d", deep),
        sink_record(11, "l", {"n": 1 << 70}),
        sink_record(12, "i", value, topic="_no#index"),
        sink_record(13, "f", Struct(Schema.struct({"x..y": Schema.int8()}), {"x..y": 1})),
        sink_record(14, None, value),
    ]
    good = [
        sink_record(0, "first", value),
        sink_record(20, "k" * 512, value),
        sink_record(21, "last", value, headers=headers_of([("v", 0)])),
    ]
    told = {"external_version_header": "v", "batch_size": batch_size}
    task, side = task_for(elasticsearch, tolerates="true", **told)
    task.put([good[0], *bad, *good[1:]])
    assert sorted(found(client)) == sorted(["first", "k" * 512, "last"])
    reported = sorted(record.kafka_offset for record, _ in side.reported)
    assert reported == [record.kafka_offset for record in bad]
    assert all(str(error) for _, error in side.reported)
    task.stop()


def test_what_was_reported_is_not_reported_again_while_others_are_retried() -> None:
    with BusyElasticsearch(["item", "item"]) as busy:
        task = ElasticsearchSinkTask()
        told = {"connection.url": busy.url, "schema.ignore": "true", "retry.backoff.ms": "1"}
        side = started_sink(task, told, tolerates=True)
        records = [sink_record(0, "", {"n": 1})] + [
            sink_record(offset, offset, {"n": 1}) for offset in range(1, 4)
        ]
        for _ in range(2):
            with pytest.raises(RetriableException):
                task.put(records)
        task.put(records)
        assert [record.kafka_offset for record, _ in side.reported] == [0]
        assert sorted(busy.documents) == ["1", "2", "3"]
        task.stop()


def test_keys_and_schemas_are_ignored_for_the_topics_that_say_so() -> None:
    made = documents(topic_key_ignore="orders,x").operation(sink_record(7, "k", {"a": 1}))
    assert lines(made)[0] == {"index": {"_index": "orders", "_id": "orders+0+7"}}
    made = documents(topic_key_ignore="x").operation(sink_record(7, "k", {"a": 1}))
    assert lines(made)[0]["index"]["_id"] == "k"


def test_a_name_and_a_password_go_with_every_request() -> None:
    with BusyElasticsearch([]) as server:
        task = ElasticsearchSinkTask()
        told = {"connection.url": server.url, "connection.username": "me"}
        started_sink(task, {**told, "connection.password": "secret"})
        task.put([sink_record(0, "k", {"a": 1})])
        task.stop()
        assert set(server.authorizations) == {f"Basic {base64.b64encode(b'me:secret').decode()}"}


def test_requests_are_no_larger_than_they_may_be() -> None:
    with BusyElasticsearch([]) as server:
        task = ElasticsearchSinkTask()
        started_sink(task, {"connection.url": server.url, "bulk.size.bytes": "500"})
        task.put([sink_record(offset, offset, {"a": "x" * 100}) for offset in range(9)])
        task.stop()
        assert len(server.documents) == 9
        assert server.bulks == 5


def test_maps_are_objects_or_lists() -> None:
    record = sink_record(1, "k", {"m": {"x": 1}})
    assert lines(documents().operation(record))[1] == {"m": {"x": 1}}
    with pytest.raises(DataException, match="HoistField"):
        documents(compact_map_entries="false").operation(record)
    of_map = Schema.struct({"m": Schema.map(Schema.string(), Schema.int32())})
    record = sink_record(1, "k", Struct(of_map, {"m": {"x": 1}}))
    made = documents(compact_map_entries="false").operation(record)
    assert lines(made)[1] == {"m": [{"key": "x", "value": 1}]}


def test_records_that_are_no_documents_are_left_out() -> None:
    with BusyElasticsearch([]) as server:
        for drops in ("true", "false"):
            task = ElasticsearchSinkTask()
            started_sink(task, {"connection.url": server.url, "drop.invalid.message": drops})
            records = [sink_record(0, "", {"a": 1}), sink_record(1, "k", {"a": 1})]
            if drops == "true":
                task.put(records)
            else:
                with pytest.raises(DataException):
                    task.put(records)
            task.stop()
        assert sorted(server.documents) == ["k"]


def test_a_topic_may_have_an_index_of_another_name() -> None:
    told = documents(topic_to_external_resource_mapping="orders:of-shops")
    assert told.index("orders") == "of-shops"
    assert told.index("Others") == "others"
    # Topics may be called as no index is.
    assert [told.index(topic) for topic in ("_a", "-a", "..", "A_b")] == ["a", "a", "dotdot", "a_b"]


def test_a_server_that_does_not_answer_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        task = ElasticsearchSinkTask()
        told = {"connection.url": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        started_sink(task, {**told, "read.timeout.ms": "100"})
        with pytest.raises(RetriableException, match="timed out"):
            task.put([sink_record(0, "k", {"a": 1})])
        task.stop()


def test_what_the_original_has_and_this_has_not_is_refused_with_a_sentence() -> None:
    told = {"connection.url": "http://x", "topics": "t"}
    values = ElasticsearchSinkConnector().validate(
        {**told, "data.stream.type": "logs", "proxy.host": "p", "linger.ms": "5"}
    )
    assert {name for name, each in values.items() if each.error_messages} == {
        "data.stream.type",
        "proxy.host",
    }
    with pytest.raises(ConfigException, match="not to data streams"):
        ElasticsearchSinkConnector().start({**told, "data.stream.type": "logs"})
    harmless = {**told, "data.stream.type": "NONE", "external.resource.usage": "INDEX"}
    assert not any(
        each.error_messages for each in ElasticsearchSinkConnector().validate(harmless).values()
    )
