"""The controller of the node that leads the quorum: one decision at a time, each committed first.

A request waits in a queue until the decision before it is committed and applied, so the controller
always decides on the committed image and no change is ever undone. The answer goes out when the
records of the decision are applied; without records at once. On one node alone all of this happens
within `submit`. A decision on very much comes in steps (`DecisionSteps`): each is committed and
applied like one of its own, and the loop looks at everybody else before the next; other decisions
wait until the last. So they do while a batch of very many records is made.

When the node leads no longer, everything that waits is refused with NOT_CONTROLLER: whether its
records become committed under another leader is not known, as after any lost connection.
"""

import logging
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, Protocol

from broker.errors import ErrorCode, KafkaError
from broker.metadata.control.view import Decision, DecisionSteps, Moment
from broker.protocol.message import Message
from broker.raft.config import NEVER_MS

log = logging.getLogger("millrace.controller")

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
        """Decide on a request; raises KafkaError for a refusal of it whole."""

    def tick(self, moment: Moment) -> list[Message]:
        """Do what is due."""

    def next_deadline_ms(self) -> int:
        """Give when `tick` has something to do, NEVER_MS when it has not."""

    def lose_broker(self, broker_id: int, moment: Moment) -> list[Message]:
        """Take note that a broker's process is gone."""


class Shell(NamedTuple):
    """What the controller needs of its node."""

    moment: Callable[[], Moment]
    append: Callable[[Sequence[Message]], Generator[None, None, int]]
    """Gives the end offset behind the records; raises KafkaError and has changed nothing.

    Of very many it makes one batch in steps, and appends it with the last."""
    refuse: Callable[[Message, int, KafkaError], Message]
    soon: Callable[[Callable[[], None]], None]
    """Lets the loop look at everybody else, then calls what it is given, then `advance`."""


class _Operation(NamedTuple):
    decide: Decide
    on_response: OnResponse
    refused: Callable[[KafkaError], Message | None]


_Walk = Generator[int | None, None, Message | None]


class _UnderWay(NamedTuple):
    operation: _Operation
    walk: _Walk


class ActiveController:
    """See the module. Invariant: at most one decision is in the log and not applied."""

    def __init__(self, controller: ControllerLike, leader_epoch: int, shell: Shell) -> None:
        self.leader_epoch = leader_epoch
        self.is_serving = False
        """Whether its first records are committed."""
        self._controller = controller
        self._shell = shell
        self._queue: deque[_Operation] = deque()
        self._under_way: _UnderWay | None = None
        self._awaited_offset: int | None = None
        """What has to be applied before it goes on."""
        self._is_turn_awaited = False
        """Whether it goes on when the loop has looked at everybody else."""
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
        """Queue that a broker's process is gone."""

        def decide(moment: Moment) -> Sequence[Message]:
            return self._controller.lose_broker(broker_id, moment)

        self._queue.append(_Operation(decide, _nobody, _no_answer))

    def advance(self, applied_offset: int, now_ms: int) -> None:
        """Answer what is committed, and decide until something has to be committed again."""
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
            # The request's outermost edge: the cluster goes on with what is appended, if anything.
            log.exception("a request failed in the controller")
            response = operation.refused(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            if self._awaited_offset is None:
                self._is_turn_awaited = True
                self._shell.soon(self._take_turn)
            return
        self._under_way = None
        self.is_serving = True  # What was carried out first is the activation.
        if response is not None:
            operation.on_response(response)

    def _take_turn(self) -> None:
        self._is_turn_awaited = False

    def _carry_out(self, operation: _Operation) -> _Walk:
        """Decide, and append what was decided.

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
        """Append what belongs together, and wait until it is applied."""
        if records:
            yield (yield from self._shell.append(records))

    def next_deadline_ms(self) -> int:
        """Give when `advance` has something to do though nothing was committed."""
        is_busy = self._under_way is not None
        return NEVER_MS if is_busy else self._controller.next_deadline_ms()

    @property
    def has_work(self) -> bool:
        """Whether `advance` would decide on something."""
        if self._under_way is None:
            return bool(self._queue)
        return self._awaited_offset is None and not self._is_turn_awaited

    def end(self) -> None:
        """Refuse everything that waits: this node does not lead any more."""
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
    """Take the answer to what nobody asked."""


def _no_answer(error: KafkaError) -> None:
    """Answer a refusal of what nobody asked."""
    log.warning("the controller refused its own work error=%s", error)
