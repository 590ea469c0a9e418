"""Measures each request of a client with quotas, and mutes the client that has used too much.

While no client has a quota, the dispatcher calls nothing of this module. When one has, `Metering`
stands before the dispatcher and around every handler:

- the bytes of Produce and Fetch, and the time that the loop spends on a request, are recorded when
  the answer is made, also when they exceed the quota: no request is too large for its quota;
- if a rate is above its quota then, the answer says how long the rate needs to fall
  (`throttle_time_ms`), and the connection is muted for that time (KIP-219): nothing is read from
  it, so a client that ignores its answers is held as well;
- a Fetch that begins while the rate is too high, from another connection of the same client, is
  answered without records, and a ShareFetch acquires none.

The time of a request is that of receiving, decoding, the handler's steps, encoding and sending, as
a percentage of the one thread that serves clients. A turn of a connection begins with the receiving
and ends with the sending, so its first request is charged from the begin of the turn, and its last
one until the loop goes on.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping
from functools import partial

from broker.quotas.accounts import Account, Accounts, Metered
from broker.quotas.client_quotas import QuotaEntity
from broker.quotas.rate import RateLimit, TokenBucket
from broker.server.network.connection import Connection
from broker.server.network.dispatch import (
    NO_RESPONSE,
    Answer,
    Dispatcher,
    Handler,
    OnFrame,
    RequestContext,
)
from broker.server.network.later import Later, Making, Steps
from broker.server.network.sending import Part
from broker.server.network.turns import TURN_SECONDS, Turns
from broker.server.quotas.mutations import LIMITED_APIS, Mutations, PartitionCount
from broker.server.quotas.sizes import BETWEEN_BROKERS, fetched_bytes, produced_bytes
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.fetch import FetchRequest, FetchResponse
from common.kafka.protocol.messages.produce import ProduceRequest
from common.kafka.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

PERCENT_PER_SECOND = 100.0
INT32_MAX = 2**31 - 1


class Charge:
    """One request: its client once that is known, the time it has taken, the wait it imposed."""

    __slots__ = ("account", "api_key", "began", "outer", "spent", "wait_ms")

    def __init__(self) -> None:
        self.account: Account | None = None
        self.api_key = 0
        self.began = 0.0
        """When the step under way began, in seconds."""
        self.spent = 0.0
        """The seconds of steps that are not recorded yet."""
        self.outer: Charge | None = None
        """The request within whose step this step runs: an append answers waiting fetches."""
        self.wait_ms = 0


class Muting(Later):
    """The end of the time for which a connection is muted."""

    __slots__ = ("_forget", "timer")

    def __init__(self, forget: "Callable[[Muting], None]") -> None:
        super().__init__(holds=True)
        self._forget = forget
        self.timer: asyncio.TimerHandle | None = None

    def end(self) -> None:
        """Let the connection go on."""
        self._stop()
        self.done()

    def abandon(self) -> None:
        """Forget a connection that is closed."""
        self._stop()
        super().abandon()

    def _stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self._forget(self)


class Metering:
    """Owns the accounts of a broker's clients. Invariant: the charges under way form a stack."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        accounts: Accounts,
        dispatcher: Dispatcher,
        *,
        hold_fetch: Callable[[], Handler],
        partition_count_of: PartitionCount,
        turns: Turns,
    ) -> None:
        """`hold_fetch` makes the handler that answers a Fetch without records."""
        self._loop = loop
        self._accounts = accounts
        self._dispatcher = dispatcher
        self._make_hold_fetch = hold_fetch
        self._turns = turns
        self._now = turns.now
        self._last: Account | None = None
        """The client of the step that ended last, until what follows is charged to it."""
        self._last_ended = 0.0
        self._mutations = Mutations(partition_count_of, self._now_ms)
        self._charge: Charge | None = None
        self._muted: set[Muting] = set()

    def change(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Use other quotas. Muted clients go on: the next request finds what they have used."""
        self._accounts.change(quotas, self._now_ms())
        self._dispatcher.meter_with(None if self._accounts.is_empty else self)
        for muting in list(self._muted):
            muting.end()

    def _now_ms(self) -> int:
        return int(self._now() * 1_000)

    # --- around the dispatcher ---

    def on_frame(
        self, answer_frame: OnFrame, connection: Connection, frame: memoryview
    ) -> list[Part] | Making | None:
        """Answer a frame, and mute its connection if its client has used too much."""
        charge = Charge()
        turn_began = self._turns.ends - TURN_SECONDS
        self._settle(turn_began)
        self._begin(charge)
        if turn_began > self._last_ended and charge.outer is None:
            charge.began = turn_began
        try:
            answer = answer_frame(connection, frame)
        finally:
            self._end(charge)
        if isinstance(answer, Generator):
            return self._in_steps(connection, charge, answer)
        self._record_time(charge)
        return self._then_muted(connection, charge, answer) if charge.wait_ms else answer

    def _begin(self, charge: Charge) -> None:
        """Begin a step; the time of the step around it stops."""
        charge.began = now = self._now()
        charge.outer = outer = self._charge
        if outer is not None:
            outer.spent += now - outer.began
        self._charge = charge

    def _end(self, charge: Charge) -> None:
        now = self._now()
        charge.spent += now - charge.began
        self._charge = outer = charge.outer
        charge.outer = None
        if outer is not None:
            outer.began = now
        elif charge.account is not None and charge.account.requests is not None:
            if self._last is None:
                self._loop.call_soon(self._on_turn_over)
            self._last, self._last_ended = charge.account, now

    def _on_turn_over(self) -> None:
        self._settle(self._now())

    def _settle(self, at: float) -> None:
        """Charge the time from the last step until `at` to its client: it was for its answer."""
        account, self._last = self._last, None
        seconds = at - self._last_ended
        if account is not None and account.requests is not None and seconds > 0:
            account.requests.used.record(seconds * PERCENT_PER_SECOND, self._now_ms())
            self._last_ended = at

    def _record_time(self, charge: Charge) -> None:
        """Record the time since the answer was made, or all of it if a handler refused."""
        account = charge.account
        if account is not None and account.requests is not None:
            now_ms = self._now_ms()
            account.requests.used.record(charge.spent * PERCENT_PER_SECOND, now_ms)
            charge.wait_ms = charge.wait_ms or account.requests.excess_ms(now_ms)
        charge.spent = 0.0

    def _in_steps(self, connection: Connection, charge: Charge, steps: Making) -> Making:
        value = None
        while True:
            self._begin(charge)
            try:
                awaited = steps.send(value)
            except StopIteration as done:
                self._end(charge)
                self._record_time(charge)
                if charge.wait_ms:
                    self._mute(connection, charge)
                parts: list[Part] | None = done.value
                return parts
            except BaseException:
                self._end(charge)
                raise
            self._end(charge)
            value = yield awaited

    def _then_muted(
        self, connection: Connection, charge: Charge, parts: list[Part] | None
    ) -> Making:
        self._mute(connection, charge)
        return parts
        yield  # A generator: its connection has a place for the answer before it is muted.

    def _mute(self, connection: Connection, charge: Charge) -> None:
        seconds = charge.wait_ms / 1_000
        self._dispatcher.times[charge.api_key].note("throttletimems", seconds)
        muting = Muting(self._muted.discard)
        self._muted.add(muting)
        muting.timer = self._loop.call_later(seconds, muting.end)
        connection.mute(muting)

    # --- around the handlers ---

    def metered(self, api_key: int, handler: Handler) -> Handler:
        """Return the handler with the recording of its requests."""
        key = ApiKey(api_key)
        if key in LIMITED_APIS:
            return partial(self._handle_mutations, handler)
        if key is ApiKey.FETCH:
            return partial(self._handle_fetch, handler, self._make_hold_fetch())
        if key is ApiKey.SHARE_FETCH:
            return partial(self._handle_share_fetch, handler)
        return partial(self._handle, handler, BETWEEN_BROKERS.get(key))

    def _account(self, context: RequestContext) -> Account:
        charge = self._charge
        assert charge is not None, "a handler runs within a step"
        user = context.connection.peer.principal.partition(":")[2]
        account = self._accounts.of(user, context.header.client_id or "", self._now_ms())
        charge.account = account
        charge.api_key = context.header.api_key
        return account

    def _handle(
        self,
        handler: Handler,
        is_of_broker: Callable[..., bool] | None,
        context: RequestContext,
        request: Message,
    ) -> Answer | Steps[Answer]:
        if is_of_broker is not None and is_of_broker(request, context.api_version):
            return handler(context, request)
        account = self._account(context)
        if isinstance(request, ProduceRequest):
            amount = produced_bytes(request)
            return self._charged(account.producer, amount, handler(context, request))
        return self._charged(None, 0, handler(context, request))

    def _handle_fetch(
        self, handler: Handler, hold: Handler, context: RequestContext, request: FetchRequest
    ) -> Answer | Steps[Answer]:
        if BETWEEN_BROKERS[ApiKey.FETCH](request, context.api_version):
            return handler(context, request)
        account = self._account(context)
        consumer = account.consumer
        if consumer is None:
            return self._charged(None, 0, handler(context, request))
        used = consumer.used
        assert isinstance(used, RateLimit), consumer.key
        if used.is_exceeded(self._now_ms()):
            return self._charged(consumer, 0, hold(context, request))
        most_bytes = int(used.limit_per_second * used.window_ms / 1_000 * (used.window_count - 1))
        request.max_bytes = min(request.max_bytes, max(most_bytes, 1))
        request.min_bytes = min(request.min_bytes, request.max_bytes)
        return self._charged(consumer, None, handler(context, request))

    def _handle_share_fetch(
        self, handler: Handler, context: RequestContext, request: ShareFetchRequest
    ) -> Answer | Steps[Answer]:
        """Let a member above its quota acknowledge what it has, and acquire nothing."""
        consumer = self._account(context).consumer
        if consumer is None:
            return self._charged(None, 0, handler(context, request))
        used = consumer.used
        assert isinstance(used, RateLimit), consumer.key
        if used.is_exceeded(self._now_ms()):
            request.max_records = 0
        return self._charged(consumer, None, handler(context, request))

    def _handle_mutations(
        self, handler: Handler, context: RequestContext, request: Message
    ) -> Answer | Steps[Answer]:
        account = self._account(context)
        mutations = account.mutations
        if mutations is None:
            return self._charged(None, 0, handler(context, request))
        bucket = mutations.used
        assert isinstance(bucket, TokenBucket), mutations.key
        answer = self._mutations.limited(bucket, handler, context, request)
        return self._charged(mutations, 0, answer)

    def _charged(
        self, quota: Metered | None, amount: int | None, answer: Answer | Steps[Answer]
    ) -> Answer | Steps[Answer]:
        """Record the amount, None for that of a Fetch's answer, and tell the client to wait."""
        charge = self._charge
        assert charge is not None, "a handler runs within a step"
        if isinstance(answer, Generator):
            return self._charged_later(charge, quota, amount, answer)
        self._finish(charge, quota, amount, answer)
        return answer

    def _charged_later(
        self, charge: Charge, quota: Metered | None, amount: int | None, steps: Steps[Answer]
    ) -> Steps[Answer]:
        answer = yield from steps
        self._finish(charge, quota, amount, answer)
        return answer

    def _finish(
        self, charge: Charge, quota: Metered | None, amount: int | None, answer: Answer
    ) -> None:
        now_ms = self._now_ms()
        if amount is None:
            amount = 0
            if isinstance(answer, FetchResponse | ShareFetchResponse):
                amount = fetched_bytes(answer)
        if quota is not None:
            if amount:
                quota.used.record(amount, now_ms)
            charge.wait_ms = quota.excess_ms(now_ms)
        self._finish_time(charge, now_ms)
        wait_ms = charge.wait_ms
        if wait_ms and answer is not NO_RESPONSE and hasattr(answer, "throttle_time_ms"):
            answer.throttle_time_ms = min(wait_ms, INT32_MAX)

    def _finish_time(self, charge: Charge, now_ms: int) -> None:
        """Record the time up to now; the encoding of the answer is recorded after it."""
        account = charge.account
        if account is not None and account.requests is not None:
            now = self._now()
            charge.spent += now - charge.began
            charge.began = now
            account.requests.used.record(charge.spent * PERCENT_PER_SECOND, now_ms)
            charge.spent = 0.0
            charge.wait_ms = max(charge.wait_ms, account.requests.excess_ms(now_ms))
