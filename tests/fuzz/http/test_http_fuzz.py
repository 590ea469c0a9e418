"""A short run of the fuzzer of HTTP servers, and what it must find."""

from random import Random

import pytest

from tests.fuzz.http.requests import VALID, mutated, written_as
from tests.fuzz.http.run import fuzz_http
from tests.fuzz.http.servers import CONNECT, DASHBOARD, ORDERS, REGISTRY

SECONDS = 8


@pytest.mark.slow
def test_wrong_requests_break_no_server() -> None:
    for verdict in fuzz_http((REGISTRY, CONNECT, ORDERS, DASHBOARD), seed=1, seconds=SECONDS):
        assert not verdict.problems, str(verdict)
        assert verdict.requests > 50, str(verdict)
        assert verdict.rounds > SECONDS, str(verdict)
        assert verdict.statuses["400"] + verdict.statuses["404"], str(verdict)


def test_mutated_requests_are_the_same_for_a_seed_and_mostly_not_the_valid_ones() -> None:
    for requests in VALID.values():
        made = [[mutated(each, Random(n)) for each in requests for n in range(40)] for _ in "ab"]
        assert made[0] == made[1]
        valid = {written_as(each) for each in requests}
        assert sum(each in valid for each in made[0]) < len(made[0]) / 3
        assert max(map(len, made[0])) < 100_000


def test_a_mutated_request_is_never_huge() -> None:
    """Seed 1 made one of several gigabytes after some thousand requests."""
    random = Random(1)
    for requests in VALID.values():
        made = [mutated(random.choice(requests), random) for _ in range(3_000)]
        assert max(map(len, made)) < 1_000_000
