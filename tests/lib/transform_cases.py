"""Cases for transformations, and Millstream's results in the format of RunTransforms.java."""

import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from connect.converters.json_converter import JsonConverter
from connect.plugins.built_in import CLASSES
from connect.plugins.catalogue import PluginKind, Plugins
from millstream.connect import Schema, SinkRecord
from millstream.connect.data.records import CREATE_TIME, headers_of
from millstream.connect.errors import KafkaException
from tests.lib.connect_random import Pair, plain, simple, sorted_json, struct, text

_PLUGINS = Plugins(CLASSES)
PACKAGE = "org.apache.kafka.connect.transforms"
Case = dict[str, Any]

_OPTIONAL = {"optional": True}


def _field(field: str, kind: str, /, **traits: Any) -> dict[str, Any]:
    return {"field": field, "type": kind, "optional": False, **traits}


_TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"
_DATE = "org.apache.kafka.connect.data.Date"
_TIME = "org.apache.kafka.connect.data.Time"
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_FIELDS = [
    (_field("id", "int64"), 4_294_967_300),
    (_field("small", "int8"), -7),
    (_field("word", "string", **_OPTIONAL), "12"),
    (_field("gone", "string", optional=True, default="dflt"), None),
    (_field("part", "float"), 1.5),
    (_field("big", "double"), -3.9e10),
    (_field("flag", "boolean"), True),
    (_field("raw", "bytes"), "AQI="),
    (_field("at", "int64", name=_TIMESTAMP, version=1), 1_700_000_000_123),
    (_field("day", "int32", name=_DATE, version=1), 19_000),
    (_field("clock", "int32", name=_TIME, version=1), 3_723_004),
    (_field("price", "bytes", name=_DECIMAL, version=1, parameters={"scale": "2"}), "MDk="),
    (_field("tags", "array", items={"type": "string", "optional": False}), ["a", "b"]),
    (
        _field(
            "inner",
            "struct",
            optional=True,
            name="Inner",
            fields=[_field("x", "int32"), _field("a.b", "string", **_OPTIONAL)],
        ),
        {"x": 5, "a.b": "dotted"},
    ),
    (_field("written", "string"), "2023-11-14 22:13:20"),
]
_STRUCT = {
    "type": "struct",
    "optional": False,
    "name": "shop.Order",
    "version": 2,
    "doc": "An order.",
    "fields": [field for field, _ in _FIELDS],
}
WITH_SCHEMA = json.dumps(
    {"schema": _STRUCT, "payload": {field["field"]: value for field, value in _FIELDS}}
)
WITHOUT_SCHEMA = json.dumps(
    {
        "id": 4_294_967_300,
        "word": "12",
        "gone": None,
        "part": 1.5,
        "flag": False,
        "at": 1_700_000_000_123,
        "written": "2023-11-14 22:13:20",
        "tags": [1, "a"],
        "inner": {"x": 5, "a.b": "dotted", "deep": {"y": None}},
    }
)
_NULL = json.dumps({"schema": {**_STRUCT, **_OPTIONAL}, "payload": None})
_NUMBER = json.dumps({"schema": {"type": "int64", "optional": True}, "payload": 1_700_000_000})
_TEXT = json.dumps({"schema": {"type": "string", "optional": False}, "payload": "7"})
_MOMENT = json.dumps(
    {
        "schema": {"type": "int64", "optional": False, "name": _TIMESTAMP, "version": 1},
        "payload": -1234,
    }
)
VALUES: list[tuple[bool, str | None]] = [
    (True, WITH_SCHEMA),
    (True, _NULL),
    (True, _NUMBER),
    (True, _TEXT),
    (True, _MOMENT),
    (True, None),
    (False, WITHOUT_SCHEMA),
    (False, "7"),
    (False, '"2023-11-14 22:13:20"'),
    (False, None),
]
_FORMAT = "yyyy-MM-dd HH:mm:ss"
_NO_DEFAULTS = {"replace.null.with.default": "false"}
_TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")


