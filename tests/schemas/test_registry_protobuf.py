"""Protobuf schemas: what is valid, the one form they are stored in, verdicts on pairs of them."""

import base64

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from schemas.registry.judge import Earlier, incompatibilities
from schemas.registry.records import LEVELS
from schemas.registry.refusals import RegistryError
from schemas.registry.schema_types.proto_rules import differences
from schemas.registry.schema_types.protobuf import ProtobufSchema
from tests.schemas.verdicts import Verdict, read_verdicts

VERDICTS = read_verdicts("protobuf_verdicts.txt")
MONEY = 'syntax = "proto3"; package shop; message Money { int64 units = 1; }'
EVERYTHING = """
    syntax = "proto2";
    package shop.v1;
    import "google/protobuf/timestamp.proto";
    import public "google/protobuf/duration.proto";
    import "google/protobuf/descriptor.proto";
    import "confluent/meta.proto";
    import "money.proto";
    option java_package = "a.\\"b";
    extend google.protobuf.FieldOptions {
      optional Inner inner = 50001; repeated string tag = 50002; optional Color color = 50003;
    }
    message Inner { optional string a = 1; repeated int32 b = 2; optional Inner in = 3; }
    enum Color { option allow_alias = true; RED = 0; ROT = 0; BLUE = 5 [deprecated = true];
      NEGATIVE = -1; reserved 10 to 12, 100 to max; reserved "X"; }
    // A comment.
    message Order {
      reserved 100, 200 to 210, 1000 to max; reserved "old", "older";
      extensions 500 to 599;
      required string id = 1 [default = "a\\"\\n\\001z", (tag) = "t1", (tag) = "t2", (color) = BLUE,
        (inner) = {a: "q" b: [1, 2] in {a: "w"}}];
      optional int32 snake_case = 3 [json_name = "other", (confluent.field_meta).doc = "hi"];
      optional double d = 4 [default = inf];
      optional bytes by = 5 [default = "\\001\\377abc"];
      map<string, Money> money = 6;
      map<string, google.protobuf.Timestamp> stamps = 16;
      repeated group Part = 7 { optional int32 n = 1; }
      oneof pay { string card = 8; shop.Money cash = 9; group G = 10 { optional int32 q = 1; } }
      message Money { optional int64 u = 1; enum Kind { NONE = 0; } }
      optional Color c = 11 [default = BLUE];
      extend Order { optional int32 ext = 501; }
    }
    service S { option deprecated = true; rpc A (Order) returns (stream Inner);
      rpc B (stream Order) returns (Inner) { option deprecated = false; } }
"""


def schema(text: str, *named: tuple[str, str]) -> ProtobufSchema:
    return ProtobufSchema(text, named)


def file(text: str) -> ProtobufSchema:
    return schema(text if text.startswith(("syntax", "edition")) else f'syntax = "proto3"; {text}')


def serialized(of: type | object) -> str:
    return base64.b64encode(of.DESCRIPTOR.serialized_pb).decode()  # type: ignore[union-attr]


def against(old: str, new: str) -> list[str]:
    found = differences(file(old).files, file(new).files)
    return [f"{each.name} {each.path}" for each in found if not each.is_compatible]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_what_stands_between_two_files(verdict: Verdict) -> None:
    assert against(verdict.old, verdict.new) == verdict.backward
    assert against(verdict.new, verdict.old) == verdict.forward


def test_levels_follow_from_both_directions() -> None:
    for verdict in VERDICTS[::7]:
        old, new = file(verdict.old), file(verdict.new)
        expected = {
            "NONE": True,
            "BACKWARD": not verdict.backward,
            "FORWARD": not verdict.forward,
            "FULL": not verdict.backward and not verdict.forward,
        }
        for level in LEVELS:
            messages = incompatibilities(level, "PROTOBUF", new, [Earlier(1, "PROTOBUF", old)])
            assert (messages == []) == expected[level.removesuffix("_TRANSITIVE")], level


def test_there_are_at_least_a_hundred_cases() -> None:
    assert len({(verdict.old, verdict.new) for verdict in VERDICTS}) >= 100


def test_type_of_another_file_is_compared_where_a_field_uses_it() -> None:
    text = 'syntax = "proto3"; import "m.proto"; message A { shop.Money a = 1; shop.Money b = 2; }'
    old = schema(text, ("m.proto", MONEY))
    more = schema(text, ("m.proto", MONEY.replace("}", "string currency = 2; }")))
    assert more.cannot_read(old) == []
    other = schema(text, ("m.proto", MONEY.replace("int64", "string")))
    kind, named = other.cannot_read(old)
    assert kind.startswith('{errorType:"FIELD_SCALAR_KIND_CHANGED"')
    assert "'#/Money/1'" in kind
    assert "FIELD_NAMED_TYPE_CHANGED" in named
    assert "'#/A/1'" in named


