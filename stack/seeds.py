"""The seeds of a stack: topics, settings, schemas and records from a YAML file.

    topics:
      - name: fruit
        partitions: 3
        replicas: 1
        config: {cleanup.policy: compact}
        value: {type: AVRO, schema: {type: record, ...}}   # or key:, or only a type
        records:
          - {key: a, value: {name: apple}}
    schemas:
      - {subject: other-value, type: AVRO, schema: {...}}

A topic may also be one line, `name:partitions:replicas:compact`, the form of common Docker images.
Records have the form of the REST proxy's version 3, or simply a key and a value.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from common.process.json_text import NO_UNICODE, is_unicode

if TYPE_CHECKING:
    from yaml import Node

TYPES = ("BINARY", "JSON", "STRING", "AVRO", "JSONSCHEMA", "PROTOBUF")
_REGISTRY_TYPES = {"AVRO": "AVRO", "JSONSCHEMA": "JSON", "JSON": "JSON", "PROTOBUF": "PROTOBUF"}
_TOPIC = ("name", "partitions", "replicas", "config", "key", "value", "records")
_MAX_FILE_BYTES: Final = 64 << 20
_MAX_BYTES: Final = 256 << 20
"""Of all values, when every alias stands for what it names."""
_VALUE_BYTES: Final = 64


class SeedError(ValueError):
    """A seed file is invalid; the message names the position."""


Seeds = dict[str, Any]


def read_seeds(path: Path) -> Seeds:
    """Return the validated seeds of a file; raise SeedError."""
    import yaml

    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise SeedError(f"{path} is larger than {_MAX_FILE_BYTES} bytes")
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        if node is not None:
            _check_size(node)
        told = None if node is None else loader.construct_document(node)
    except SeedError as error:
        raise SeedError(f"{path}: {error}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError) as error:
        raise SeedError(f"{path}: {error}") from None
    try:
        return checked(told)
    except SeedError as error:
        raise SeedError(f"{path}: {error}") from None


def _check_size(node: "Node") -> None:
    """Raise SeedError for a document that is too large behind its aliases, or is no Unicode."""
    sizes: dict[int, int] = {}
    if _size_of(node, sizes) > _MAX_BYTES:
        raise SeedError(f"its aliases stand for more than {_MAX_BYTES >> 20} MB")


def _size_of(node: "Node", sizes: dict[int, int]) -> int:
    """Return the bytes of a value with its aliases, each node counted once; 0 while it is."""
    if id(node) in sizes:
        if not sizes[id(node)]:
            raise SeedError("an alias stands for what holds it")
        return sizes[id(node)]
    if isinstance(node.value, str):
        if not is_unicode(node.value):
            raise SeedError(f"line {node.start_mark.line + 1}: {NO_UNICODE}")
        sizes[id(node)] = _VALUE_BYTES + len(node.value)
        return sizes[id(node)]
    sizes[id(node)] = 0
    inner = [one for each in node.value for one in (each if isinstance(each, tuple) else (each,))]
    sizes[id(node)] = _VALUE_BYTES + sum(_size_of(each, sizes) for each in inner)
    return sizes[id(node)]


def together(first: Seeds, second: Seeds) -> Seeds:
    """Return the seeds of two files; raise SeedError for a topic that is in both."""
    seeds = {part: [*first.get(part, []), *second.get(part, [])] for part in ("topics", "schemas")}
    names = [topic["name"] for topic in seeds["topics"]]
    for name in names:
        if names.count(name) > 1:
            raise SeedError(f"topic {name} is defined twice")
    return seeds


def checked(data: Any) -> Seeds:
    """Return seeds in their normal form; raise SeedError."""
    if data is None:
        data = {}
    if isinstance(data, list):
        data = {"topics": data}
    if not isinstance(data, dict):
        raise SeedError("it must be a list of topics, or a mapping with topics: and schemas:")
    _only(data, "the file", "topics", "schemas")
    topics = [_topic(each, f"topics[{n}]") for n, each in enumerate(_list(data, "topics"))]
    schemas = [_schema(each, f"schemas[{n}]") for n, each in enumerate(_list(data, "schemas"))]
    return together({"topics": topics, "schemas": schemas}, {})


def _topic(data: Any, where: str) -> dict[str, Any]:
    if isinstance(data, str):
        return _of_line(data, where)
    if not isinstance(data, dict):
        raise SeedError(f"{where} must be a name or a mapping")
    _only(data, where, *_TOPIC)
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise SeedError(f"{where}.name is missing")
    config = data.get("config") or {}
    if not isinstance(config, dict):
        raise SeedError(f"{where}.config must be a mapping")
    parts = {part: _part(data.get(part), f"{where}.{part}") for part in ("key", "value")}
    return {
        "name": name,
        "partitions": _count(data.get("partitions"), f"{where}.partitions"),
        "replicas": _count(data.get("replicas"), f"{where}.replicas"),
        "config": {str(key): _text(value) for key, value in config.items()},
        **parts,
        "records": [
            _record(each, parts, f"{where}.records[{n}]")
            for n, each in enumerate(_list(data, "records", where))
        ],
    }


def _of_line(line: str, where: str) -> dict[str, Any]:
    """Return the topic of a line name:partitions:replicas:policy."""
    name, *rest = line.split(":")
    if not name or len(rest) > 3:
        raise SeedError(f"{where}: {line!r} is not name:partitions:replicas:compact")
    counts = [_count(int(each) if each.isdigit() else each, where) for each in rest[:2]]
    counts += [None] * (2 - len(counts))
    config = {"cleanup.policy": rest[2]} if len(rest) == 3 else {}
    return {
        "name": name,
        "partitions": counts[0],
        "replicas": counts[1],
        "config": config,
        "key": None,
        "value": None,
        "records": [],
    }


def _part(data: Any, where: str) -> dict[str, Any] | None:
    """Return the encoding of keys or values: their type, and the text of their schema."""
    if data is None:
        return None
    if isinstance(data, str):
        data = {"type": data}
    if not isinstance(data, dict):
        raise SeedError(f"{where} must be a type or a mapping")
    _only(data, where, "type", "schema")
    kind = str(data.get("type", "AVRO")).upper()
    if kind not in TYPES:
        raise SeedError(f"{where}.type: one of {', '.join(TYPES)}")
    if (data.get("schema") is not None) != (kind in TYPES[3:]):
        raise SeedError(f"{where}: {kind} has {'a' if kind in TYPES[3:] else 'no'} schema")
    return {"type": kind, "schema": _schema_text(data.get("schema"))}


def _record(data: Any, parts: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a record in the form of the REST proxy's version 3."""
    if not isinstance(data, dict):
        raise SeedError(f"{where} must be a mapping with key and value")
    _only(data, where, "key", "value", "headers", "timestamp", "partition")
    record: dict[str, Any] = {}
    for part in ("key", "value"):
        if data.get(part) is not None:
            record[part] = _encoded(data[part], parts[part], part)
    if data.get("partition") is not None:
        record["partition_id"] = _count(data["partition"], f"{where}.partition", least=0)
    if data.get("timestamp") is not None:
        record["timestamp"] = str(data["timestamp"])
    if data.get("headers") is not None:
        record["headers"] = _headers(data["headers"], where)
    return record


