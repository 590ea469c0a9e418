"""What a broker asks of the controller when the connection to it is lost."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from broker.metadata.controller import refuse
from broker.server.quorum.controller import controller_channel
from broker.server.quorum.controller.controller_channel import ControllerChannel
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from tests.lib.served_replica import SimulatedLoop

VERSION = 3
REQUEST = AlterPartitionRequest(broker_id=1)
DONE = AlterPartitionResponse()
ELSEWHERE = AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)


class Connection:
    """Keeps what is sent; the test answers it."""

    def __init__(self, loop: object, address: tuple[str, int], settings: object) -> None:
        self.address = address

    def ask(
        self, request: Message, version: int, timeout_ms: int, on_answer: Callable[..., None]
    ) -> None:
        SENT.append((self.address[1], on_answer))

    def close(self) -> None: ...


SENT: list[tuple[int, Callable[[Message | None], None]]] = []


class Scene:
    """A channel of broker 1; nodes 2 and 3 are controllers."""

    def __init__(self) -> None:
        SENT.clear()
        self.loop: Any = SimulatedLoop()
        self.leadership: Any = SimpleNamespace(node_id=1, leader_id=2, is_serving=False)
        addresses = {node_id: ("c", node_id) for node_id in (2, 3)}
        settings: Any = SimpleNamespace(retry_backoff_ms=20)
        self.channel = ControllerChannel(
            self.loop,
            lambda: int(self.loop.now_ms),
            self.leadership,
            addresses.get,
            settings,
            refuse,
        )
        self.answers: list[Any] = []

    def ask(self, *, is_sent_once: bool = True) -> None:
        self.channel.ask(
            REQUEST, VERSION, self.answers.append, timeout_ms=1_000, is_sent_once=is_sent_once
        )

    def answer(self, answer: Message | None) -> None:
        """Answer what was sent last, and let a back-off pass."""
        SENT[-1][1](answer)
        self.loop.advance(20)

    @property
    def errors(self) -> list[ErrorCode]:
        return [ErrorCode(answer.error_code) for answer in self.answers]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(controller_channel, "ClientConnection", Connection)
    return Scene()


def test_a_lost_connection_is_tried_again(scene: Scene):
    scene.ask(is_sent_once=False)
    scene.answer(None)
    assert (len(SENT), scene.answers) == (2, [])
    scene.answer(DONE)
    assert scene.answers == [DONE]


def test_a_request_that_is_sent_once_is_told_of_its_lost_connection(scene: Scene):
    scene.ask()
    scene.answer(None)
    assert (len(SENT), scene.errors) == (1, [ErrorCode.REQUEST_TIMED_OUT])
    scene.ask()
    scene.answer(DONE)
    assert (len(SENT), scene.answers[1:]) == (2, [DONE])


def test_a_request_that_is_sent_once_is_told_when_the_controller_has_moved_on(scene: Scene):
    scene.ask()
    scene.ask(is_sent_once=False)
    scene.leadership.leader_id = 3
    scene.channel.on_leader_change()
    assert scene.errors == [ErrorCode.REQUEST_TIMED_OUT]
    assert [port for port, _ in SENT] == [2, 3]
    scene.answer(DONE)
    assert scene.answers[1:] == [DONE]


def test_a_request_that_was_never_sent_waits_for_a_controller(scene: Scene):
    scene.leadership.leader_id = -1
    scene.ask()
    scene.leadership.leader_id = 3
    scene.channel.on_leader_change()
    scene.answer(DONE)
    assert scene.answers == [DONE]


def test_an_answer_that_the_controller_is_elsewhere_is_no_loss(scene: Scene):
    scene.ask()
    scene.answer(ELSEWHERE)
    scene.answer(DONE)
    assert (len(SENT), scene.answers) == (2, [DONE])
