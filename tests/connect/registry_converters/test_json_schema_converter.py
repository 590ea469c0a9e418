"""JsonSchemaConverter: what comes back is what went in, and Confluent's client finds it valid."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

from connect.converters.json_text import PLAIN, read
from connect.registry_converters.json_schema import JsonSchemaConverter
from connect.registry_converters.json_schema_form import connect_of_json, json_schema_of
from connect.registry_converters.registry import unframed
from millstream.connect import DataException, Schema
from tests.connect.registry_converters.test_avro_converter import NOWHERE, InMemory, comparable
from tests.lib.connect_values import schemas_and_values


class JsonInMemory(InMemory):
    def schema_of(self, schema_id: int) -> tuple[str, str]:
        text, _ = super().schema_of(schema_id)
        return text, "JSON"


def converter(**more: str) -> tuple[JsonSchemaConverter, JsonInMemory]:
    made, registry = JsonSchemaConverter(), JsonInMemory()
    made.configure({**NOWHERE, **more}, False)
    made._registry = registry  # type: ignore[assignment]
    return made, registry


@settings(max_examples=60)
@given(schemas_and_values())
def test_what_is_written_is_read_and_is_valid(pair: tuple[Schema, Any]) -> None:
    schema, value = pair
    made, registry = converter()
    try:
        written = made.from_connect_data("t", schema, value)
    except DataException as error:
        if "keys of a map must be strings" not in str(error):
            raise
        return
    if written is None:
        assert value is None
        return
    back = made.to_connect_data("t", written)
    assert comparable(back.value) == comparable(value)
    assert back.schema == schema
    _, body = unframed(written)
    jsonschema.validate(read(body.decode(), PLAIN), read(registry.texts[0], PLAIN))


def test_a_schema_of_somebody_else_is_understood() -> None:
    found = connect_of_json(
        {
            "title": "Order",
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": {"type": "integer"},
                "note": {"type": ["string", "null"]},
                "price": {"$ref": "#/definitions/money"},
                "by": {"type": "object", "additionalProperties": {"type": "boolean"}},
            },
            "definitions": {"money": {"type": "number"}},
        }
    )
    assert found == Schema.struct(
        {
            "by": Schema.map(Schema.string(), Schema.boolean(), optional=True),
            "id": Schema.int64(),
            "note": Schema.string(optional=True),
            "price": Schema.float64(optional=True),
        },
        name="Order",
    )


@pytest.mark.parametrize(
    "document",
    [
        True,
        {},
        {"type": ["string", "integer"]},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "array"},
        {"type": "object", "properties": {"r": {"$ref": "#"}}},
        {
            "type": "object",
            "properties": {"r": {"$ref": "#/definitions/r"}},
            "definitions": {"r": {"type": "array", "items": {"$ref": "#/definitions/r"}}},
        },
        {"$ref": "http://elsewhere/"},
        {"$ref": "#/nowhere"},
    ],
)
def test_schemas_that_cannot_be_understood_are_refused(document: Any) -> None:
    with pytest.raises(DataException):
        connect_of_json(document)


def test_decimals_are_numbers_when_told() -> None:
    money = Schema.decimal(2)
    assert json_schema_of(money, is_decimal_numeric=True)["type"] == "number"
    assert json_schema_of(money, is_decimal_numeric=False)["type"] == "string"
