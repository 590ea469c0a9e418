"""Requests and answers between the parts of a transaction simulation: delayed, lost and duplicated.

A call ends once: with the first answer that arrives, or with None after its timeout. An ordered
network stands for connections that the caller closes after a timeout: a request that has not
arrived by then is lost. On any other network a request may arrive twice, and long after the
timeout.
"""

from collections.abc import Callable
from typing import Any

from tests.sim.scheduler import Scheduler

OnAnswer = Callable[[Any], None]
Deliver = Callable[[OnAnswer], None]


class Network:
    """A network that loses and duplicates messages with the probability `loss`."""

    def __init__(self, scheduler: Scheduler, *, loss: float, is_ordered: bool) -> None:
        self._scheduler = scheduler
        self._random = scheduler.random
        self.loss = loss
        self._is_ordered = is_ordered

    def call(self, deliver: Deliver, on_answer: OnAnswer, *, timeout_ms: int = 300) -> None:
        """Send a request: `deliver` handles it, `on_answer` gets the answer."""
        call = _Call(on_answer)
        copies = 1 + (not self._is_ordered and self._random.random() < self.loss)
        for _ in range(copies):
            if self._random.random() >= self.loss:
                self._scheduler.after(self._delay_ms(), lambda: self._arrive(call, deliver))
        self._scheduler.after(timeout_ms, lambda: call.answer(None))

    def _arrive(self, call: "_Call", deliver: Deliver) -> None:
        if not (self._is_ordered and call.is_answered):
            deliver(lambda answer: self._send_back(call, answer))

    def _send_back(self, call: "_Call", answer: Any) -> None:
        if self._random.random() >= self.loss:
            self._scheduler.after(self._random.randint(0, 10), lambda: call.answer(answer))

    def _delay_ms(self) -> int:
        if self.loss and self._random.random() < 0.05:
            return self._random.randint(200, 8_000)
        return self._random.randint(0, 10)


class _Call:
    def __init__(self, on_answer: OnAnswer) -> None:
        self._on_answer = on_answer
        self.is_answered = False

    def answer(self, answer: Any) -> None:
        if not self.is_answered:
            self.is_answered = True
            self._on_answer(answer)
