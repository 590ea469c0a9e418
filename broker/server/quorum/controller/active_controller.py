"""The controller of the node that leads the quorum: one decision at a time, each committed first.

A request waits in a queue until the decision before it is committed and applied, so the controller
always decides on the committed image and no change is ever undone. The answer is sent when the
records of the decision are applied; without records it is sent at once. On a single node all of
this happens within `submit`. A large decision has several steps (`DecisionSteps`): each is
committed and applied like a separate decision, and the loop serves other requests before the next
step; other decisions wait until the last step. They also wait while a batch of very many records is
made.

When the node leads no longer, all waiting requests are refused with NOT_CONTROLLER: it is unknown
whether their records are committed under another leader, as after a lost connection.
"""

import logging
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, Protocol

from broker.metadata.control.view import Decision, DecisionSteps, Moment
from broker.raft.config import NEVER_MS
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message

log = logging.getLogger("millstream.controller")

MAX_QUEUED = 10_000

OnResponse = Callable[[Message], None]
Decide = Callable[[Moment], Decision | DecisionSteps | Sequence[Message]]


class ControllerLike(Protocol):
    """The cluster's rules; the real ones are `broker.metadata.controller.Controller`."""

    def activate(self, moment: Moment) -> list[Message]:
        """Begin to lead."""

    def handle(
        self, request: Message, api_version: int, moment: Moment
    ) -> Decision | DecisionSteps:
        """Decide on a request; raises KafkaError to refuse the whole request."""

    def tick(self, moment: Moment) -> list[Message]:
        """Do the periodic work that is due."""

    def next_deadline_ms(self) -> int:
        """Return when `tick` has work to do, NEVER_MS if it has none."""

    def lose_broker(self, broker_id: int, moment: Moment) -> list[Message]:
        """Handle the end of a broker's process."""

    def expire_tokens(self, moment: Moment) -> list[Message]:
        """Remove the tokens whose time is over."""


class Shell(NamedTuple):
    """The functions of the node that the controller needs."""

    moment: Callable[[], Moment]
    append: Callable[[Sequence[Message]], Generator[None, None, int]]
    """Returns the end offset behind the records; raises KafkaError without any change.

    A batch of very many records is made in steps, and appended with the last step."""
    refuse: Callable[[Message, int, KafkaError], Message]
    soon: Callable[[Callable[[], None]], None]
    """Lets the loop serve other requests, then calls its argument, then `advance`."""


class _Operation(NamedTuple):
    decide: Decide
    on_response: OnResponse
    refused: Callable[[KafkaError], Message | None]


_Walk = Generator[int | None, None, Message | None]


class _UnderWay(NamedTuple):
    operation: _Operation
    walk: _Walk


