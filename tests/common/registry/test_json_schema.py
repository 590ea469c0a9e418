"""JSON Schemas of strangers: each value is judged in bounded time, or refused in words."""

import json
from typing import Any

import pytest

from common.registry.json_schema import JsonSchema, JsonSchemaError, TooManyStepsError, json_key

MIXED = [each for number in range(12_000) for each in ({"a": number}, [number])]
TWICE = {
    "$ref": "#/definitions/d0",
    "definitions": {
        **{
            f"d{n}": {"anyOf": [{"$ref": f"#/definitions/d{n + 1}"}] * 2, "oneOf": [True]}
            for n in range(40)
        },
        "d40": {"type": "null"},
    },
}


def why_wrong(schema: Any, value: Any) -> str | None:
    return JsonSchema(json.dumps(schema)).why_wrong(value)


@pytest.mark.parametrize(
    ("schema", "value", "is_right"),
    [
        ({"type": "string", "pattern": "^(a+)+$"}, "a" * 40 + "!", False),
        ({"type": "string", "pattern": "^(a+)+$"}, "a" * 40, True),
        ({"patternProperties": {"^(a+)+$": {"type": "null"}}}, {"a" * 40 + "!": 1}, True),
        (
            {"patternProperties": {"^(a+)+$": True}, "additionalProperties": False},
            {"a" * 40 + "!": 1},
            False,
        ),
        ({"type": "array", "uniqueItems": True}, MIXED, True),
        ({"type": "array", "uniqueItems": True}, [*MIXED, {"a": 7.0}], False),
        ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}, None, 0, False], True),
        ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}], False),
        ({"uniqueItems": False}, [1, 1], True),
        ({"pattern": "^\\u00e9\\d$"}, "é7", True),
        ({"pattern": "^\\\\u0041$"}, "\\u0041", True),
        ({"additionalProperties": {"type": "string"}}, {"a": "b"}, True),
        ({"additionalProperties": {"type": "string"}}, {"a": 1}, False),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, True),
        ({"enum": MIXED}, [11_999], True),
    ],
)
def test_a_value_is_judged(schema: Any, value: Any, is_right: bool) -> None:
    assert (why_wrong(schema, value) is None) == is_right


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        ({"pattern": "(?=a)"}, "a", "the pattern"),
        ({"pattern": r"(a)\1"}, "aa", "the pattern"),
        (TWICE, 1, "takes too long"),
        ({"allOf": [{"type": "string"}] * 20_000}, "x" * 9 + "a", None),
        ({"allOf": [{"type": "null"}] * 20_000}, "x" * 100_000, "takes too long"),
        ({"$ref": "#"}, 1, "nested too deeply"),
        ({"$ref": "http://example.test/other.json"}, 1, "refers to what is not there"),
        ({"multipleOf": 0}, 1, "no JSON Schema"),
        ({"type": "nothing"}, 1, "no JSON Schema"),
    ],
)
def test_what_would_take_for_ever_is_refused_in_words(
    schema: Any, value: Any, why: str | None
) -> None:
    if why is None:
        assert why_wrong(schema, value) is None
        return
    with pytest.raises(JsonSchemaError, match=why):
        why_wrong(schema, value)


def test_a_quick_look_ends_after_its_steps() -> None:
    schema = JsonSchema('{"items": {"type": "integer"}}')
    assert schema.why_wrong([1] * 100, 1000) is None
    with pytest.raises(TooManyStepsError):
        schema.why_wrong([1] * 10_000, 1000)
    assert schema.why_wrong([1] * 10_000) is None


def test_equal_values_have_one_key() -> None:
    assert json_key({"a": [1, 2.0]}) == json_key({"a": [1.0, 2]})
    assert len({json_key(each) for each in (1, True, "1", None, [1], {"1": 1})}) == 6
