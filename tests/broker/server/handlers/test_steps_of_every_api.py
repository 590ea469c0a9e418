"""However many entries a request has, no step of its handler looks at all of them.

A step's work is told by the calls it makes, which are the same on every machine. Encoding, decoding
and letting go, which are the same for all, have tests of their own.
"""

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from broker.protocol.api_keys import API_VERSION_RANGES, ApiKey
from broker.protocol.framing import encode_request
from broker.server import apis
from broker.server.coordinators import parts
from broker.server.handlers import consumer_group_heartbeat, excessive_changes
from broker.server.network import dispatch, turns
from broker.server.network.dispatch import Dispatcher
from broker.server.quorum.controller.active_controller import ActiveController
from broker.server.replication import fetch_question
from tests.fuzz.in_process import InProcessNode, in_process_node
from tests.fuzz.many_entries import arrays_of, make_many
from tests.fuzz.valid_requests import APIS, BROKER, valid_request

ENTRIES = 3_000
QUICK_ITEMS = 64
MOST_CALLS = 2_900
"""In one step: who makes one call for every entry makes more."""


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

    def walk(self, walk: Generator[Any, None, Any]) -> Generator[Any, None, Any]:
        """Count each step of a walk."""
        while True:
            try:
                with self.step():
                    wait = next(walk)
            except StopIteration as done:
                return done.value
            yield wait


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Have the steps of handlers and of the controller counted, where those of many are few."""
    for name, _ in apis.APIS.values():
        apis.handler_class(name)
    for name, module in list(sys.modules.items()):
        if name.startswith("broker.server.") and hasattr(module, "QUICK_ITEMS_PER_STEP"):
            monkeypatch.setattr(module, "QUICK_ITEMS_PER_STEP", QUICK_ITEMS)
    monkeypatch.setattr(excessive_changes, "MAX_RECORDS_PER_REQUEST", QUICK_ITEMS)
    monkeypatch.setattr(consumer_group_heartbeat, "MAX_TOPICS", QUICK_ITEMS)
    monkeypatch.setattr(consumer_group_heartbeat, "MAX_PARTITIONS", QUICK_ITEMS)
    monkeypatch.setattr(fetch_question, "MANY", QUICK_ITEMS)
    monkeypatch.setattr(parts, "MAX_ENTRIES_AT_ONCE", QUICK_ITEMS)
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    calls = Calls()
    find, answered, go_on = Dispatcher._find_handler, dispatch._answered, ActiveController._go_on

    def found(self: Dispatcher, api_key: int) -> Any:
        handler = find(self, api_key)
        assert handler is not None
        del self._handlers[api_key]  # So that the next request's is counted too.

        def handle(context: Any, request: Any) -> Any:
            with calls.step():
                return handler(context, request)

        return handle

    def going_on(self: ActiveController, under_way: Any) -> None:
        with calls.step():
            go_on(self, under_way)

    monkeypatch.setattr(Dispatcher, "_find_handler", found)
    monkeypatch.setattr(
        dispatch,
        "_answered",
        lambda header, walk, *request, **more: answered(header, calls.walk(walk), *request, **more),
    )
    monkeypatch.setattr(ActiveController, "_go_on", going_on)
    return calls


@pytest.fixture(scope="module")
def node() -> Iterator[InProcessNode]:
    with in_process_node() as node:
        yield node


@pytest.mark.parametrize("key", APIS[BROKER], ids=lambda key: key.name)
def test_no_step_looks_at_every_entry(calls: Calls, node: InProcessNode, key: ApiKey) -> None:
    version = API_VERSION_RANGES[key].max
    one = valid_request(key, version, node.world, BROKER)
    for path in arrays_of(one, version):
        request = valid_request(key, version, node.world, BROKER)
        make_many(request, path, version, ENTRIES)
        frame = encode_request(key, version, 1, "test", request)[4:]
        calls.of_steps.clear()
        node.send(BROKER, frame, steps=10_000)
        assert max(calls.of_steps) <= MOST_CALLS, (path, len(calls.of_steps))
