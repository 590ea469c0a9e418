"""Where faults put errors, beside Apache Kafka's own answers to requests that fail.

Kafka fills every place that fits, a fault fills one: it must be one of Kafka's. The code is that of
an unexpected error, which Kafka gives to any request.
"""

import subprocess
from typing import Any

import pytest

from broker.faults.places import Place, places
from broker.faults.rule import api_name, read_rule
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import request_class, response_class
from common.kafka.protocol.structs import decode_struct, encode_struct
from tests.lib.apache_kafka import kafka_libs
from tests.lib.java import JAVA, java_program
from tests.lib.protocol_messages import sample

CODE = ErrorCode.UNKNOWN_SERVER_ERROR
WITHOUT_PLACE = {(ApiKey.DESCRIBE_LOG_DIRS, 1), (ApiKey.DESCRIBE_LOG_DIRS, 2)}
"""Kafka answers these with no directory at all; a fault puts the error beside each directory."""


def codes(struct: Any, place: Place, depth: int = 0) -> list[int]:
    if depth == len(place.levels):
        return [getattr(struct, place.field)]
    entries = getattr(struct, place.levels[depth].name) or ()
    return [code for entry in entries for code in codes(entry, place, depth + 1)]


@pytest.mark.interop
def test_an_error_goes_to_a_place_where_kafka_puts_it_in_every_version() -> None:
    cases = [
        (api_key, version)
        for api_key, known in API_VERSION_RANGES.items()
        for version in range(known.served_min, known.max + 1)
    ]
    lines = [
        f"{int(key)} {version} {int(CODE)} "
        + encode_struct(sample(request_class(key), version), version).hex()
        for key, version in cases
    ]
    done = subprocess.run(
        java_program(kafka_libs(), JAVA / "AnswerWithErrors.java", "-Xmx256m"),
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
    )
    judged: set[ApiKey] = set()
    for (api_key, version), line in zip(cases, done.stdout.splitlines(), strict=True):
        if line.startswith("!") or (api_key, version) in WITHOUT_PLACE:
            continue  # Kafka 4 has no such version.
        theirs = decode_struct(response_class(api_key), version, bytes.fromhex(line))
        rule = read_rule(
            {"kind": "error", "api": api_name(api_key), "error": CODE.name, "when": {"times": 1}}
        )
        place = rule.place(api_key, version)
        assert place in places(api_key, version)
        assert set(codes(theirs, place)) == {int(CODE)}, (api_key.name, version)
        judged.add(api_key)
    assert judged >= set(API_VERSION_RANGES) - {ApiKey.DESCRIBE_LOG_DIRS}
