"""A long decision comes in steps: each is applied, and others are looked at, before the next."""

from collections.abc import Callable, Generator, Sequence
from typing import Any

from broker.metadata.control.view import Decision, DecisionSteps, Moment
from broker.raft.config import NEVER_MS
from broker.server.quorum.controller.active_controller import ActiveController, Shell
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from common.kafka.protocol.records.metadata import RemoveTopicRecord


class Rules:
    """A controller that makes every decision in the steps it was given."""

    def __init__(self, *steps: int | KafkaError) -> None:
        self.steps = steps
        self.decided: list[int] = []
        self.ticks = 0
        self.deadline_ms = NEVER_MS

    def activate(self, moment: Moment) -> list[Message]:
        return []

    def handle(self, request: Any, api_version: int, moment: Moment) -> Decision | DecisionSteps:
        self.decided.append(request.timeout_ms)
        return self._handle(request) if request.timeout_ms else Decision(_answer(0))

    def _handle(self, request: Any) -> DecisionSteps:
        *others, last = self.steps
        for count in others:
            if isinstance(count, KafkaError):
                raise count
            yield _records(count)
        assert isinstance(last, int)
        return Decision(_answer(request.timeout_ms), _records(last))

    def tick(self, moment: Moment) -> list[Message]:
        self.ticks += 1
        self.deadline_ms = NEVER_MS
        return []

    def next_deadline_ms(self) -> int:
        return self.deadline_ms

    def lose_broker(self, broker_id: int, moment: Moment) -> list[Message]:
        return []

    def expire_tokens(self, moment: Moment) -> list[Message]:
        return []


class Node:
    """What surrounds it: a log, a loop, and what was answered."""

    def __init__(self, *steps: int | KafkaError) -> None:
        self.rules = Rules(*steps)
        self.log: list[Message] = []
        self.batch_steps = 0
        """Of each batch, before the one that appends it."""
        self.soon: list[Callable[[], None]] = []
        self.answers: list[Any] = []
        shell = Shell(lambda: Moment(0, 0, 0), self._append, _refused, self.soon.append)
        self.active = ActiveController(self.rules, 1, shell)
        self.advance()

    def _append(self, records: Sequence[Message]) -> Generator[None, None, int]:
        for _ in range(self.batch_steps):
            yield
        self.log += records
        return len(self.log)

    def ask(self, number: int) -> None:
        request = CreateTopicsRequest(timeout_ms=number)
        self.active.submit(request, 7, self.answers.append)
        self.advance()

    def advance(self) -> None:
        """Let everything that is in the log be applied."""
        applied = -1
        while applied < len(self.log):
            applied = len(self.log)
            self.active.advance(applied, 0)

    def take_turn(self) -> None:
        self.soon.pop(0)()
        assert self.active.has_work
        self.advance()


def _records(count: int) -> list[Message]:
    return [RemoveTopicRecord(topic_id=bytes(16))] * count


def _answer(number: int) -> Message:
    return CreateTopicsResponse(throttle_time_ms=number)


def _refused(request: Message, api_version: int, error: KafkaError) -> Message:
    return CreateTopicsResponse(throttle_time_ms=-int(error.code))


def numbers(node: Node) -> list[int]:
    return [answer.throttle_time_ms for answer in node.answers]


def test_the_loop_looks_at_others_between_two_steps() -> None:
    node = Node(3, 0, 2, 1)
    node.ask(7)
    seen = [len(node.log)]
    while node.soon:
        assert not node.answers
        assert not node.active.has_work
        node.take_turn()
        seen.append(len(node.log))
    assert seen == [3, 3, 5, 6]
    assert numbers(node) == [7]


def test_a_step_waits_until_the_one_before_is_applied() -> None:
    node = Node(3, 2, 1)
    node.active.submit(CreateTopicsRequest(timeout_ms=7), 7, node.answers.append)
    for applied in (0, 2):
        node.active.advance(applied, 0)
        assert not node.soon
    node.active.advance(3, 0)
    assert len(node.soon) == 1


def test_what_is_asked_meanwhile_is_decided_after_the_last_step() -> None:
    node = Node(1, 1, 1)
    node.ask(7)
    node.ask(0)
    node.rules.deadline_ms = 0
    assert node.active.next_deadline_ms() == NEVER_MS
    node.advance()
    assert node.rules.decided == [7]
    while node.soon:
        assert not node.rules.ticks
        node.take_turn()
    assert numbers(node) == [7, 0]
    assert node.rules.ticks == 1


def test_a_leader_that_ends_amid_the_steps_refuses_the_request() -> None:
    for applied_first in (True, False):
        node = Node(1, 1, 1)
        node.active.submit(CreateTopicsRequest(timeout_ms=7), 7, node.answers.append)
        node.active.advance(1 if applied_first else 0, 0)
        node.active.end()
        assert numbers(node) == [-ErrorCode.NOT_CONTROLLER]
        for take_turn in node.soon:
            take_turn()
        node.advance()
        assert len(node.answers) == 1


def test_a_batch_of_very_much_is_made_in_steps_and_others_wait_for_it() -> None:
    node = Node(0, 5)
    node.batch_steps = 3
    node.ask(7)
    node.ask(0)
    turns = 0
    while node.soon:
        assert not node.log, "it is appended whole"
        assert node.rules.decided == [7]
        assert not node.active.has_work
        node.take_turn()
        turns += 1
    assert turns == 1 + node.batch_steps
    assert len(node.log) == 5
    assert numbers(node) == [7, 0]


def test_a_leader_that_ends_amid_a_batch_has_appended_nothing_of_it() -> None:
    node = Node(0, 5)
    node.batch_steps = 3
    node.ask(7)
    node.take_turn()
    node.take_turn()
    node.active.end()
    assert numbers(node) == [-ErrorCode.NOT_CONTROLLER]
    for take_turn in node.soon:
        take_turn()
    node.advance()
    assert not node.log
    assert len(node.answers) == 1


def test_a_refusal_at_a_step_ends_it() -> None:
    node = Node(1, KafkaError(ErrorCode.POLICY_VIOLATION), 1)
    node.ask(7)
    node.take_turn()
    assert numbers(node) == [-ErrorCode.POLICY_VIOLATION]
    node.ask(0)
    assert numbers(node) == [-ErrorCode.POLICY_VIOLATION, 0]
