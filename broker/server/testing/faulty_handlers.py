"""Stands around every handler of a broker under test: notes the call, and does what rules say."""

import asyncio
from collections.abc import Callable, Generator
from copy import copy
from functools import partial
from typing import NamedTuple

from broker.faults.asked import NameOf, asked_by
from broker.faults.calls import CallLog, Noted, errors_of
from broker.faults.refusals import Error, refuse
from broker.faults.rule import Call, FaultKind, Rule
from broker.faults.rule_book import Armed, RuleBook
from broker.server.network.dispatch import NO_RESPONSE, Answer, Handler, RequestContext
from broker.server.network.later import Steps
from broker.server.testing import breaking
from broker.server.testing.damage import damaged
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.fetch import FetchResponse

Listed = Callable[[Message], Message | None]
"""Returns a request with the partitions that it names in its session, None if it has no session."""


class Surroundings(NamedTuple):
    """What the handlers under test need of their broker."""

    loop: asyncio.AbstractEventLoop
    timestamp_ms: Callable[[], int]
    seconds: Callable[[], float]
    """Monotonic, for durations."""
    name_of: NameOf
    listed: Listed
    is_of_broker: Callable[[RequestContext, Message], bool]
    """True for a request of another node: no rule acts on it unless it names the client id."""


class FaultyHandlers:
    """Makes handlers that meet the rules first."""

    def __init__(self, rules: RuleBook, calls: CallLog, around: Surroundings) -> None:
        self._rules = rules
        self._calls = calls
        self._around = around

    def handler_of(self, make: Callable[[int], Handler | None], api_key: int) -> Handler | None:
        """Return the handler that `make` makes, with the rules before it."""
        handler = make(api_key)
        return None if handler is None else self.around(handler)

    def around(self, handler: Handler) -> Handler:
        """Return a handler with the rules before it."""
        return partial(self._handle, handler)

    def _handle(
        self, handler: Handler, context: RequestContext, request: Message | None
    ) -> Answer | Steps[Answer]:
        if request is None:  # ApiVersions in a version that nobody knows
            return handler(context, None)
        is_of_broker = self._around.is_of_broker(context, request)
        if is_of_broker and self._rules.is_empty:
            return handler(context, request)
        listed = self._around.listed(request)
        call = self._call(context, request if listed is None else listed, is_of_broker)
        hits = self._rules.hits_on(call)
        if is_of_broker and not hits:
            return handler(context, request)
        work = _Work(handler, context, request, listed, hits)
        watch = _Watch(self._calls.note(call, self._around.timestamp_ms()), self._around.seconds)
        watch.noted.faults = [armed.rule_id for armed in hits]
        if hits:
            return watch.later(self._answer(work))
        try:
            answer = handler(context, request)
        except KafkaError as error:
            watch.refused(error)
            raise
        if isinstance(answer, Generator):
            return watch.later(answer)
        watch.answered(answer)
        return answer

    def _call(self, context: RequestContext, request: Message, is_of_broker: bool) -> Call:
        return Call(
            api_key=context.header.api_key,
            version=context.api_version,
            client_id=context.header.client_id or "",
            principal=context.connection.peer.principal,
            asked=asked_by(request, context.api_version, self._around.name_of),
            is_of_broker=is_of_broker,
        )

    def _answer(self, work: "_Work") -> Steps[Answer]:
        """Do what the rules say, and the work where they let it be done."""
        rules = [armed.rule for armed in work.hits]
        delays = [rule for rule in rules if rule.kind is FaultKind.DELAY]
        rule = next((rule for rule in rules if rule.kind is not FaultKind.DELAY), None)
        before_ms = sum(each.ms for each in delays if not each.after)
        if before_ms:
            yield breaking.Pause(self._around.loop, before_ms)
        answer = yield from self._do(rule, work)
        after_ms = sum(each.ms for each in delays if each.after)
        if after_ms:
            yield breaking.Pause(self._around.loop, after_ms)
        return answer

    def _do(self, rule: Rule | None, work: "_Work") -> Steps[Answer]:
        connection = work.context.connection
        kind = None if rule is None else rule.kind
        if rule is None:
            return (yield from work.done())
        if kind is FaultKind.ERROR:
            return (yield from self._refused(rule, work))
        if kind in (FaultKind.LOSE_REQUEST, FaultKind.BLACK_HOLE):
            return (yield from breaking.never())
        if kind in (FaultKind.CLOSE, FaultKind.RESET):
            if rule.after:
                yield from work.done()
            return breaking.close(connection, resets=kind is FaultKind.RESET)
        answer = yield from work.done()
        if kind is FaultKind.LOSE_ANSWER:
            return (yield from breaking.never())
        if kind is FaultKind.TEAR:
            return breaking.tear(work.context, answer, rule.bytes)
        if kind is FaultKind.THROTTLE:
            return self._throttled(rule, work.context, answer)
        if kind is FaultKind.DAMAGE_RECORDS and isinstance(answer, FetchResponse):
            return damaged(answer, rule, self._around.name_of)
        return answer

    def _refused(self, rule: Rule, work: "_Work") -> Steps[Answer]:
        """Answer with an error; the part of the request that is not refused is done."""
        place = rule.place(work.context.header.api_key, work.context.api_version)
        assert rule.error is not None, rule
        assert place is not None, rule
        error = Error(int(rule.error), place, rule.wanted, work.context.api_version)
        if rule.after:
            refusal = refuse(
                work.request, error, self._around.name_of, listed=work.listed, is_after=True
            )
            worked = yield from work.done()
            return refusal.complete(worked) if isinstance(worked, Message) else worked
        refusal = refuse(work.request, error, self._around.name_of, listed=work.listed)
        if getattr(work.request, "acks", None) == 0:
            # Kafka has no other way to tell of an error: a producer with acks=0 reads no answer.
            return breaking.close(work.context.connection, resets=False)
        if not refusal.needs_work:
            return refusal.alone()
        for name in ("max_wait_ms", "min_bytes", "max_records"):
            if hasattr(work.request, name):  # An error is answered at once, without a wait.
                setattr(work.request, name, 0)
        worked = yield from work.done()
        return refusal.complete(worked) if isinstance(worked, Message) else worked

    def _throttled(self, rule: Rule, context: RequestContext, answer: Answer) -> Answer:
        """Tell the client to wait, and read nothing from it for this time (KIP-219)."""
        if isinstance(answer, Message) and hasattr(answer, "throttle_time_ms"):
            answer = copy(answer)
            answer.throttle_time_ms = max(answer.throttle_time_ms, rule.ms)
        context.connection.mute(breaking.Pause(self._around.loop, rule.ms))
        return answer


class _Work(NamedTuple):
    """What a handler is to do."""

    handler: Handler
    context: RequestContext
    request: Message
    listed: Message | None
    hits: list[Armed]

    def done(self) -> Steps[Answer]:
        """Do it."""
        answer = self.handler(self.context, self.request)
        if isinstance(answer, Generator):
            answer = yield from answer
        return answer


class _Watch:
    """Notes when and with what a call is answered."""

    def __init__(self, noted: Noted, seconds: Callable[[], float]) -> None:
        self.noted = noted
        self._seconds = seconds
        self._began = seconds()

    def answered(self, answer: Answer) -> None:
        self.noted.duration_ms = round((self._seconds() - self._began) * 1_000, 3)
        if answer is not NO_RESPONSE:
            self.noted.errors = errors_of(answer, self.noted.call.version)

    def refused(self, error: KafkaError) -> None:
        self.answered(NO_RESPONSE)
        self.noted.errors = [ErrorCode(error.code).name]

    def later(self, steps: Steps[Answer]) -> Steps[Answer]:
        try:
            answer = yield from steps
        except KafkaError as error:
            self.refused(error)
            raise
        self.answered(answer)
        return answer