def _encoded(data: Any, part: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    if part is None:
        is_text = name == "key" and isinstance(data, str)
        return {"type": "STRING" if is_text else "JSON", "data": data}
    schema = {} if part["schema"] is None else {"schema": part["schema"]}
    return {"type": part["type"], **schema, "data": data}


def _headers(data: Any, where: str) -> list[dict[str, Any]]:
    from base64 import b64encode

    if not isinstance(data, dict):
        raise SeedError(f"{where}.headers must be a mapping")
    return [
        {"name": str(name), "value": b64encode(str(value).encode()).decode()}
        for name, value in data.items()
    ]


def _schema(data: Any, where: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise SeedError(f"{where} has to be a mapping")
    _only(data, where, "subject", "type", "schema")
    subject, schema = data.get("subject"), data.get("schema")
    if not isinstance(subject, str) or schema is None:
        raise SeedError(f"{where} needs subject and schema")
    kind = _REGISTRY_TYPES.get(str(data.get("type", "AVRO")).upper())
    if kind is None:
        raise SeedError(f"{where}.type: one of {', '.join(_REGISTRY_TYPES)}")
    return {"subject": subject, "type": kind, "schema": _schema_text(schema)}


def _schema_text(schema: Any) -> str | None:
    import json

    if schema is None or isinstance(schema, str):
        return schema
    return json.dumps(schema)


def _count(data: Any, where: str, least: int = 1) -> int | None:
    if data is None:
        return None
    if isinstance(data, bool) or not isinstance(data, int) or not least <= data < 1 << 31:
        raise SeedError(f"{where}: {data!r} is not a number of at least {least}")
    return data


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _list(data: Mapping[str, Any], name: str, where: str = "the file") -> list[Any]:
    found = data.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise SeedError(f"{where}: {name} must be a list")
    return found


def _only(told: Mapping[Any, Any], where: str, *names: str) -> None:
    unknown = [str(each) for each in told if each not in names]
    if unknown:
        raise SeedError(f"{where}: {unknown[0]!r} is not one of {', '.join(names)}")
