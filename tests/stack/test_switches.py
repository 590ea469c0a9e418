"""The console of a stack of three brokers: one is killed and paused by its switches."""

import threading

import pytest

from tests.lib.local_console import ConsoleCalls, streamed
from tests.lib.stack_command import Command
from tests.lib.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


@pytest.fixture
def calls(millstream: Command) -> ConsoleCalls:
    options = ("--ephemeral", "--brokers", "3", "--only", "broker,console", "--any-port")
    stack = millstream.up(*options)
    return ConsoleCalls(stack["addresses"]["console"])


def state_of(calls: ConsoleCalls, part: str) -> str:
    return str(calls.get("/api/stack").body["parts"][part]["state"])


def test_a_broker_is_killed_and_paused_and_it_is_said_what_happened(calls: ConsoleCalls) -> None:
    said: list[str] = []
    has_begun = threading.Event()

    def listen() -> None:
        for name, data in streamed(calls.url, "/api/watch"):
            if name == "picture":
                has_begun.set()
                said.extend(each["sentence"] for each in data.get("happened", ()))

    def is_told(*texts: str) -> bool:
        return all(any(text in each for each in said) for text in texts)

    threading.Thread(target=listen, daemon=True).start()
    # The first picture has no topic: what is created behind it is a change.
    until(has_begun.is_set)
    body = {"name": "t", "partitions": 6, "replicas": 3}
    assert calls.change("POST", "/api/topics", body).status == 201
    until(lambda: is_told("topic t was created"), shown=lambda: said)
    switch = "/api/stack/parts/broker-2"
    assert calls.change("POST", f"{switch}/kill", {}).status == 202

    gone = ("broker-2 was stopped", "Broker 2 is gone", "that broker 2 led")
    until(lambda: is_told(*gone), shown=lambda: said)
    assert state_of(calls, "broker-2") == "stopped"
    assert calls.change("POST", f"{switch}/start", {}).status == 202
    until(lambda: is_told("Broker 2 is in sync again"), shown=lambda: said)
    assert calls.change("POST", f"{switch}/pause", {}).status == 202
    until(lambda: is_told("broker-2 was paused"), shown=lambda: said)
    assert calls.get("/health/ready").status == 503
    assert calls.change("POST", f"{switch}/start", {}).status == 202
    until(lambda: calls.get("/health/ready").status == 200)
    for wrong in ("broker-7/kill", "console/kill", "broker-1/explode"):
        assert calls.change("POST", f"/api/stack/parts/{wrong}", {}).status == 404
