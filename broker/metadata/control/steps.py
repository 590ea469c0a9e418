"""Decisions on very much, made step by step: nobody waits long for one request.

A step is small because it is written, and applied by each node, in one piece. Records that belong
together, as those of a topic, are committed together, however many; between two steps no other
decision is made. So what a request may ask for whole (`limits`) is
checked before its first record is given.
"""

from collections.abc import Iterable, Iterator, Sequence

from broker.metadata.control.view import Decision, DecisionSteps
from broker.protocol.message import Message

ITEMS_PER_STEP = 32
RECORDS_PER_STEP = 32


def decided(steps: DecisionSteps, *, is_large: bool) -> Decision | DecisionSteps:
    """Return a decision on much as it is, and any other one whole."""
    if is_large:
        return steps
    records: list[Message] = []
    try:
        while True:
            records += next(steps)
    except StopIteration as done:
        decision: Decision = done.value
        return Decision(decision.response, [*records, *decision.records])


def committed(response: Message, units: Iterable[Sequence[Message]]) -> DecisionSteps:
    """Give the records, what belongs together in one step, and then the answer."""
    *others, last = _steps_of(units)
    for step in [*others, last]:
        if len(step) > RECORDS_PER_STEP:
            # One unit of very much, which has just been decided on: it is written in another turn.
            yield ()
        if step is not last:
            yield step
    return Decision(response, last)


def _steps_of(units: Iterable[Sequence[Message]]) -> Iterator[list[Message]]:
    step: list[Message] = []
    for unit in units:
        if step and len(step) + len(unit) > RECORDS_PER_STEP:
            yield step
            step = []
        step += unit
    yield step
