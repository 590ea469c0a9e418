"""A short run of the fuzzer, and tests that it finds planted bugs."""

import importlib.util
from typing import Any

import pytest

from common.kafka.protocol.api_keys import ApiKey
from tests.fuzz.__main__ import fuzz_guided, replay
from tests.fuzz.in_process import Finding, in_process_node
from tests.fuzz.over_sockets import fuzz_over_sockets, guilty
from tests.fuzz.valid_requests import APIS, BROKER, valid_requests

SECONDS = 20
GUIDED_SECONDS = 8


@pytest.mark.slow
def test_wrong_frames_for_all_listeners_break_nothing() -> None:
    verdict = fuzz_over_sockets(seed=1, seconds=SECONDS)
    assert not verdict.problems, verdict
    served = sum(len(apis) for apis in APIS.values())
    assert len(verdict.by_api) == served, "every API of all listeners was sent some"
    assert verdict.frames > served
    assert verdict.rounds > SECONDS


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="Atheris is not installed here"
)
def test_where_coverage_leads_nothing_breaks() -> None:
    assert fuzz_guided(GUIDED_SECONDS, seed=1)


def test_a_frame_that_fails_is_found_among_the_suspects_and_replayed(
    monkeypatch: Any, capsys: Any
) -> None:
    def fail(*args: object) -> None:
        raise AssertionError("a planted bug")

    monkeypatch.setattr("broker.server.handlers.groups.describe.ListGroups.handle", fail)
    with in_process_node() as node:
        frames = {
            request.api_key: request.frame()
            for request in valid_requests(node.world)
            if request.listener == BROKER
        }
    right, wrong = frames[ApiKey.API_VERSIONS], frames[ApiKey.LIST_GROUPS]
    assert guilty([(BROKER, right), (BROKER, wrong)]) == [(BROKER, wrong)]
    assert replay([f"{BROKER}:{right.hex()}"]) == 0
    assert replay([f"{BROKER}:{wrong.hex()}"]) == 1
    assert "a planted bug" in capsys.readouterr().out
    with in_process_node() as node, pytest.raises(Finding, match="a planted bug"):
        node.send(BROKER, wrong)