def test_message_is_confluents() -> None:
    old, new = file("message A { int32 a = 1; }"), file("message A { string a = 1; }")
    (message, *_) = incompatibilities("BACKWARD", "PROTOBUF", new, [Earlier(1, "PROTOBUF", old)])
    assert message == (
        '{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"The kind of a SCALAR field at path '
        "'#/A/1' in the new schema does not match its kind in the old schema\"}"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("message A { Foo f = 1; }", '"Foo" is not defined'),
        ('import "x.proto"; message A {}', 'Import "x.proto" was not found'),
        ("message A { int32 a = 1; int32 b = 1; }", "has already been used"),
        ("message A { int32 a = 1; int32 a = 2; }", "already defined"),
        ("message A { int32 a = 0; }", "positive integers"),
        ("message A { int32 a = 19500; }", "reserved"),
        ("enum E { A = 1; }", "must be zero"),
        ("messag A {}", "line 1:20 Expected top-level statement"),
        ("message A { string a = 1; ", "Reached end of input"),
        ('import "../../../etc/hostname"; message A {}', "not found"),
        ('import "/etc/hostname"; message A {}', "not found"),
        ("message A { string a = 1 [(x) = 1]; }", "unknown"),
        ("\ud800", "surrogates not allowed"),
    ],
)
def test_file_that_is_not_valid_is_refused(text: str, reason: str) -> None:
    with pytest.raises(RegistryError) as told:
        file(text)
    assert told.value.error_code == 42201
    assert str(told.value).startswith("Invalid schema of type PROTOBUF, details: ")
    assert reason in str(told.value)
    assert "/tmp" not in str(told.value)


@pytest.mark.parametrize("name", ["../m.proto", "/m.proto", "a//m.proto", "a\x00.proto", "", "."])
def test_name_that_cannot_be_imported_is_refused(name: str) -> None:
    with pytest.raises(RegistryError, match="cannot be imported"):
        schema(MONEY, (name, MONEY))


def test_text_and_descriptor_of_a_file_have_one_form() -> None:
    by_text = schema(EVERYTHING, ("money.proto", MONEY))
    by_descriptor = schema(by_text.formatted("serialized"), ("money.proto", MONEY))
    assert by_descriptor.canonical == by_text.canonical
    assert schema(by_text.canonical, ("money.proto", MONEY)).canonical == by_text.canonical
    assert by_descriptor.cannot_read(by_text) == []
    served = FileDescriptorProto.FromString(base64.b64decode(by_text.formatted("serialized")))
    assert [each.name for each in served.message_type] == ["Inner", "Order"]


def test_form_does_not_depend_on_layout_comments_or_how_names_are_written() -> None:
    one = file("package p; message A { B b = 2; int32 a = 1; } message B { }")
    other = file("package p;\n// B\nmessage A { int32 a = 1; .p.B b = 2; }\nmessage B { }")
    assert one.canonical == other.canonical
    assert one.canonical == (
        'syntax = "proto3";\npackage p;\n\n'
        "message A {\n  int32 a = 1;\n  .p.B b = 2;\n}\nmessage B {}\n"
    )


def test_order_of_messages_stays_because_clients_count_them() -> None:
    one, other = file("message A {} message B {}"), file("message B {} message A {}")
    assert one.canonical != other.canonical


def test_text_has_messages_before_enumerations_and_options_by_name() -> None:
    given = file(
        'option java_package = "p"; option java_outer_classname = "O"; '
        "enum E { A = 0; } message M {}"
    )
    assert given.canonical.index("java_outer_classname") < given.canonical.index("java_package")
    assert given.canonical.index("message M") < given.canonical.index("enum E")


def test_first_constant_of_an_enumeration_stays_the_default() -> None:
    assert file("enum E { B = 0; A = -1; C = 1; }").files[-1].enum_type[0].value[0].name == "B"


def test_files_of_google_can_be_registered_from_what_python_clients_have() -> None:
    for module in (descriptor_pb2,):
        known = schema(serialized(module))
        assert known.files[-1].package == "google.protobuf"
        assert schema(known.canonical).canonical == known.canonical


@pytest.mark.parametrize(
    "name",
    ["google/type/date.proto", "google/type/timeofday.proto", "google/type/money.proto"],
)
def test_common_types_of_google_need_no_reference(name: str) -> None:
    kind = {"date": "Date", "timeofday": "TimeOfDay", "money": "Money"}[name[12:-6]]
    text = f'syntax = "proto3"; import "{name}"; message A {{ google.type.{kind} a = 1; }}'
    known = schema(text)
    assert schema(known.formatted("serialized")).canonical == known.canonical
    assert f'import "{name}";' in known.canonical


def test_descriptor_that_is_not_valid_is_refused() -> None:
    broken = FileDescriptorProto(name="a.proto", syntax="proto3")
    broken.message_type.add(name="A").field.add(
        name="b", number=1, type=11, label=1, type_name=".Missing"
    )
    text = base64.b64encode(broken.SerializeToString()).decode()
    with pytest.raises(RegistryError, match="Missing"):
        schema(text)


def test_format_that_nobody_knows_is_refused() -> None:
    with pytest.raises(RegistryError, match="Unsupported format 'odd'"):
        file("message A {}").formatted("odd")