def _of_parts() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the transformations for keys and values, with settings."""
    for kind in _TYPES:
        yield "Cast", {"spec": kind}
        yield "Cast", {"spec": f"id:{kind},big:{kind}"}
        yield "Cast", {"spec": f"word:{kind},part:{kind},flag:{kind}"}
        yield "Cast", {"spec": f"price:{kind},at:{kind},day:{kind},clock:{kind}"}
        yield "Cast", {"spec": f"gone:{kind}", **_NO_DEFAULTS}
    for spec in ("tags:string", "raw:string", "raw:int8", "inner:string", "id:bytes", "a:b:c"):
        yield "Cast", {"spec": spec}
    for field in ("id", "gone", "inner", "missing", "inner.x"):
        yield "ExtractField", {"field": field}
        yield "ExtractField", {"field": field, "field.syntax.version": "v2", **_NO_DEFAULTS}
    yield "ExtractField", {"field": "inner.`a.b`", "field.syntax.version": "V2"}
    yield "ExtractField", {"field": "inner.`a.b", "field.syntax.version": "V2"}
    yield "Flatten", {}
    yield "Flatten", {"delimiter": "_"}
    for operation in ("copy", "move", "take"):
        yield "HeaderFrom", {"fields": "id,at,gone", "headers": "i,a,g", "operation": operation}
    yield "HeaderFrom", {"fields": "price,inner", "headers": "p", "operation": "copy"}
    yield "HeaderFrom", {"fields": "word", "headers": "w", "operation": "move", **_NO_DEFAULTS}
    yield "HoistField", {"field": "all"}
    yield "InsertField", {"topic.field": "t", "partition.field": "p!", "offset.field": "o?"}
    yield "InsertField", {"timestamp.field": "ts!", "static.field": "s", "static.value": "x"}
    yield "InsertField", {"timestamp.field": "id"}
    yield "InsertField", {"static.field": "s"}
    yield "InsertField", {}
    yield "MaskField", {"fields": "id,word,gone,part,flag,tags"}
    yield "MaskField", {"fields": "id,word,gone", "replacement": "300.7", **_NO_DEFAULTS}
    yield "MaskField", {"fields": "small,part,price", "replacement": "300.7"}
    yield "MaskField", {"fields": "flag", "replacement": "true"}
    yield "MaskField", {"fields": "id", "replacement": "abc"}
    yield "MaskField", {"fields": "inner"}
    yield "MaskField", {"fields": "at,day,clock"}
    yield "MaskField", {"fields": ""}
    yield "ReplaceField", {"exclude": "id,tags,inner"}
    yield "ReplaceField", {"include": "id,word,gone", "renames": "id:key,word:w", **_NO_DEFAULTS}
    yield "ReplaceField", {"renames": "id:word"}
    yield "ReplaceField", {"renames": "id"}
    yield "SetSchemaMetadata", {"schema.name": "other", "schema.version": "9"}
    yield "SetSchemaMetadata", {"schema.version": "9", **_NO_DEFAULTS}
    yield "SetSchemaMetadata", {}
    for target in ("string", "unix", "Date", "Time", "Timestamp"):
        for field in ("", "at", "day", "clock", "written", "id", "flag"):
            yield "TimestampConverter", {"target.type": target, "field": field, "format": _FORMAT}
        for precision in ("seconds", "microseconds", "nanoseconds"):
            settings = {"target.type": target, "field": "at", "unix.precision": precision}
            yield "TimestampConverter", {**settings, "format": "yyyyMMdd'T'HHmmss.SSSXXX"}
            yield "TimestampConverter", {**settings, "field": ""}
    yield "TimestampConverter", {"target.type": "epoch"}


_OTHERS: list[tuple[str, dict[str, str]]] = [
    ("DropHeaders", {"headers": "h1"}),
    ("DropHeaders", {"headers": "h1,h2,h3"}),
    ("DropHeaders", {"headers": ""}),
    ("Filter", {}),
    *(
        ("InsertHeader", {"header": "h", "value.literal": literal})
        for literal in ("text", "12", "1.5", "true", "null", "[1,2]", "2023-11-14", "")
    ),
    ("RegexRouter", {"regex": "(.*)-(?<n>[0-9]+)", "replacement": "$1.${n}"}),
    ("RegexRouter", {"regex": "(.*)-(.*)", "replacement": "$2$11"}),
    ("RegexRouter", {"regex": "orders", "replacement": "x"}),
    ("RegexRouter", {"regex": "o|orders-7", "replacement": "x"}),
    ("RegexRouter", {"regex": ".*", "replacement": "\\$x"}),
    ("RegexRouter", {"regex": "(", "replacement": "x"}),
    ("RegexRouter", {"regex": "(.*)", "replacement": "$9"}),
    ("TimestampRouter", {}),
    ("TimestampRouter", {"topic.format": "${timestamp}-${topic}-${topic}"}),
    ("TimestampRouter", {"timestamp.format": "yyyy-MM-dd'T'HH:mm:ss.SSSZ"}),
    ("TimestampRouter", {"timestamp.format": "EEE EEEE d MMM MMMM yy G a h K k D F"}),
    ("TimestampRouter", {"timestamp.format": "YYYY w W u z XXX"}),
    ("TimestampRouter", {"timestamp.format": "bb"}),
    ("ValueToKey", {"fields": "id,word"}),
    ("ValueToKey", {"fields": "gone", **_NO_DEFAULTS}),
    ("ValueToKey", {"fields": "missing"}),
]


_PREDICATES: list[tuple[str, dict[str, str]]] = [
    ("predicates.HasHeaderKey", {"name": "h1"}),
    ("predicates.HasHeaderKey", {"name": ""}),
    ("predicates.RecordIsTombstone", {}),
    *(
        ("predicates.TopicNameMatches", {"pattern": pattern})
        for pattern in (".*", "orders", "orders-[0-9]", "(?<a>o).*\\d", "ORDERS-7", "(", "")
    ),
]
_USUAL = {
    "id": "int64",
    "small": "int8",
    "word": "string",
    "gone": "string",
    "part": "float32",
    "big": "float64",
    "flag": "boolean",
    "raw": "bytes",
    "at": "timestamp",
    "day": "date",
    "clock": "time",
    "price": "decimal",
    "written": "string",
}
"""The fields in settings, and their most frequent types."""
_TOPICS = ("orders-7", "orders", "o", "a-b-c", "ORDERS-7", "")


def cases() -> list[Case]:
    """Yield every transformation's settings with every value."""
    made = []
    for part in ("Key", "Value"):
        for name, config in _of_parts():
            for schemas, value in VALUES:
                other = json.dumps({"schema": None, "payload": None}) if schemas else None
                halves = (value, other) if part == "Key" else (other, value)
                made.append(_case(f"{name}${part}", config, schemas, *halves))
        # The classes for key and value share their code, so a few settings are enough.
        made = made if part == "Value" else made[::7]
    for name, config in _OTHERS:
        made += [_case(name, config, schemas, None, value) for schemas, value in VALUES]
    return made


