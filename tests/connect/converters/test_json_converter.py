"""JsonConverter: what it writes, what it reads, what it refuses."""

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.converters.json_converter import JsonConverter
from millstream.connect.data.schema import Schema, SchemaAndValue, Struct
from millstream.connect.errors import ConfigException, DataException
from tests.lib.connect_values import schemas_and_values

PLAIN = {"schemas.enable": "false"}
NOON = datetime.datetime(2026, 11, 23, 12, tzinfo=datetime.UTC)


def converter(**settings: str) -> JsonConverter:
    made = JsonConverter()
    made.configure({name.replace("_", "."): value for name, value in settings.items()}, False)
    return made


def plain() -> JsonConverter:
    return converter(schemas_enable="false")


def written(schema: Schema | None, value: Any, **settings: str) -> str:
    bytes_ = converter(**settings).from_connect_data("t", schema, value)
    assert bytes_ is not None
    return bytes_.decode()


def payload(schema: Schema | None, value: Any, **settings: str) -> str:
    return written(schema, value, schemas_enable="false", **settings)


def read(schema: str, payload_text: str, **settings: str) -> SchemaAndValue:
    text = f'{{"schema":{schema},"payload":{payload_text}}}'
    return converter(**settings).to_connect_data("t", text.encode())


@given(schemas_and_values())
def test_what_is_written_is_read_again(one: tuple[Schema, Any]) -> None:
    schema, value = one
    json_converter = converter(replace_null_with_default="false")

    for _ in range(2):  # the second time, the schema is that of the message before
        bytes_ = json_converter.from_connect_data("t", schema, value)
        assert json_converter.to_connect_data("t", bytes_) == (schema, value)
        json.loads(bytes_ or b"0")


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_garbage_is_refused_or_read_but_never_breaks_the_converter(garbage: bytes) -> None:
    for json_converter in (converter(), plain()):
        try:
            json_converter.to_connect_data("t", garbage)
        except DataException:
            pass


def test_a_value_travels_in_an_envelope_with_its_schema() -> None:
    schema = Schema.struct(
        {
            "id": Schema.int64(),
            "price": Schema.decimal(2),
            "tags": Schema.map(Schema.string(), Schema.array(Schema.int8(optional=True))),
            "counts": Schema.map(Schema.int32(), Schema.float32(), default={}),
        },
        name="shop.Order",
        version=3,
        doc='An "order"',
        optional=True,
    )
    value = Struct(
        schema,
        {"id": 7, "price": Decimal("-1.28"), "tags": {"a": [1, None]}, "counts": {5: 1.1}},
    )

    assert written(schema, value) == (
        '{"schema":{"type":"struct","fields":['
        '{"type":"int64","optional":false,"field":"id"},'
        '{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal",'
        '"version":1,"parameters":{"scale":"2"},"field":"price"},'
        '{"type":"map","keys":{"type":"string","optional":false},'
        '"values":{"type":"array","items":{"type":"int8","optional":true},"optional":false},'
        '"optional":false,"field":"tags"},'
        '{"type":"map","keys":{"type":"int32","optional":false},'
        '"values":{"type":"float","optional":false},"optional":false,"default":[],'
        '"field":"counts"}],'
        '"optional":true,"name":"shop.Order","version":3,"doc":"An \\"order\\""},'
        '"payload":{"id":7,"price":"gA==","tags":{"a":[1,null]},"counts":[[5,1.1]]}}'
    )


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (None, {"b": 1, "a": [True, None, 1.0]}, '{"b":1,"a":[true,null,1.0]}'),
        (None, {1: "a", "b": 2}, '[[1,"a"],["b",2]]'),
        (None, b"\xff", '"/w=="'),
        (None, float("nan"), '"NaN"'),
        (None, 1e21, "1.0E21"),
        (
            Schema.string(),
            "\x0b\x1f\n\x7f\u2028é😀/",
            '"\\u000B\\u001F\\n\x7f\u2028é\\uD83D\\uDE00/"',
        ),
        (Schema.float32(), 0.1, "0.1"),
        (Schema.float32(), 1e39, '"Infinity"'),
        (Schema.date(), NOON.date(), "20780"),
        (Schema.time(), NOON.time(), "43200000"),
        (Schema.timestamp(), NOON, "1795435200000"),
        (Schema.string(optional=True), None, "null"),
        (Schema.int8(default=5), None, "5"),
    ],
    ids=repr,
)
def test_a_value_is_written_as_jackson_writes_it(
    schema: Schema | None, value: Any, text: str
) -> None:
    assert payload(schema, value) == text


