"""Our codec against two others, for every key and version that both know.

The values avoid only what an oracle cannot hold: kio makes an enum of error codes and a date or a
duration of some 64-bit numbers.
"""

from itertools import cycle
from random import Random

import pytest

from common.kafka.protocol.messages.api_versions import ApiVersionsResponse
from common.kafka.protocol.structs import encode_struct
from tests.lib.protocol_messages import (
    ALL_MESSAGES,
    API_MESSAGES,
    random_struct,
    sample,
    versions_of,
)
from tests.lib.protocol_oracles import ORACLES, plain

SEED_COUNT = 30

CASES = [
    pytest.param(oracle, message, id=f"{oracle.name}-{message.__name__}")
    for oracle in ORACLES
    for message in ALL_MESSAGES
    if any(oracle.knows(message, version) for version in versions_of(message))
]


def known_versions(oracle, message):
    return [version for version in versions_of(message) if oracle.knows(message, version)]


def check(oracle, message, version, original):
    if message is ApiVersionsResponse:
        original.error_code = 0  # kafka-python reads a refusal as version 0, as a client must
    encoded = encode_struct(original, version)
    seen, written = oracle(message, version).judge(encoded)
    assert seen == plain(original, version)
    assert written == encoded


@pytest.mark.slow
@pytest.mark.parametrize(("oracle", "message"), CASES)
def test_an_oracle_agrees_on_messages_with_every_field_set(oracle, message):
    for version in known_versions(oracle, message):
        check(oracle, message, version, sample(message, version))


@pytest.mark.slow
@pytest.mark.parametrize(("oracle", "message"), CASES)
def test_an_oracle_agrees_on_any_message(oracle, message):
    for seed, version in zip(
        range(SEED_COUNT), cycle(known_versions(oracle, message)), strict=False
    ):
        original = random_struct(message, version, Random(f"{version} {seed}"), modest=True)
        check(oracle, message, version, original)


def test_the_oracles_cover_every_api():
    judged = {case.values[1] for case in CASES}
    assert not set(API_MESSAGES) - judged