def generated_cases(seed: int, count: int) -> list[Case]:
    """Yield so many records for each transformation and predicate, with any of its settings."""
    source = random.Random(seed)
    settings: dict[str, list[dict[str, str]]] = {}
    for name, config in _of_parts():
        for part in ("Key", "Value"):
            settings.setdefault(f"{name}${part}", []).append(config)
    for name, config in [*_OTHERS, *_PREDICATES]:
        settings.setdefault(name, []).append(config)
    return [
        _generated(source, name, source.choice(configs))
        for name, configs in settings.items()
        for _ in range(count)
    ]


def _generated(source: random.Random, name: str, config: dict[str, str]) -> Case:
    schemas = source.random() < 0.7
    made = _with_schema if schemas else _without_schema
    case = _case(name, config, schemas, made(source), made(source))
    case["topic"] = source.choice(_TOPICS)
    case["timestamp"] = source.choice([None, 0, 1_700_000_000_123, source.randrange(4 * 10**12)])
    case["headers"] = [
        [source.choice(["h1", "h2", "h3", "g"]), _written(*simple(source))]
        for _ in range(source.randint(0, 3))
    ]
    return case


def _written(schema: Schema | None, value: Any) -> str:
    found = _converter(True, nulls="false").from_connect_data("t", schema, value)
    assert found is not None
    return found.decode()


def _with_schema(source: random.Random) -> str | None:
    kind = source.random()
    if kind < 0.1:
        return None
    if kind < 0.2:
        return _written(*simple(source))
    fields: dict[str, Pair] = {}
    for name in source.sample(sorted(_USUAL), source.randint(3, len(_USUAL))):
        is_usual = source.random() < 0.7
        fields[name] = simple(source, _USUAL[name] if is_usual else None)
    if source.random() < 0.5:
        inner = {"x": simple(source, "int32"), "a.b": simple(source, "string")}
        fields["inner"] = struct(source, inner)
    if source.random() < 0.3:
        fields["tags"] = Schema.array(Schema.string()), [text(source)]
    schema, value = struct(source, fields)
    return _written(schema, None if schema.optional and source.random() < 0.2 else value)


