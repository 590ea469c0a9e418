"""Large decisions, made in steps, so that one request does not block the others.

A step is small because its records are one batch, which each node applies at once. Records that
belong together, such as those of a topic, are committed together, however many they are. The
controller makes no other decision between two steps. The limits of a request (`limits`) are checked
before its first record is returned.
"""

from collections.abc import Iterable, Iterator, Sequence

from broker.metadata.control.view import Decision, DecisionSteps
from common.kafka.protocol.message import Message

ITEMS_PER_STEP = 32
RECORDS_PER_STEP = 32


def decided(steps: DecisionSteps, *, is_large: bool) -> Decision | DecisionSteps:
    """Return a large decision as steps, and any other one as a whole."""
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
    """Yield the records, each unit within one step, and return the answer with the last step."""
    *others, last = _steps_of(units)
    for step in [*others, last]:
        if len(step) > RECORDS_PER_STEP:
            # One very large unit: write it in another turn than the one that has just built it.
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