class ActiveController:
    """Decides on requests. Invariant: at most one decision is in the log and not applied."""

    def __init__(self, controller: ControllerLike, leader_epoch: int, shell: Shell) -> None:
        self.leader_epoch = leader_epoch
        self.is_serving = False
        """True if its first records are committed."""
        self._controller = controller
        self._shell = shell
        self._queue: deque[_Operation] = deque()
        self._under_way: _UnderWay | None = None
        self._awaited_offset: int | None = None
        """The offset that has to be applied before it goes on."""
        self._is_turn_awaited = False
        """True if it goes on in a later turn of the loop."""
        self._begin(_Operation(controller.activate, _nobody, _no_answer))

    def submit(self, request: Message, api_version: int, on_response: OnResponse) -> None:
        """Queue a request; it is decided by `advance`."""

        def refused(error: KafkaError) -> Message:
            return self._shell.refuse(request, api_version, error)

        if len(self._queue) >= MAX_QUEUED:
            error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The controller has too much to do.")
            on_response(refused(error))
            return

        def decide(moment: Moment) -> Decision | DecisionSteps:
            return self._controller.handle(request, api_version, moment)

        self._queue.append(_Operation(decide, on_response, refused))

    def lose_broker(self, broker_id: int) -> None:
        """Queue the end of a broker's process."""

        def decide(moment: Moment) -> Sequence[Message]:
            return self._controller.lose_broker(broker_id, moment)

        self._queue.append(_Operation(decide, _nobody, _no_answer))

    def expire_tokens(self) -> None:
        """Queue the removal of expired tokens, which is not due by itself yet."""
        self._queue.append(_Operation(self._controller.expire_tokens, _nobody, _no_answer))

    def advance(self, applied_offset: int, now_ms: int) -> None:
        """Answer committed requests, and decide on others until records have to be committed."""
        while True:
            if self._under_way is not None:
                awaited_offset = self._awaited_offset
                is_applied = awaited_offset is None or applied_offset >= awaited_offset
                if self._is_turn_awaited or not is_applied:
                    return
                self._awaited_offset = None
                self._go_on(self._under_way)
            elif self._controller.next_deadline_ms() <= now_ms:
                self._begin(_Operation(self._controller.tick, _nobody, _no_answer))
                self._check_progress(now_ms)
            elif self._queue:
                self._begin(self._queue.popleft())
            else:
                return

    def _check_progress(self, now_ms: int) -> None:
        """A tick that neither changes anything nor moves its deadline would go on for ever."""
        is_over = self._under_way is not None or self._controller.next_deadline_ms() > now_ms
        assert is_over, "the controller's tick left its deadline behind"

    def _begin(self, operation: _Operation) -> None:
        self._under_way = _UnderWay(operation, self._carry_out(operation))
        self._go_on(self._under_way)

    def _go_on(self, under_way: _UnderWay) -> None:
        """Take the next step of an operation, and answer after the last."""
        operation = under_way.operation
        try:
            self._awaited_offset = next(under_way.walk)
        except StopIteration as done:
            response = done.value
        except KafkaError as error:
            response = operation.refused(error)
        except OSError:
            raise
        except Exception:
            # The request's outermost edge: the cluster goes on with the records appended so far.
            log.exception("a request failed in the controller")
            response = operation.refused(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            if self._awaited_offset is None:
                self._is_turn_awaited = True
                self._shell.soon(self._take_turn)
            return
        self._under_way = None
        self.is_serving = True  # The first operation is the activation.
        if response is not None:
            operation.on_response(response)

    def _take_turn(self) -> None:
        self._is_turn_awaited = False

    def _carry_out(self, operation: _Operation) -> _Walk:
        """Decide, and append the records of the decision.

        Yields an offset that has to be applied before it goes on, or None for a turn of the loop;
        returns the answer.
        """
        decided = operation.decide(self._shell.moment())
        if isinstance(decided, Generator):
            decided = yield from self._take_steps(decided)
        response = decided.response if isinstance(decided, Decision) else None
        yield from self._append(decided.records if isinstance(decided, Decision) else decided)
        return response

    def _take_steps(self, steps: DecisionSteps) -> Generator[int | None, None, Decision]:
        while True:
            try:
                records = next(steps)
            except StopIteration as done:
                decision: Decision = done.value
                return decision
            yield from self._append(records)
            yield None

    def _append(self, records: Sequence[Message]) -> Generator[int | None, None, None]:
        """Append the records of one step, and wait until they are applied."""
        if records:
            yield (yield from self._shell.append(records))

    def next_deadline_ms(self) -> int:
        """Return when `advance` has work to do without a new commit."""
        is_busy = self._under_way is not None
        return NEVER_MS if is_busy else self._controller.next_deadline_ms()

    @property
    def has_work(self) -> bool:
        """True if `advance` would decide on a request."""
        if self._under_way is None:
            return bool(self._queue)
        return self._awaited_offset is None and not self._is_turn_awaited

    def end(self) -> None:
        """Refuse all waiting requests: this node is no longer the leader."""
        error = KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the active controller.")
        waiting = list(self._queue)
        if self._under_way is not None:
            waiting.insert(0, self._under_way.operation)
            self._under_way = None
        self._queue.clear()
        self.is_serving = False
        for operation in waiting:
            response = operation.refused(error)
            if response is not None:
                operation.on_response(response)


def _nobody(response: Message) -> None:
    """Drop the answer of an operation without a request."""


def _no_answer(error: KafkaError) -> None:
    """Log the refusal of an operation without a request."""
    log.warning("the controller refused its own work error=%s", error)
