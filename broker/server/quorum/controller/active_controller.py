"""The controller of the node that leads the quorum: one decision at a time, each committed first.

A request waits in a queue until the decision before it is committed and applied, so the controller
always decides on the committed image and no change is ever undone. The answer goes out when the
records of the decision are applied; without records at once. On one node alone all of this happens
within `submit`. A decision on very much comes in steps (`DecisionSteps`): each is committed and
applied like one of its own, and the loop looks at everybody else before the next; other decisions
wait until the last.

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
    append: Callable[[Sequence[Message]], int]
    """Gives the end offset behind the records; raises KafkaError and has changed nothing."""
    refuse: Callable[[Message, int, KafkaError], Message]
    soon: Callable[[Callable[[], None]], None]
    """Lets the loop look at everybody else, then calls what it is given, then `advance`."""


class _Operation(NamedTuple):
    decide: Decide
    on_response: OnResponse
    refused: Callable[[KafkaError], Message | None]


class ActiveController:
    """See the module. Invariant: at most one decision is in the log and not applied."""

    def __init__(self, controller: ControllerLike, leader_epoch: int, shell: Shell) -> None:
        self.leader_epoch = leader_epoch
        self.is_serving = False
        """Whether its first records are committed."""
        self._controller = controller
        self._shell = shell
        self._queue: deque[_Operation] = deque()
        self._awaited_offset = -1
        self._in_flight = _Operation(controller.activate, _nobody, _no_answer)
        self._on_applied: Callable[[], None] | None = None
        self._steps: DecisionSteps | None = None
        """What is left of a decision that comes in steps; `_in_flight` is its request."""
        self._is_step_due = False
        self._perform(self._in_flight, self._begin_to_serve)

    def _begin_to_serve(self) -> None:
        self.is_serving = True

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
            if self._on_applied is not None:
                if applied_offset < self._awaited_offset:
                    return
                on_applied, self._on_applied = self._on_applied, None
                on_applied()
            elif self._steps is not None:
                if not self._is_step_due:
                    return
                self._is_step_due = False
                self._perform(self._in_flight)
            elif self._controller.next_deadline_ms() <= now_ms:
                self._perform(_Operation(self._controller.tick, _nobody, _no_answer))
                self._check_progress(now_ms)
            elif self._queue:
                self._perform(self._queue.popleft())
            else:
                return

    def _check_progress(self, now_ms: int) -> None:
        """A tick that neither changes anything nor moves its deadline would go on for ever."""
        is_over = self._on_applied is not None or self._controller.next_deadline_ms() > now_ms
        assert is_over, "the controller's tick left its deadline behind"

    def _perform(self, operation: _Operation, on_done: Callable[[], None] = lambda: None) -> None:
        """Decide, and answer when the decision is committed; without records at once."""
        self._in_flight = operation
        response, awaited_offset = self._decide(operation)

        def finish() -> None:
            on_done()
            if self._steps is not None:
                self._shell.soon(self._take_step)
            elif response is not None:
                operation.on_response(response)

        if awaited_offset is None:
            finish()
        else:
            self._awaited_offset, self._on_applied = awaited_offset, finish

    def _take_step(self) -> None:
        self._is_step_due = True

    def _decide(self, operation: _Operation) -> tuple[Message | None, int | None]:
        """Give the answer, and the offset that has to be applied before it is given."""
        try:
            decided = self._next_of(operation)
            response = decided.response if isinstance(decided, Decision) else None
            records = decided.records if isinstance(decided, Decision) else decided
            return response, self._shell.append(records) if records else None
        except KafkaError as error:
            self._steps = None
            return operation.refused(error), None
        except OSError:
            raise
        except Exception:
            # The request's outermost edge: the cluster goes on with what is appended, if anything.
            self._steps = None
            log.exception("a request failed in the controller")
            return operation.refused(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)), None

    def _next_of(self, operation: _Operation) -> Decision | Sequence[Message]:
        """Decide, or take the next step of what is being decided."""
        if self._steps is None:
            decided = operation.decide(self._shell.moment())
            if not isinstance(decided, Generator):
                return decided
            self._steps = decided
        try:
            return next(self._steps)
        except StopIteration as done:
            self._steps = None
            decision: Decision = done.value
            return decision

    def next_deadline_ms(self) -> int:
        """Give when `advance` has something to do though nothing was committed."""
        is_busy = self._on_applied is not None or self._steps is not None
        return NEVER_MS if is_busy else self._controller.next_deadline_ms()

    @property
    def has_work(self) -> bool:
        """Whether `advance` would decide on something."""
        if self._on_applied is not None:
            return False
        return bool(self._queue) if self._steps is None else self._is_step_due

    def end(self) -> None:
        """Refuse everything that waits: this node does not lead any more."""
        error = KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the active controller.")
        waiting = list(self._queue)
        if self._on_applied is not None or self._steps is not None:
            self._on_applied = self._steps = None
            waiting.insert(0, self._in_flight)
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
