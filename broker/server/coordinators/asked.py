"""What a shard was asked and has answered, or will: a request may ask several.

AskedShard      one question; `response` is None until its shard has answered
when_answered   the answer of the request, made when the last of its questions is answered
answer_later    the same for a request that had to wait before it could ask
all_answered    the same for a walk, which goes on then
"""

from collections.abc import Callable, Sequence

from broker.protocol.message import Message
from broker.server.network.dispatch import Answer, Later, RequestContext
from broker.server.network.walks import Steps


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


def all_answered(questions: Sequence[AskedShard]) -> Steps[None]:
    """Wait, in a walk, until every question is answered."""
    if not _is_answered(questions):
        yield lambda go_on: _on_answered(questions, go_on)


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
