"""As many entries as a request may have, and no step of its handler holds the loop for long.

A step's work is told by the calls it makes, which are the same on every machine; one takes a tenth
of a microsecond in C and some tenths in Python. What a request of ENTRIES entries takes tells what
one at its limit (`array_limits`) would. Encoding and decoding, which are the same for all, have
tests of their own.
"""

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from broker.server.network import dispatch, turns
from broker.server.network.dispatch import Dispatcher
from broker.server.quorum.controller.active_controller import ActiveController
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.array_limits import DEFAULT_LIMIT, LIMITS
from common.kafka.protocol.framing import encode_request
from tests.fuzz.in_process import InProcessNode, in_process_node
from tests.fuzz.many_entries import arrays_of, make_many
from tests.fuzz.valid_requests import APIS, BROKER, valid_request

ENTRIES = 3_000
MOST_CALLS = 250_000
"""In one step of a request at its limit: some 50 ms."""


class Calls:
    """Counts the calls of each step."""

    def __init__(self) -> None:
        self.of_steps: list[int] = []
        self._count = 0

    def _note(self, frame: object, event: str, argument: object) -> None:
        self._count += event in {"call", "c_call"}

    @contextmanager
    def step(self) -> Iterator[None]:
        """Count what is called meanwhile."""
        if sys.getprofile() is not None:  # A step within a step.
            yield
            return
        self._count = 0
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.of_steps.append(self._count)

    def steps(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Count each step of a handler."""
        value = None
        while True:
            try:
                with self.step():
                    awaited = steps.send(value)
            except StopIteration as done:
                return done.value
            value = yield awaited


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Have the steps of handlers and of the controller counted."""
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    calls = Calls()
    find, go_on = Dispatcher._find_handler, ActiveController._go_on

    def found(self: Dispatcher, api_key: int) -> Any:
        handler = find(self, api_key)
        assert handler is not None
        del self._handlers[api_key]  # So that the next request's is counted too.

        def handle(context: Any, request: Any) -> Any:
            with calls.step():
                answer = handler(context, request)
            return calls.steps(answer) if isinstance(answer, Generator) else answer

        return handle

    def going_on(self: ActiveController, under_way: Any) -> None:
        with calls.step():
            go_on(self, under_way)

    monkeypatch.setattr(Dispatcher, "_find_handler", found)
    monkeypatch.setattr(dispatch, "ENTRIES_AT_ONCE", 0)
    monkeypatch.setattr(ActiveController, "_go_on", going_on)
    return calls


@pytest.fixture(scope="module")
def node() -> Iterator[InProcessNode]:
    with in_process_node() as node:
        yield node


@pytest.mark.parametrize("key", APIS[BROKER], ids=lambda key: key.name)
def test_no_step_of_a_request_at_its_limit_takes_long(
    calls: Calls, node: InProcessNode, key: ApiKey
) -> None:
    version = API_VERSION_RANGES[key].max
    one = valid_request(key, version, node.world, BROKER)
    for path in arrays_of(one, version):
        request = valid_request(key, version, node.world, BROKER)
        limit = LIMITS.get(key, {}).get(".".join(path), DEFAULT_LIMIT)
        count = min(limit, ENTRIES)
        make_many(request, path, version, count)
        frame = encode_request(key, version, 1, "test", request)[4:]
        calls.of_steps.clear()
        node.send(BROKER, frame, steps=20_000)
        at_limit = max(calls.of_steps) * limit // count
        assert at_limit <= MOST_CALLS, (path, len(calls.of_steps), at_limit)