def test_decimals_can_be_numbers() -> None:
    schema = Schema.decimal(2)

    assert payload(schema, Decimal("1.20"), decimal_format="numeric") == "1.20"
    assert payload(Schema.decimal(-3), Decimal("1E+3"), decimal_format="NUMERIC") == "1E+3"
    form = written(schema, Decimal("1.20"), decimal_format="NUMERIC")
    assert converter().to_connect_data("t", form.encode()) == (schema, Decimal("1.20"))
    wide, many = Schema.decimal(0), Decimal(1 << 70)
    form = written(wide, many, decimal_format="NUMERIC")
    assert converter().to_connect_data("t", form.encode()) == (wide, many)


def test_a_null_is_its_default_unless_told_otherwise() -> None:
    schema = Schema.struct({"a": Schema.string(optional=True, default="x")})
    value = Struct(schema)

    assert payload(schema, value) == '{"a":"x"}'
    assert payload(schema, value, replace_null_with_default="false") == '{"a":null}'


def test_nothing_at_all_is_nothing() -> None:
    assert converter().from_connect_data("t", None, None) is None
    assert converter().to_connect_data("t", None) == (None, None)
    assert plain().to_connect_data("t", b"") == (None, None)
    assert written(None, "x") == '{"schema":null,"payload":"x"}'


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (Schema.int8(), 128),
        (Schema.int64(), True),
        (Schema.float64(), 1),
        (Schema.string(), b"x"),
        (Schema.string(), None),
        (Schema.string(), "\ud800"),
        (Schema.array(Schema.string()), "x"),
        (Schema.map(Schema.string(), Schema.int8()), {1: 1}),
        (Schema.struct({}), {}),
        (Schema.struct({}), Struct(Schema.struct({"a": Schema.int8()}), {"a": 1})),
        (Schema.decimal(2), Decimal("1.2")),
        (Schema.timestamp(), NOON.replace(tzinfo=None)),
        (None, 2**63),
        (None, NOON),
        (None, Decimal(1)),
        (None, Struct(Schema.struct({}))),
        (None, object()),
    ],
)
def test_what_is_not_of_the_schema_is_refused(schema: Schema | None, value: Any) -> None:
    with pytest.raises(DataException):
        payload(schema, value)


