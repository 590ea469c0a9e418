"""Verdicts on Avro schemas: a list made from the specification's rules of schema resolution."""

import pytest

from schemas.registry.judge import Earlier, incompatibilities
from schemas.registry.records import LEVELS
from schemas.registry.schema_types.parsed_schema import ParsedSchema
from schemas.registry.schema_types.parsing import parse


def record(*fields: str, name: str = "R") -> str:
    return f'{{"type":"record","name":"{name}","fields":[{",".join(fields)}]}}'


def field(name: str, kind: str = '"int"', more: str = "") -> str:
    return f'{{"name":"{name}","type":{kind}{more}}}'


def enum(*symbols: str, name: str = "E", more: str = "") -> str:
    listed = ",".join(f'"{symbol}"' for symbol in symbols)
    return f'{{"type":"enum","name":"{name}","symbols":[{listed}]{more}}}'


def fixed(size: int, name: str = "F") -> str:
    return f'{{"type":"fixed","name":"{name}","size":{size}}}'


def array(items: str) -> str:
    return f'{{"type":"array","items":{items}}}'


def map_of(values: str) -> str:
    return f'{{"type":"map","values":{values}}}'


def union(*branches: str) -> str:
    return f"[{','.join(branches)}]"


NULL, BOOLEAN, INT, LONG = '"null"', '"boolean"', '"int"', '"long"'
FLOAT, DOUBLE, BYTES, STRING = '"float"', '"double"', '"bytes"', '"string"'
DECIMAL = '{"type":"bytes","logicalType":"decimal","precision":8,"scale":2}'
DATE = '{"type":"int","logicalType":"date"}'
DEFAULT_0, DEFAULT_NULL = ',"default":0', ',"default":null'
LIST = record(field("v"), field("next", union(NULL, '"List"'), DEFAULT_NULL), name="List")
LONG_LIST = record(
    field("v", LONG), field("next", union(NULL, '"List"'), DEFAULT_NULL), name="List"
)

# Reader, writer, and whether the reader can read all that the writer may write.
VERDICTS = [
    # Promotions of plain types.
    (INT, INT, True),
    (LONG, INT, True),
    (FLOAT, INT, True),
    (DOUBLE, INT, True),
    (INT, LONG, False),
    (FLOAT, LONG, True),
    (DOUBLE, LONG, True),
    (LONG, FLOAT, False),
    (DOUBLE, FLOAT, True),
    (FLOAT, DOUBLE, False),
    (STRING, BYTES, True),
    (BYTES, STRING, True),
    (STRING, INT, False),
    (INT, STRING, False),
    (BOOLEAN, INT, False),
    (NULL, INT, False),
    (BYTES, INT, False),
    # Logical types are their plain types.
    (BYTES, DECIMAL, True),
    (DECIMAL, BYTES, True),
    (DATE, INT, True),
    (LONG, DATE, True),
    (DATE, STRING, False),
    # Records.
    (record(field("a")), record(field("a")), True),
    (record(field("a")), record(field("a"), field("b")), True),
    (record(field("a"), field("b")), record(field("a")), False),
    (record(field("a"), field("b", INT, DEFAULT_0)), record(field("a")), True),
    (record(), record(field("a")), True),
    (record(field("a")), record(), False),
    (record(field("a", INT, DEFAULT_0)), record(), True),
    (record(field("a", LONG)), record(field("a", INT)), True),
    (record(field("a", INT)), record(field("a", LONG)), False),
    (record(field("a"), name="S"), record(field("a"), name="R"), False),
    (record(field("b", INT, ',"aliases":["a"]')), record(field("a")), True),
    (record(field("b")), record(field("a")), False),
    (record(field("b"), field("a")), record(field("a"), field("b")), True),
    (record(field("a", union(NULL, INT), DEFAULT_NULL)), record(), True),
    (record(field("a", union(NULL, INT))), record(), False),
    (record(field("r", record(field("x"), name="I"))), record(field("r", INT)), False),
    (
        record(field("r", record(field("x", LONG), name="I"))),
        record(field("r", record(field("x", INT), name="I"))),
        True,
    ),
    (LIST, LIST, True),
    (LONG_LIST, LIST, True),
    (LIST, LONG_LIST, False),
    # Enumerations.
    (enum("A", "B"), enum("A"), True),
    (enum("A"), enum("A", "B"), False),
    (enum("A", more=',"default":"A"'), enum("A", "B"), True),
    (enum("B", "A"), enum("A", "B"), True),
    (enum("A", name="G"), enum("A", name="E"), False),
    (STRING, enum("A"), False),
    (enum("A"), STRING, False),
    # Fixed.
    (fixed(4), fixed(4), True),
    (fixed(4), fixed(8), False),
    (fixed(4, name="G"), fixed(4), False),
    (BYTES, fixed(4), False),
    # Arrays and maps.
    (array(LONG), array(INT), True),
    (array(INT), array(LONG), False),
    (array(INT), map_of(INT), False),
    (map_of(DOUBLE), map_of(FLOAT), True),
    (map_of(FLOAT), map_of(DOUBLE), False),
    (map_of(STRING), INT, False),
    (array(union(NULL, INT)), array(INT), True),
    # Unions.
    (union(NULL, INT), INT, True),
    (INT, union(NULL, INT), False),
    (union(NULL, INT), union(NULL, INT), True),
    (union(INT, NULL), union(NULL, INT), True),
    (union(NULL, LONG), union(NULL, INT), True),
    (union(NULL, INT), union(NULL, LONG), False),
    (union(NULL, INT), union(NULL, INT, STRING), False),
    (union(NULL, INT, STRING), union(NULL, INT), True),
    (LONG, union(INT, LONG), True),
    (STRING, union(BYTES, STRING), True),
    (union(NULL, STRING), INT, False),
    (union(NULL, record(field("a"))), record(field("a")), True),
]