def _without_schema(source: random.Random) -> str | None:
    kind = source.random()
    if kind < 0.1:
        return None
    if kind < 0.2:
        return json.dumps(plain(source))
    names = source.sample([*sorted(_USUAL), "inner", "tags"], source.randint(2, 10))
    return json.dumps({name: plain(source, 1) for name in names})


def _case(
    name: str, config: dict[str, str], schemas: bool, key: str | None, value: str | None
) -> Case:
    return {
        "type": f"{PACKAGE}.{name}",
        "config": config,
        "schemas": schemas,
        "topic": "orders-7",
        "timestamp": 1_700_000_000_123,
        "key": key,
        "value": value,
        "headers": [
            ["h1", _written(Schema.string(), "one")],
            ["h2", _written(Schema.string(), "two")],
        ],
    }


def ours(case: Case) -> dict[str, Any]:
    """Return the result of a case's record, or the error."""
    try:
        return _applied(case)
    # The name of the error is compared.
    except KafkaException as error:
        return {"error": type(error).__name__, "message": str(error)}


@cache
def _converter(schemas: bool, nulls: str = "true") -> JsonConverter:
    converter = JsonConverter()
    told = {"schemas.enable": str(schemas).lower(), "replace.null.with.default": nulls}
    converter.configure(told, False)
    return converter


def _applied(case: Case) -> dict[str, Any]:
    is_predicate = ".predicates." in case["type"]
    kind = PluginKind.PREDICATE if is_predicate else PluginKind.TRANSFORMATION
    plugin = _PLUGINS.find(case["type"], kind)()
    plugin.configure(case["config"])
    record = _record(case)
    if is_predicate:
        return {"test": plugin.test(record)}
    made = plugin.apply(record)
    if made is None:
        return {"dropped": True}

    def written(converter: JsonConverter, schema: Schema | None, one: Any) -> str | None:
        found = converter.from_connect_data("t", schema, one)
        return None if found is None else found.decode()

    converter, with_schema = _converter(case["schemas"]), _converter(True)
    return {
        "dropped": False,
        "topic": made.topic,
        "timestamp": made.timestamp_ms,
        "key": written(converter, made.key_schema, made.key),
        "value": written(converter, made.value_schema, made.value),
        "headers": [
            [header.key, written(with_schema, header.schema, header.value)]
            for header in made.headers
        ],
    }


def _record(case: Case) -> SinkRecord:
    def read(converter: JsonConverter, said: str | None) -> Any:
        return converter.to_connect_data("t", None if said is None else said.encode())

    converter, with_schema = _converter(case["schemas"]), _converter(True)
    key, value = read(converter, case["key"]), read(converter, case["value"])
    headers = [(name, read(with_schema, said)) for name, said in case["headers"]]
    return SinkRecord(
        topic=case["topic"],
        kafka_partition=3,
        key_schema=key.schema,
        key=key.value,
        value_schema=value.schema,
        value=value.value,
        kafka_offset=42,
        timestamp_ms=case["timestamp"],
        timestamp_type=CREATE_TIME,
        headers=headers_of([(name, one.value, one.schema) for name, one in headers]),
    )


_KINDS = {"ConfigException", "DataException", "SchemaBuilderException"}


def is_same(case: Case, theirs: dict[str, Any], our: dict[str, Any]) -> bool:
    """Return whether two results are equal: as bytes with schemas, otherwise by content.

    Without schemas an object is a map, and Java's maps have no order. If Kafka's code fails with a
    Java exception, Millstream must refuse the record.
    """
    if "error" in theirs:
        return "error" in our and (theirs["error"] not in _KINDS or theirs["error"] == our["error"])
    return _comparable(case, theirs) == _comparable(case, our)


def _comparable(case: Case, answer: dict[str, Any]) -> dict[str, Any]:
    # A cast makes floats from numbers, which Java before 19 writes with more digits (JDK-4511638).
    if case["schemas"] and "Cast" not in case["type"]:
        return answer
    parts = {part: sorted_json(answer[part]) for part in ("key", "value") if part in answer}
    return {**answer, **parts}
