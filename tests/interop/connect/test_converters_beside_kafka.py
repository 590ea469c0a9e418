"""Converters on generated records: the bytes of ours are those of Kafka's, and mean the same.

Of every setting of every converter, 250 values are written, and 250 texts are read, of which half
were good before somebody changed them.
"""

import json
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from connect.converters.json_converter import JsonConverter
from connect.plugins.built_in import CLASSES
from connect.plugins.catalogue import PluginKind, Plugins
from millstream.connect.errors import ConnectException
from tests.lib.apache_kafka import kafka_libs
from tests.lib.connect_random import garbled, pair, plain, simple, sorted_json
from tests.lib.java import JAVA, java_program

pytestmark = pytest.mark.interop

COUNT = 250
PLUGINS = Plugins(CLASSES)
Case = dict[str, Any]

NUMBERS = {
    "Short": "int16",
    "Integer": "int32",
    "Long": "int64",
    "Float": "float32",
    "Double": "float64",
    "Boolean": "boolean",
    "ByteArray": "bytes",
}
"""What each writes."""
HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
UTF_16 = {"converter.encoding": "UTF-16"}
CONVERTERS: list[tuple[str, dict[str, str]]] = [
    *((f"org.apache.kafka.connect.converters.{name}Converter", {}) for name in NUMBERS),
    (STRINGS, {}),
    (STRINGS, {"converter.encoding": "ISO-8859-1"}),
    (STRINGS, {"converter.encoding": "US-ASCII"}),
    (STRINGS, UTF_16),
    (HEADERS, {}),
    (JSON, {}),
    (JSON, {"decimal.format": "NUMERIC", "replace.null.with.default": "false"}),
    (JSON, {"schemas.enable": "false"}),
    (JSON, {"schemas.enable": "false", "replace.null.with.default": "false"}),
    (JSON, {"schemas.enable": "false", "decimal.format": "numeric"}),
]


def json_converter(**settings: str) -> JsonConverter:
    made = JsonConverter()
    made.configure({name.replace("_", "."): value for name, value in settings.items()}, False)
    return made


WITH_SCHEMAS = json_converter(replace_null_with_default="false")
PLAIN = json_converter(schemas_enable="false")


def converter_of(case: Case) -> Any:
    kind = PluginKind.HEADER_CONVERTER if case["type"] == HEADERS else PluginKind.CONVERTER
    made = PLUGINS.find(case["type"], kind)()
    if case["type"] == HEADERS:
        made.configure(case["config"])
    else:
        made.configure(case["config"], False)
    return made


def ours(case: Case) -> dict[str, Any]:
    try:
        return _read(case) if "bytes" in case else _written(case)
    # What it is called is compared.
    except ConnectException as error:
        return {"error": type(error).__name__, "message": str(error)}


def _written(case: Case) -> dict[str, Any]:
    values = WITH_SCHEMAS if case["schemas"] else PLAIN
    schema, value = values.to_connect_data("t", case["value"].encode())
    converter = converter_of(case)
    if case["type"] == HEADERS:
        bytes_ = converter.from_connect_header("t", "h", schema, value)
    else:
        bytes_ = converter.from_connect_data("t", schema, value)
    return {"bytes": None if bytes_ is None else bytes_.hex()}


def _read(case: Case) -> dict[str, Any]:
    bytes_ = None if case["bytes"] is None else bytes.fromhex(case["bytes"])
    converter = converter_of(case)
    if case["type"] == HEADERS:
        found = converter.to_connect_header("t", "h", bytes_)
    else:
        found = converter.to_connect_data("t", bytes_)
    shown = WITH_SCHEMAS.from_connect_data("t", found.schema, found.value)
    return {"value": None if shown is None else shown.decode()}


def written_cases(source: random.Random, name: str, config: dict[str, str]) -> list[Case]:
    """Give values to write: those of its type mostly, where it has one."""
    kind = NUMBERS.get(name.rpartition(".")[2].removesuffix("Converter"))
    cases = []
    for number in range(COUNT):
        told: Case = {"type": name, "config": config, "schemas": number % 5 > 0}
        if told["schemas"]:
            schema, value = simple(source, kind) if kind and number % 3 else pair(source)
            shown = WITH_SCHEMAS.from_connect_data("t", schema, value)
            assert shown is not None
            told["value"] = shown.decode()
        else:
            told["value"] = json.dumps(plain(source))
        cases.append(told)
    return cases


def read_cases(source: random.Random, written: list[Case], answers: list[Any]) -> list[Case]:
    """Give what was written to be read again, every second time garbled."""
    cases = []
    for number, (case, answer) in enumerate(zip(written, answers, strict=True)):
        good = answer.get("bytes")
        bytes_ = None if good is None else bytes.fromhex(good)
        if bytes_ is None and number % 7:
            bytes_ = source.randbytes(source.randint(0, 9))
        # Of half a character in UTF-16 every decoder makes something else.
        if bytes_ is not None and number % 2 and case["config"] != UTF_16:
            bytes_ = garbled(source, bytes_)
        told = {"type": case["type"], "config": case["config"]}
        cases.append({**told, "bytes": None if bytes_ is None else bytes_.hex()})
    return cases


def theirs(libs: str, cases: list[Case]) -> list[Any]:
    said = subprocess.run(
        java_program(libs, JAVA / "RunConverters.java"),
        input="\n".join(map(json.dumps, cases)),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found = [json.loads(line) for line in said.stdout.splitlines() if line.startswith("{")]
    assert len(found) == len(cases), said.stderr[-2000:]
    return found


def _is_known_difference(case: Case, answer: dict[str, Any], our: dict[str, Any]) -> bool:
    """Tell the differences that are meant; connect/README.md lists them."""
    said = our.get("message", "")
    name = case["type"].rpartition(".")[2].removesuffix("Converter")
    is_read = "bytes" in case
    return (
        "unwritable" in answer
        or "has no text" in said
        or "more than 64 bits" in said
        or (is_read and "codec can't decode" in said)
        or (case["type"] == HEADERS and is_read and _is_the_text_itself(case, our))
        or (not is_read and name in NUMBERS and not case["schemas"] and "error" in answer)
    )


def _is_the_text_itself(case: Case, our: dict[str, Any]) -> bool:
    whole = bytes.fromhex(case["bytes"]).decode("utf-8", "replace")
    return "value" in our and json.loads(our["value"] or "{}").get("payload") == whole


def canonical(answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        return {"error": answer["error"]}
    return {**answer, "value": sorted_json(answer.get("value"))}


def test_ours_write_and_read_the_bytes_that_kafkas_do() -> None:
    libs = kafka_libs()
    if not list(Path(libs).glob("connect-json-*.jar")):
        pytest.skip(f"no connect-json in {libs}")
    source = random.Random(15)
    written = [case for each in CONVERTERS for case in written_cases(source, *each)]
    read = read_cases(source, written, list(map(ours, written)))
    cases = [*written, *read]
    answers = theirs(libs, cases)
    different, meant = [], Counter[str]()
    for case, answer, our in zip(cases, answers, map(ours, cases), strict=True):
        if canonical(answer) != canonical(our):
            if _is_known_difference(case, answer, our):
                meant[case["type"]] += 1
            else:
                different.append((case, answer, our))
    assert not different, (len(different), different[:3])
    # The others were really compared: of each converter in each setting, both ways.
    assert len(cases) == 2 * COUNT * len(CONVERTERS)
    assert max(meant.values()) < 2 * COUNT * 0.2, meant
    assert sum("error" not in answer for answer in answers) > len(cases) * 0.6
