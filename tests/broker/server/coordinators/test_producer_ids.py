"""Producer ids come from blocks; the next block is asked for before the last one is used up."""

from typing import Any

from broker.server.coordinators.producer_ids import ASK_WHEN_LEFT, ProducerIds
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse


class Controller:
    """Gives blocks of a thousand when the test lets it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.next_start = 0
        self.ids = ProducerIds(1, broker_epoch=lambda: 7, ask=self.ask)

    def ask(self, request: Any, version: int, on_response: Any, *, timeout_ms: int) -> None:
        self.asked.append(on_response)

    def answer(self, code: ErrorCode = ErrorCode.NONE, length: int = 1_000) -> None:
        start, self.next_start = self.next_start, self.next_start + length
        self.asked.pop(0)(
            AllocateProducerIdsResponse(
                error_code=code, producer_id_start=start, producer_id_len=length
            )
        )


def test_who_comes_before_the_block_is_served_in_order():
    controller = Controller()
    given = [controller.ids.take() for _ in range(3)]
    assert not any(later.is_done for later in given)
    assert len(controller.asked) == 1
    controller.answer()
    assert [later.value for later in given] == [0, 1, 2]


def test_the_next_block_is_there_in_time():
    controller = Controller()
    controller.ids.take_now()
    controller.answer()
    for number in range(1_000):
        assert len(controller.asked) == (number > 1_000 - ASK_WHEN_LEFT)
        assert controller.ids.take_now() == number
    controller.answer()
    assert controller.ids.take_now() == 1_000


def test_an_id_that_was_given_back_is_given_to_the_next():
    controller = Controller()
    assert not controller.ids.are_at_hand
    taken = controller.ids.take()
    controller.answer()
    assert controller.ids.are_at_hand
    controller.ids.give_back(taken.value)
    assert [controller.ids.take_now() for _ in range(2)] == [0, 1]


def test_a_refusal_is_told_as_one_that_clients_try_again():
    controller = Controller()
    refused = controller.ids.take()
    controller.answer(ErrorCode.STALE_BROKER_EPOCH)
    assert refused.value is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    given = controller.ids.take()
    controller.answer()
    assert given.value == 1_000
