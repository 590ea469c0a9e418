"""Schemas whose text stays while what they refer to changes."""

import json

import pytest

from schemas.registry.judge import Judge
from schemas.registry.questions import Compare, Parse

PROTO = 'syntax = "proto3";\npackage shop;\n'
READING = PROTO + 'import "home.proto";\nmessage Reading { .shop.Home home = 1; }\n'
HOME_JSON = {"type": "object", "properties": {"home": {"$ref": "home.json"}}}


def home(kind: str, of: str, more: str = "") -> str:
    match kind:
        case "PROTOBUF":
            return f"{PROTO}message Home {{ {of} id = 1; {more} }}\n"
        case "JSON":
            return json.dumps({"type": "object", "properties": {"id": {"type": of}}})
        case _:
            fields = [{"name": "id", "type": of}]
            record = {"type": "record", "name": "Home", "namespace": "shop", "fields": fields}
            return json.dumps(record)


def reading(kind: str) -> tuple[str, str]:
    """Return the name that a reading has for a home, and its text."""
    match kind:
        case "PROTOBUF":
            return "home.proto", READING
        case "JSON":
            return "home.json", json.dumps(HOME_JSON)
        case _:
            fields = [{"name": "home", "type": "shop.Home"}]
            return "shop.Home", json.dumps({"type": "record", "name": "Reading", "fields": fields})


@pytest.mark.parametrize("level", ["BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE"])
@pytest.mark.parametrize(
    ("kind", "before", "after", "is_compatible"),
    [
        ("PROTOBUF", "string", "int32", False),
        ("JSON", "string", "integer", False),
        ("AVRO", "string", "int", False),
        ("PROTOBUF", "int32", "int64", True),
        ("AVRO", "string", "string", True),
        ("JSON", "string", "string", True),
        ("PROTOBUF", "string", "string", True),
    ],
)
def test_a_change_behind_a_reference_is_judged(
    level: str, kind: str, before: str, after: str, is_compatible: bool
) -> None:
    name, text = reading(kind)
    old = Parse(kind, text, ((name, home(kind, before)),))
    new = Parse(kind, text, ((name, home(kind, after)),))
    messages = Judge().answer(Compare(level, "STRICT", new, ((1, old),)))
    assert isinstance(messages, list), messages
    assert (messages == []) == is_compatible, messages


@pytest.mark.parametrize(
    "named",
    [
        "message Home { message Room { string id = 1; } }",
        "message Home { message Floor { message Room { string id = 1; } } }",
        "message Home { enum Room { NONE = 0; } }",
    ],
)
def test_a_nested_type_of_an_imported_file_is_known(named: str) -> None:
    place = "Home.Floor.Room" if "Floor" in named else "Home.Room"
    for spelling in (f".shop.{place}", f"shop.{place}", place):
        text = f'{PROTO}import "home.proto";\nmessage Reading {{ {spelling} room = 1; }}\n'
        answer = Judge().answer(Parse("PROTOBUF", text, (("home.proto", PROTO + named),)))
        assert hasattr(answer, "canonical"), answer
