"""Verdicts on JSON Schemas: the rules of Confluent's registry, written down case by case."""

import json

import pytest

from schemas.registry.judge import Earlier, incompatibilities
from schemas.registry.records import LEVELS
from schemas.registry.refusals import RegistryError
from schemas.registry.schema_types.json_loader import load
from schemas.registry.schema_types.json_rules import differences
from schemas.registry.schema_types.parsed_schema import ParsedSchema
from schemas.registry.schema_types.parsing import parse
from tests.schemas.verdicts import Verdict, read_verdicts

VERDICTS = read_verdicts("json_verdicts.txt")
KINDS = ("string", "null")


def schema(text: str, *named: tuple[str, str]) -> ParsedSchema:
    return parse("JSON", text, named)


def against(old: str, new: str) -> list[str]:
    found = differences(load(json.loads(old), {}), load(json.loads(new), {}))
    return [f"{each.name} {each.path}" for each in found if not each.is_compatible()]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_what_stands_between_two_schemas(verdict: Verdict) -> None:
    assert against(verdict.old, verdict.new) == verdict.backward
    assert against(verdict.new, verdict.old) == verdict.forward


@pytest.mark.parametrize("verdict", VERDICTS)
def test_levels_follow_from_both_directions(verdict: Verdict) -> None:
    old, new = schema(verdict.old), schema(verdict.new)
    expected = {
        "NONE": True,
        "BACKWARD": not verdict.backward,
        "FORWARD": not verdict.forward,
        "FULL": not verdict.backward and not verdict.forward,
    }
    for level in LEVELS:
        messages = incompatibilities(level, "JSON", new, [Earlier(1, "JSON", old)])
        assert (messages == []) == expected[level.removesuffix("_TRANSITIVE")], level


@pytest.mark.parametrize(
    ("old", "new", "is_fit"),
    [
        ("{}", '{"type":"object"}', False),
        ('{"type":"object"}', '{"type":"object","additionalProperties":false}', True),
        ('{"type":"object"}', '{"properties":{"a":{"type":"string"}}}', True),
        (
            '{"properties":{"a":{"type":"string"}},"additionalProperties":false}',
            '{"additionalProperties":false}',
            True,
        ),
        ('{"type":"object"}', '{"properties":{"a":{"type":"null"}},"required":["a"]}', False),
        ('{"properties":{"a":{"maxLength":2}}}', '{"properties":{"a":{"maxLength":1}}}', False),
    ],
)
def test_lenient_policy_lets_properties_come_and_go(old: str, new: str, is_fit: bool) -> None:
    before = [Earlier(1, "JSON", schema(old))]
    assert incompatibilities("BACKWARD", "JSON", schema(new), before)
    messages = incompatibilities("BACKWARD", "JSON", schema(new), before, "LENIENT")
    assert (messages == []) == is_fit


def test_there_are_at_least_a_hundred_cases() -> None:
    assert len({(verdict.old, verdict.new) for verdict in VERDICTS}) >= 100


def test_message_names_the_difference_and_the_place_as_confluents_does() -> None:
    old, new = schema('{"type":"object"}'), schema('{"properties":{"a":{"maxLength":3}}}')
    (message, *_) = incompatibilities("BACKWARD", "JSON", new, [Earlier(1, "JSON", old)])
    assert message == (
        '{errorType:"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", description:"The new schema '
        "has an open content model and has a property or item at path '#/properties/a' which is "
        "missing in the old schema'}"
    )
    (message, *_) = incompatibilities(
        "FORWARD", "JSON", schema('{"type":"integer"}'), [Earlier(1, "JSON", schema("true"))]
    ) or [""]
    assert message == ""


def test_percent_signs_in_names_are_no_places_for_the_sides() -> None:
    old = schema('{"properties":{"100%s":{"type":"string"}},"additionalProperties":false}')
    new = schema('{"additionalProperties":false}')
    (message, *_) = incompatibilities("BACKWARD", "JSON", new, [Earlier(1, "JSON", old)])
    assert "'#/properties/100%s' in the old schema" in message


def test_schema_may_refer_to_others_by_their_names() -> None:
    text = '{"properties":{"a":{"$ref":"money.json"},"b":{"$ref":"money.json#/definitions/b"}}}'
    integers = '{"type":"integer","definitions":{"b":{"type":"string"}}}'
    numbers = integers.replace("integer", "number")
    old, new = schema(text, ("money.json", integers)), schema(text, ("money.json", numbers))
    assert new.cannot_read(old) == []
    (message,) = old.cannot_read(new)
    assert "TYPE_NARROWED" in message
    assert "#/properties/a" in message


def test_recursive_schemas_that_differ_deep_inside_are_told_apart() -> None:
    def tree(leaf: str) -> str:
        left, right = '{"$ref":"#/definitions/right"}', '{"$ref":"#/definitions/left"}'
        return (
            '{"$ref":"#/definitions/left","definitions":{"left":{"properties":{"next":'
            + left
            + '}},"right":{"properties":{"next":'
            + right
            + ',"leaf":{"type":"'
            + leaf
            + '"}}}}}'
        )

    assert against(tree("integer"), tree("number")) == []
    assert against(tree("number"), tree("integer"))


@pytest.mark.parametrize(
    "text",
    [
        '{"$ref":"#/definitions/none"}',
        '{"$ref":"http://example.test/other.json"}',
        '{"$ref":"file:///etc/hostname"}',
        '{"$ref":"other.json"}',
        '{"$ref":"#/a","a":5}',
    ],
)
def test_reference_that_leads_nowhere_is_refused(text: str) -> None:
    with pytest.raises(RegistryError, match="Invalid schema of type JSON") as told:
        schema(text)
    assert told.value.error_code == 42201


def test_reference_to_itself_is_refused_when_it_is_compared() -> None:
    loop = schema('{"$ref":"#"}')
    with pytest.raises(RegistryError, match="leads to itself"):
        loop.cannot_read(schema("true"))


def test_enumeration_of_many_mixed_values_is_checked_in_linear_time() -> None:
    values: list[object] = [number if number % 2 else str(number) for number in range(20_000)]
    draft = "http://json-schema.org/draft-04/schema#"
    schema(json.dumps({"$schema": draft, "enum": values}))
    with pytest.raises(RegistryError, match="non-unique"):
        schema(json.dumps({"$schema": draft, "enum": [1, "a", 1.0]}))
    schema(json.dumps({"$schema": draft, "enum": [1, True, "1", [1], {"a": 1}]}))


def test_pattern_that_looks_ahead_covers_properties_too() -> None:
    pattern = '"patternProperties":{"^(?!x)":{"type":"string"}},"additionalProperties":false'
    assert (
        against(f"{{{pattern}}}", f'{{"properties":{{"a":{{"type":"string"}}}},{pattern}}}') == []
    )
    found = against(f"{{{pattern}}}", f'{{"properties":{{"a":{{"type":"null"}}}},{pattern}}}')
    assert "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a" in found


def test_keyword_that_a_draft_does_not_know_is_no_reason_to_fail() -> None:
    odd = schema('{"type":"array","minContains":"many","$defs":7,"dependentRequired":[]}')
    assert odd.cannot_read(schema('{"type":"array","minContains":1}')) == []
    with pytest.raises(RegistryError, match="is not a string"):
        schema('{"$schema":7}')
