"""A controller makes itself known, and asks again until it is."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from broker.config.broker_config import BrokerConfig
from broker.metadata.features import SUPPORTED_FEATURES
from broker.server.quorum.controller.controller_registration import ControllerRegistration
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.controller_registration import ControllerRegistrationResponse

CONFIG = BrokerConfig.from_settings(
    {
        "node.id": "2",
        "process.roles": "controller",
        "listeners": "CONTROLLER://:0",
        "controller.quorum.voters": "1@a:19093,2@b:19093",
    }
)
INCARNATION = b"i" * 16


class Played:
    """The loop and the controller, both played by the test."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Callable[[Message], None]]] = []
        self.due: list[tuple[Any, ...]] = []
        loop: Any = SimpleNamespace(call_later=self._call_later)
        self.registration = ControllerRegistration(loop, CONFIG, INCARNATION, self._ask)
        self.registration.start({"CONTROLLER": 4711}, lambda: "host")

    def _call_later(self, seconds: float, *call: Any) -> Any:
        self.due.append(call)
        return SimpleNamespace(cancel=self.due.clear)

    def _ask(
        self,
        request: Message,
        api_version: int,
        on_response: Callable[[Message], None],
        *,
        timeout_ms: int,
    ) -> None:
        self.asked.append((request, on_response))

    def answer(self, code: ErrorCode) -> None:
        _, on_response = self.asked.pop()
        on_response(ControllerRegistrationResponse(error_code=code))


def test_it_tells_its_listeners_and_what_it_supports() -> None:
    played = Played()
    request, _ = played.asked[0]
    assert (request.controller_id, request.incarnation_id) == (2, INCARNATION)
    (listener,) = request.listeners
    assert (listener.name, listener.host, listener.port) == ("CONTROLLER", "host", 4711)
    told = {
        each.name: (each.min_supported_version, each.max_supported_version)
        for each in request.features
    }
    assert told == SUPPORTED_FEATURES


def test_it_asks_again_until_it_is_registered() -> None:
    played = Played()
    played.answer(ErrorCode.REQUEST_TIMED_OUT)
    ((again, request),) = played.due
    again(request)
    played.due.clear()
    played.answer(ErrorCode.NONE)
    assert (played.asked, played.due) == ([], [])


def test_it_asks_no_more_once_its_node_stops() -> None:
    played = Played()
    played.answer(ErrorCode.REQUEST_TIMED_OUT)
    played.registration.close()
    assert played.due == []
    late = Played()
    late.registration.close()
    late.answer(ErrorCode.REQUEST_TIMED_OUT)
    assert late.due == []