def avro(text: str) -> ParsedSchema:
    return parse("AVRO", text, ())


@pytest.mark.parametrize(("reader", "writer", "can_read"), VERDICTS)
def test_reader_can_read_what_the_writer_wrote(reader: str, writer: str, can_read: bool) -> None:
    assert (avro(reader).cannot_read(avro(writer)) == []) == can_read


@pytest.mark.parametrize(("reader", "writer", "can_read"), VERDICTS)
def test_levels_follow_from_who_can_read_whom(reader: str, writer: str, can_read: bool) -> None:
    new, old = avro(reader), avro(writer)
    reads_back = old.cannot_read(new) == []
    expected = {
        "NONE": True,
        "BACKWARD": can_read,
        "FORWARD": reads_back,
        "FULL": can_read and reads_back,
    }
    for level in LEVELS:
        messages = incompatibilities(level, "AVRO", new, [Earlier(1, "AVRO", old)])
        assert (messages == []) == expected[level.removesuffix("_TRANSITIVE")], level


def test_there_are_at_least_sixty_verdicts() -> None:
    assert len(set(VERDICTS)) >= 60


OLDEST = record(field("a"), field("b"))
OLD = record(field("a"), field("b", INT, DEFAULT_0))
NEW = record(field("a"))


@pytest.mark.parametrize(
    ("level", "is_compatible"),
    [
        ("NONE", True),
        ("BACKWARD", True),
        ("BACKWARD_TRANSITIVE", True),
        ("FORWARD", True),
        ("FORWARD_TRANSITIVE", False),
        ("FULL", True),
        ("FULL_TRANSITIVE", False),
    ],
)
def test_transitive_levels_look_at_all_earlier_versions(level: str, is_compatible: bool) -> None:
    earlier = [Earlier(1, "AVRO", avro(OLDEST)), Earlier(2, "AVRO", avro(OLD))]
    messages = incompatibilities(level, "AVRO", avro(NEW), earlier)
    assert (messages == []) == is_compatible
    if messages:
        assert "{oldSchemaVersion: 1}" in messages


def test_message_names_the_difference_the_place_and_the_sides() -> None:
    old, new = avro(record(field("a"))), avro(record(field("a"), field("b")))
    messages = incompatibilities("BACKWARD", "AVRO", new, [Earlier(3, "AVRO", old)])
    assert messages == [
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path "
        "'/fields/1' in the new schema has no default value and is missing in the old schema', "
        "additionalInfo:'b'}",
        "{oldSchemaVersion: 3}",
        f"{{oldSchema: '{old.canonical}'}}",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]
    (message, *_) = incompatibilities("FORWARD", "AVRO", old, [Earlier(3, "AVRO", new)])
    assert "in the old schema has no default value and is missing in the new schema" in message


def test_schemas_of_different_types_never_follow_each_other() -> None:
    old = parse("JSON", '{"type":"object"}', ())
    messages = incompatibilities("FULL", "AVRO", avro(INT), [Earlier(1, "JSON", old)])
    assert messages[0] == "Incompatible because of different schema type"
