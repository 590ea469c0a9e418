"""What a shard was asked and has answered, or will: a request may ask several.

AskedShard      one question; `response` is None until its shard has answered
when_answered   the answer of the request, made when the last of its questions is answered
all_answered    the same for a walk, which goes on then
"""

from collections.abc import Callable, Sequence

from broker.protocol.message import Message
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.walks import Steps


class AskedShard:
    """Names one question to a shard; the shard's reply is put here."""

    __slots__ = ("context", "on_answered", "response", "shard_number")

    def __init__(self, context: RequestContext, shard_number: int = -1) -> None:
        self.context = context
        self.shard_number = shard_number
        self.response: object | None = None
        self.on_answered: Callable[[], None] = lambda: None

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
    open_count = sum(asked.response is None for asked in questions)
    if not open_count:
        return make()

    def on_answered() -> None:
        nonlocal open_count
        open_count -= 1
        if not open_count:
            context.reply(make())

    for asked in questions:
        asked.on_answered = on_answered
    return context.defer()


def all_answered(questions: Sequence[AskedShard]) -> Steps[None]:
    """Wait, in a walk, until every question is answered."""
    open_count = sum(asked.response is None for asked in questions)
    if not open_count:
        return

    def wait(go_on: Callable[[], None]) -> None:
        def on_answered() -> None:
            nonlocal open_count
            open_count -= 1
            if not open_count:
                go_on()

        for asked in questions:
            asked.on_answered = on_answered

    yield wait
