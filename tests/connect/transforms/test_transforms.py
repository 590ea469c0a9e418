"""What transformations and predicates make of records, one rule a test."""

import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.java.date_format import DateFormat
from connect.plugins.built_in import CLASSES
from connect.plugins.catalogue import PluginKind, Plugins
from connect.transforms.field_path import FieldPath, steps_of
from millstream.connect import ConfigException, DataException, Schema, SinkRecord, Struct
from millstream.connect.data.records import headers_of
from tests.lib.connect_values import simple, structs

PLUGINS = Plugins(CLASSES)
MAX_MS = 253_402_300_799_999


def made(name: str, **config: str) -> Any:
    transform = PLUGINS.find(name, PluginKind.TRANSFORMATION)()
    transform.configure({key.replace("_", "."): value for key, value in config.items()})
    return transform


def record(value: Any = None, schema: Schema | None = None, **others: Any) -> SinkRecord:
    told = {"topic": "orders", "kafka_partition": 1, "kafka_offset": 5, "timestamp_ms": 0}
    return SinkRecord(**{**told, "value": value, "value_schema": schema, **others})


@pytest.mark.parametrize(
    "name",
    [
        "org.apache.kafka.connect.transforms.Cast$Value",
        "Cast$Value",
        "CastValue",
        "connect.transforms.cast.CastValue",
    ],
)
def test_a_transformation_goes_by_kafkas_name_and_by_ours(name: str) -> None:
    assert PLUGINS.find(name, PluginKind.TRANSFORMATION).__name__ == "CastValue"


def test_kafkas_transformations_and_predicates_are_all_there() -> None:
    found = {
        str(plugin.kafka_class).rpartition(".")[2]  # type: ignore[attr-defined]
        for _, plugin in PLUGINS.all(PluginKind.TRANSFORMATION, PluginKind.PREDICATE)
    }
    of_parts = {
        *("Cast", "ExtractField", "Flatten", "HeaderFrom", "HoistField", "InsertField"),
        *("MaskField", "ReplaceField", "SetSchemaMetadata", "TimestampConverter"),
    }
    alone = {
        *("DropHeaders", "Filter", "InsertHeader", "RegexRouter", "TimestampRouter"),
        *("ValueToKey", "HasHeaderKey", "RecordIsTombstone", "TopicNameMatches"),
    }
    assert found == {f"{name}${part}" for name in of_parts for part in ("Key", "Value")} | alone


def test_cast_keeps_what_it_is_not_told_of_and_the_schemas_name() -> None:
    schema = Schema.struct({"id": Schema.int64(), "n": Schema.string(default="7")}, name="Order")
    cast = made("Cast$Value", spec="n:int8").apply(
        record(Struct(schema, {"id": 1, "n": "12"}), schema)
    )
    assert cast.value_schema == Schema.struct(
        {"id": Schema.int64(), "n": Schema.int8(default=7)}, name="Order"
    )
    assert (cast.value["id"], cast.value["n"]) == (1, 12)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (300, "int8", 44),
        (-1.9, "int32", -1),
        (1e30, "int32", 2**31 - 1),
        (1e30, "int8", -1),
        (float("nan"), "int64", 0),
        (0.5, "boolean", False),
        (" 1.5f ", "float64", 1.5),
        ("TRUE", "boolean", True),
        (b"\x01", "string", "AQ=="),
        (True, "float32", 1.0),
    ],
)
def test_cast_counts_as_java_does(value: Any, kind: str, expected: Any) -> None:
    found = made("Cast$Value", spec=kind).apply(record(value)).value
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "kind"), [("300", "int8"), ("x", "float32"), ([1], "string"), (b"", "int8")]
)
def test_what_cannot_be_cast_is_refused(value: Any, kind: str) -> None:
    with pytest.raises(DataException):
        made("Cast$Value", spec=kind).apply(record(value))


def test_a_nested_field_is_taken_out_by_its_path() -> None:
    value = {"order": {"a.b": {"c": 7}}}
    take = made("ExtractField$Value", field="order.`a.b`.c", field_syntax_version="V2")
    assert take.apply(record(value)).value == 7
    assert take.apply(record({"order": None})).value is None


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", ["a"]),
        ("a.b.c", ["a", "b", "c"]),
        ("a.", ["a", ""]),
        (".a", ["", "a"]),
        ("`a.b`.c", ["a.b", "c"]),
        ("a.`b.c`", ["a", "b.c"]),
        ("`a`b`.c", ["a`b", "c"]),
        (r"`a\`.b`.c", ["a`.b", "c"]),
    ],
)
def test_paths_are_divided_at_dots_that_no_backticks_keep(path: str, steps: list[str]) -> None:
    assert steps_of(path) == steps


@pytest.mark.parametrize("path", ["`a", "a.`b.c", r"`a\`", "`"])
def test_a_lonely_backtick_is_refused(path: str) -> None:
    with pytest.raises(ConfigException, match="Incomplete backtick pair"):
        steps_of(path)


@given(st.text("a.`\\", max_size=12))
def test_every_path_is_divided_or_refused(path: str) -> None:
    try:
        assert FieldPath(path, "V2").steps
    except ConfigException:
        assert "`" in path


