"""Schemas, structs and what is valid for them."""

import datetime
import pickle
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from millstream.connect.data.records import Header, Headers, SinkRecord, SourceRecord
from millstream.connect.data.schema import Schema, Struct, Type
from millstream.connect.errors import DataException, SchemaBuilderException

ORDER = Schema.struct(
    {
        "id": Schema.int64(),
        "note": Schema.string(optional=True),
        "currency": Schema.string(default="EUR"),
    },
    name="shop.Order",
    version=3,
)
NOON = datetime.datetime(2026, 11, 23, 12, tzinfo=datetime.UTC)

VALID: list[tuple[Schema, Any]] = [
    (Schema.int8(), -128),
    (Schema.int64(), 2**63 - 1),
    (Schema.float32(), 1.5),
    (Schema.boolean(), False),
    (Schema.string(), ""),
    (Schema.bytes(), memoryview(b"x")),
    (Schema.array(Schema.int8()), (1, 2)),
    (Schema.map(Schema.string(), Schema.int8(optional=True)), {"a": None}),
    (Schema.decimal(2), Decimal("1.00")),
    (Schema.date(), NOON.date()),
    (Schema.time(), NOON.time()),
    (Schema.timestamp(), NOON),
    (Schema.string(optional=True), None),
]
INVALID: list[tuple[Schema, Any]] = [
    (Schema.int8(), 128),
    (Schema.int32(), True),
    (Schema.int64(), 2**63),
    (Schema.float64(), 1),
    (Schema.boolean(), 0),
    (Schema.string(), b""),
    (Schema.bytes(), ""),
    (Schema.array(Schema.int8()), [None]),
    (Schema.map(Schema.string(), Schema.int8()), {1: 1}),
    (Schema.decimal(2), Decimal("NaN")),
    (Schema.date(), NOON),
    (Schema.time(), NOON.timetz()),
    (Schema.timestamp(), NOON.replace(tzinfo=None)),
    (Schema.timestamp(), 0),
    (Schema.string(), None),
    (Schema(Type.ARRAY), [1]),
]


@pytest.mark.parametrize(("schema", "value"), VALID)
def test_a_value_of_its_schema_is_valid(schema: Schema, value: Any) -> None:
    schema.validate(value)


@pytest.mark.parametrize(("schema", "value"), INVALID)
def test_a_value_of_another_type_is_refused(schema: Schema, value: Any) -> None:
    with pytest.raises(DataException):
        schema.validate(value)


def test_a_refusal_names_the_field_and_what_was_found() -> None:
    with pytest.raises(DataException, match='with type INT64: str for field: "id"'):
        Struct(ORDER, {"id": "7"})
    with pytest.raises(DataException, match='null used for required field: "id"'):
        Struct(ORDER).validate()
    with pytest.raises(DataException, match="total is not a valid field name"):
        Struct(ORDER)["total"]


def test_a_field_nobody_put_has_its_default() -> None:
    order = Struct(ORDER, {"id": 7})

    order.validate()

    assert (order["currency"], order.without_default("currency"), order["note"]) == (
        "EUR",
        None,
        None,
    )
    assert repr(order) == "Struct{id=7}"


def test_schemas_are_equal_when_everything_about_them_is() -> None:
    again = pickle.loads(pickle.dumps(ORDER))

    assert again == ORDER
    assert hash(again) == hash(ORDER)
    assert again.field("currency").schema.default == "EUR"
    for other in (
        replace(ORDER, version=4),
        replace(ORDER, doc="An order."),
        replace(ORDER, parameters={"a": "b"}),
        replace(ORDER, optional=True),
        replace(ORDER, fields=ORDER.fields[:2]),
    ):
        assert other != ORDER


def test_a_struct_of_another_schema_is_not_valid() -> None:
    outer = Schema.struct({"order": ORDER})

    Struct(outer, {"order": Struct(ORDER, {"id": 1})})
    with pytest.raises(DataException, match="Struct schemas do not match"):
        Struct(outer, {"order": Struct(replace(ORDER, version=4), {"id": 1})})


def test_a_schema_cannot_have_a_wrong_default_or_a_field_twice() -> None:
    with pytest.raises(SchemaBuilderException, match="Invalid default value"):
        Schema.int8(default=1000)
    with pytest.raises(SchemaBuilderException, match="field name duplication a"):
        Schema.struct([("a", Schema.int8()), ("a", Schema.int8())])
    with pytest.raises(SchemaBuilderException):
        Schema.struct({"": Schema.int8()})


def test_headers_are_a_list_that_gives_others() -> None:
    headers = Headers().added("a", 1, Schema.int8()).added("b", "x").added("a", 2)

    assert headers.last_with_name("a") == Header("a", 2)
    assert [header.value for header in headers.all_with_name("a")] == [1, 2]
    assert headers.without("a") == (Header("b", "x"),)
    with pytest.raises(DataException):
        headers.added("c", "x", Schema.int8())


def test_a_sink_record_that_is_sent_elsewhere_remembers_where_it_was_read() -> None:
    record = SinkRecord(topic="orders", kafka_partition=2, kafka_offset=9)

    elsewhere = replace(record, topic="late-orders", kafka_partition=None)

    assert (elsewhere.original_topic, elsewhere.original_kafka_partition) == ("orders", 2)
    assert (elsewhere.kafka_offset, elsewhere.original_kafka_offset) == (9, 9)


def test_a_record_takes_headers_as_plain_pairs() -> None:
    record = SourceRecord(topic="orders", headers=[("trace", "1")])  # type: ignore[arg-type]

    assert record.headers == Headers([Header("trace", "1")])