def test_json_without_schemas_is_what_it_says() -> None:
    text = b'{"a":[1,2.5,"x",null,true,{}],"big":9223372036854775807,"z":-0,"e":1E2}'

    assert plain().to_connect_data("t", text) == (
        None,
        {"a": [1, 2.5, "x", None, True, {}], "big": 2**63 - 1, "z": 0, "e": 100.0},
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"007", 7),
        (b'{"a":-01.5,"b":"x 007","c":[00]}', {"a": -1.5, "b": "x 007", "c": [0]}),
        (b"1 trailing", 1),
        (b"\xef\xbb\xbf[]", []),
        ('"é"'.encode("utf-16-le"), "é"),
    ],
)
def test_json_is_read_as_leniently_as_kafka_reads_it(text: bytes, value: Any) -> None:
    assert plain().to_connect_data("t", text).value == value


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"NaN",
        b"-Infinity",
        b"\xff",
        b'"\n"',
        b"18446744073709551616",
        b"1" * 100_000,
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_what_is_no_json_or_more_than_can_be_held_is_refused(text: bytes) -> None:
    with pytest.raises(DataException):
        plain().to_connect_data("t", text)


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        ('{"type":"int8"}', "300"),
        ('{"type":"int32"}', '"7"'),
        ('{"type":"int32"}', "1.5"),
        ('{"type":"int64"}', "1e30"),
        ('{"type":"boolean"}', "1"),
        ('{"type":"string"}', "1"),
        ('{"type":"string"}', "null"),
        ('{"type":"bytes"}', '"*"'),
        ('{"type":"double"}', "[]"),
        ('{"type":"array","items":{"type":"int8"}}', "{}"),
        ('{"type":"map","keys":{"type":"int8"},"values":{"type":"int8"}}', "{}"),
        ('{"type":"map","keys":{"type":"int8"},"values":{"type":"int8"}}', "[[1]]"),
        (
            '{"type":"map","keys":{"type":"array","items":{"type":"int8"}},'
            '"values":{"type":"int8"}}',
            "[[[1],2]]",
        ),
        ('{"type":"struct","fields":[]}', "[]"),
        ('{"type":"int32","name":"org.apache.kafka.connect.data.Time"}', "86400000"),
        ('{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp"}', "1e3"),
        ('{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal"}', '"AQ=="'),
        ("7", "7"),
        ('{"type":7}', "7"),
        ('{"type":"uuid"}', "7"),
        ('{"type":"array"}', "[]"),
        ('{"type":"map","keys":{"type":"string"}}', "{}"),
        ('{"type":"struct","fields":{}}', "{}"),
        ('{"type":"struct","fields":[{"type":"int8"}]}', "{}"),
        (
            '{"type":"struct","fields":[{"type":"int8","field":"a"},{"type":"int8","field":"a"}]}',
            "{}",
        ),
        ('{"type":"int8","parameters":{"a":1}}', "1"),
        ('{"type":"int8","default":"x"}', "1"),
        ('{"type":"int8","version":4294967296}', "1"),
        ('{"type":"array","items":' * 400 + '{"type":"int8"}' + "}" * 400, "[]"),
    ],
)
def test_json_that_is_not_of_its_schema_is_refused(schema: str, form: str) -> None:
    with pytest.raises(DataException):
        read(schema, form)


def test_numbers_that_are_whole_are_whole_however_they_are_written() -> None:
    assert read('{"type":"int32"}', "1e2").value == 100
    assert read('{"type":"int64"}', "-7.0").value == -7
    assert read('{"type":"double"}', "7").value == 7.0
    assert read('{"type":"float"}', '"-Infinity"').value == float("-inf")


def test_only_an_envelope_is_read_where_one_is_expected() -> None:
    for text in (b"{}", b"1", b'{"schema":null}', b'{"schema":null,"payload":1,"more":1}'):
        with pytest.raises(DataException, match="set schemas"):
            converter().to_connect_data("t", text)


def test_a_message_that_begins_like_the_last_is_still_read_to_its_end() -> None:
    json_converter = converter()
    start = b'{"schema":{"type":"int8"},"payload":'
    assert json_converter.to_connect_data("t", start + b"1}").value == 1

    assert json_converter.to_connect_data("t", start + b"2} trailing").value == 2
    assert json_converter.to_connect_data("t", start + b'1,"payload":3}').value == 3
    assert json_converter.to_connect_data("t", start + b"007}").value == 7
    for wrong in (b'1,"more":1}', b"1", b"}", b"300}"):
        with pytest.raises(DataException):
            json_converter.to_connect_data("t", start + wrong)


def test_a_schema_given_in_the_settings_is_that_of_every_message() -> None:
    json_converter = converter(schema_content='{"type":"int8"}')

    assert json_converter.to_connect_data("t", b"5") == (Schema.int8(), 5)
    with pytest.raises(DataException):
        converter(schema_content="{")


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigException, match="one of \\(case insensitive\\): BASE64, NUMERIC"):
        converter(decimal_format="HEX")
    with pytest.raises(ConfigException, match="Expected value to be either true or false"):
        converter(schemas_enable="maybe")


def test_headers_are_converted_too() -> None:
    header_converter = JsonConverter()
    header_converter.configure({"schemas.enable": "false"})

    assert header_converter.from_connect_header("t", "h", None, [1]) == b"[1]"
    assert header_converter.to_connect_header("t", "h", b"[1]") == (None, [1])


def test_no_more_schemas_are_kept_than_the_settings_say() -> None:
    json_converter = converter(schemas_cache_size="2")
    for version in range(5):
        bytes_ = json_converter.from_connect_data("t", Schema.int8(version=version), 1)
        assert json_converter.to_connect_data("t", bytes_).schema == Schema.int8(version=version)
