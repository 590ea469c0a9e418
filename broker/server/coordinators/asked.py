"""What a shard was asked and has answered, or will: a request may ask several.

AskedShard      one question; `response` is None until its shard has answered
when_answered   the answer of the request, made when the last of its questions is answered
answer_later    the same for a request that had to wait before it could ask
each_answered   the same, of what may be very many questions, with an answer to each
all_answered    waits in a walk, which goes on then
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from broker.protocol.message import Message
from broker.server.network.dispatch import Answer, AnswerWalk, Later, RequestContext
from broker.server.network.walks import (
    ITEMS_PER_STEP,
    QUICK_ITEMS_PER_STEP,
    Steps,
    Wait,
    each,
    emptied,
)

R = TypeVar("R")


class AskedShard:
    """Names one question to a shard; the shard's reply is put here."""

    __slots__ = ("context", "on_answered", "response", "shard_number")

    def __init__(self, context: RequestContext, shard_number: int = -1) -> None:
        self.context = context
        self.shard_number = shard_number
        self.response: object | None = None
        self.on_answered: Callable[[], None] = lambda: None

    def message(self) -> Message:
        """Give the reply as the answer of a request that asked nothing else."""
        assert isinstance(self.response, Message), self.response
        return self.response

    def answer(self, response: object) -> None:
        """Take the reply; once."""
        assert self.response is None, (self.response, response)
        self.response = response
        self.on_answered()


def answered(context: RequestContext, response: object) -> AskedShard:
    """Return a question that needs no shard: its group is not here."""
    asked = AskedShard(context)
    asked.response = response
    return asked


def when_answered(
    context: RequestContext, questions: Sequence[AskedShard], make: Callable[[], Message]
) -> Answer:
    """Return what the handler returns: the answer, or the promise of one."""
    if _is_answered(questions):
        return make()
    _on_answered(questions, lambda: context.reply(make()))
    return context.defer()


def answer_later(
    later: Later, questions: Sequence[AskedShard], make: Callable[[], Message]
) -> None:
    """Give the answer of a request that had to wait for something else before."""
    if _is_answered(questions):
        later.reply(make())
    else:
        _on_answered(questions, lambda: later.reply(make()))


def each_answered(
    context: RequestContext,
    questions: list[AskedShard],
    take: Callable[[AskedShard], R],
    make: Callable[[list[R]], Message],
) -> AnswerWalk:
    """Make the answer of what is taken from each question; of many in steps, and they are gone."""
    if len(questions) <= ITEMS_PER_STEP:
        return when_answered(context, questions, lambda: make([take(asked) for asked in questions]))
    yield from all_answered(questions)
    taken = yield from each(questions, take, QUICK_ITEMS_PER_STEP)
    yield from emptied(questions)
    return make(taken)


def all_answered(questions: Sequence[AskedShard]) -> Steps[None]:
    """Wait, in a walk, until every question is answered."""
    for number, asked in enumerate(questions, 1):
        if asked.response is None:
            yield _until_answered(asked)
        if not number % QUICK_ITEMS_PER_STEP:
            yield


def _until_answered(asked: AskedShard) -> Wait:
    def wait(go_on: Callable[[], None]) -> None:
        asked.on_answered = go_on

    return wait


def _is_answered(questions: Sequence[AskedShard]) -> bool:
    return all(asked.response is not None for asked in questions)


def _on_answered(questions: Sequence[AskedShard], proceed: Callable[[], None]) -> None:
    """Call `proceed` with the last answer."""
    open_count = sum(asked.response is None for asked in questions)

    def on_answered() -> None:
        nonlocal open_count
        open_count -= 1
        if not open_count:
            proceed()

    for asked in questions:
        asked.on_answered = on_answered