@given(st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_path_in_backticks_is_its_steps(steps: list[str]) -> None:
    assert steps_of(".".join(f"`{step}`" for step in steps)) == steps


def test_flattened_fields_are_as_optional_as_what_they_lay_in() -> None:
    inner = Schema.struct({"x": Schema.int32(), "y": Schema.int32(default=3)}, optional=True)
    schema = Schema.struct({"inner": inner, "id": Schema.int64()})
    flat = made("Flatten$Value", delimiter="_").apply(record(Struct(schema, {"id": 1}), schema))
    assert flat.value_schema == Schema.struct(
        {
            "inner_x": Schema.int32(optional=True),
            "inner_y": Schema.int32(optional=True, default=3),
            "id": Schema.int64(),
        }
    )
    assert (flat.value["inner_x"], flat.value["inner_y"], flat.value["id"]) == (None, 3, 1)


@given(structs(simple()))
def test_what_is_hoisted_and_extracted_is_what_it_was(pair: tuple[Schema, Any]) -> None:
    schema, value = pair
    hoisted = made("HoistField$Value", field="all").apply(record(value, schema))
    back = made("ExtractField$Value", field="all").apply(hoisted)
    assert (back.value_schema, back.value) == (schema, value)


@given(structs(simple()))
def test_flattening_twice_changes_nothing_more(pair: tuple[Schema, Any]) -> None:
    schema, value = pair
    outer = Schema.struct({"deep": schema})
    flatten = made("Flatten$Value")
    once = flatten.apply(record(Struct(outer, {"deep": value}), outer))
    assert flatten.apply(once) == once
    assert list(once.value.put_values()) == [one for _, one in value.items()]


def test_a_moved_field_becomes_a_header_with_its_schema() -> None:
    schema = Schema.struct({"id": Schema.int64(), "note": Schema.string()})
    move = made("HeaderFrom$Value", fields="note", headers="n", operation="move")
    moved = move.apply(record(Struct(schema, {"id": 1, "note": "x"}), schema))
    assert moved.headers[-1] == ("n", "x", Schema.string())
    assert moved.value_schema == Schema.struct({"id": Schema.int64()})


def test_the_timestamp_is_inserted_as_one() -> None:
    schema = Schema.struct({"id": Schema.int64()})
    insert = made("InsertField$Value", timestamp_field="at!", offset_field="offset")
    inserted = insert.apply(record(Struct(schema, {"id": 1}), schema))
    assert inserted.value["at"] == datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert inserted.value["offset"] == 5
    assert not inserted.value_schema.field("at").schema.optional


def test_fields_are_left_out_renamed_and_masked() -> None:
    schema = Schema.struct(
        {"id": Schema.int64(), "card": Schema.string(), "price": Schema.decimal(2)}
    )
    given_record = record(
        Struct(schema, {"id": 1, "card": "4111", "price": Decimal("1.50")}), schema
    )
    replaced = made("ReplaceField$Value", exclude="price", renames="id:key").apply(given_record)
    assert [field.name for field in replaced.value_schema.fields] == ["key", "card"]
    masked = made("MaskField$Value", fields="card", replacement="***").apply(given_record)
    assert masked.value["card"] == "***"
    assert masked.value_schema is schema


def test_a_value_makes_the_key() -> None:
    schema = Schema.struct({"id": Schema.int64(), "x": Schema.string()})
    keyed = made("ValueToKey", fields="id").apply(
        record(Struct(schema, {"id": 9, "x": ""}), schema)
    )
    assert keyed.key == Struct(Schema.struct({"id": Schema.int64()}), {"id": 9})


def test_topics_are_named_by_pattern_and_by_day() -> None:
    route = made("RegexRouter", regex="(?<team>[a-z]+)s", replacement="${team}-$1$12")
    assert route.apply(record()).topic == "order-orderorder2"
    routed = made("TimestampRouter", timestamp_format="yyyy.MM").apply(record())
    assert routed.topic == "orders-1970.01"


@given(st.integers(-62_135_596_800_000, MAX_MS))
def test_what_a_format_writes_it_reads(timestamp_ms: int) -> None:
    for pattern in (
        "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
        "yyyyMMddHHmmssSSS",
        "EEE, d MMMM yyyy hh:mm:ss.SSS a zzz",
    ):
        date_format = DateFormat(pattern)
        assert date_format.parse(date_format.format(timestamp_ms)) == timestamp_ms


@pytest.mark.parametrize("pattern", ["bb", "'open", "yyyy-tt"])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"pattern|quote"):
        DateFormat(pattern)


@given(st.text(max_size=20), st.text("yMdHmsSaEzX'- ", max_size=10))
def test_any_text_is_read_or_refused(text: str, pattern: str) -> None:
    try:
        DateFormat(pattern).parse(text)
    except ValueError:
        pass


@pytest.mark.parametrize(
    ("name", "config", "expected"),
    [
        ("RecordIsTombstone", {}, [True, False]),
        ("HasHeaderKey", {"name": "h"}, [False, True]),
        ("TopicNameMatches", {"pattern": "ord.*"}, [True, False]),
    ],
)
def test_predicates(name: str, config: dict[str, str], expected: list[bool]) -> None:
    predicate = PLUGINS.find(name, PluginKind.PREDICATE)()
    predicate.configure(config)
    other = record("v", topic="other", headers=headers_of([("h", 1)]))
    assert [predicate.test(record()), predicate.test(other)] == expected


def test_fields_of_what_has_none_are_refused_whatever_its_default() -> None:
    schema = Schema.int16(default=7)
    for transform in (
        made("Cast$Value", spec="id:int8"),
        made("TimestampConverter$Value", field="id", target_type="Date"),
    ):
        with pytest.raises(DataException):
            transform.apply(record(3, schema))
