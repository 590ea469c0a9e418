"""The rates of all clients with quotas: one for each kind of quota and holder.

Clients choose their client ids, and a default gives each of them a rate, so the number of rates is
bounded: beyond MAX_RATES the one that was found the longest time ago is dropped, with what was
used under it. So are the bytes of the names that are kept: a long one ends with a digest instead.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

from broker.quotas.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    ClientQuotas,
    Holder,
    QuotaEntity,
)
from broker.quotas.rate import WINDOW_COUNT, WINDOW_MS, RateLimit, TokenBucket

MAX_RATES = 10_000
MAX_ACCOUNTS = 10_000
MAX_NAME_LENGTH = 256


class Windows(NamedTuple):
    """The number of samples of a rate, and the length of each."""

    window_ms: int = WINDOW_MS
    window_count: int = WINDOW_COUNT


class Throttled:
    """The waits that were imposed under one quota, for Kafka's `throttle-time`."""

    __slots__ = ("_count", "_sum_ms")

    def __init__(self) -> None:
        self._sum_ms = RateLimit()
        self._count = RateLimit()

    def note(self, wait_ms: int, now_ms: int) -> None:
        """Count one wait."""
        self._sum_ms.record(wait_ms, now_ms)
        self._count.record(1, now_ms)

    def average_ms(self, now_ms: int) -> float:
        """Return the average wait in the last windows, 0 if nobody waited."""
        count = self._count.total(now_ms)
        return self._sum_ms.total(now_ms) / count if count else 0.0


class Metered:
    """What one holder has used under one quota."""

    __slots__ = ("holder", "key", "throttled", "used")

    def __init__(self, key: str, holder: Holder, used: RateLimit | TokenBucket) -> None:
        self.key = key
        self.holder = holder
        self.used = used
        self.throttled = Throttled()

    def excess_ms(self, now_ms: int) -> int:
        """Return how long the holder has to wait, and count the wait; 0 if it is within limits."""
        wait_ms = self.used.excess_ms(now_ms)
        if wait_ms:
            self.throttled.note(wait_ms, now_ms)
        return wait_ms


class Account(NamedTuple):
    """The quotas of one client; None where it has none."""

    producer: Metered | None
    consumer: Metered | None
    requests: Metered | None
    mutations: Metered | None


class Accounts:
    """Finds the account of a client. Invariant: each rate has the limit of the current quotas."""

    def __init__(self, windows: Windows, mutation_windows: Windows) -> None:
        self._windows = windows
        self._mutation_windows = mutation_windows
        self._quotas = ClientQuotas({})
        self._accounts: dict[tuple[str, str], Account] = {}
        self._rates: OrderedDict[tuple[str, Holder], Metered] = OrderedDict()

    @property
    def is_empty(self) -> bool:
        """True if no client has any quota."""
        return self._quotas.is_empty

    def change(self, quotas: Mapping[QuotaEntity, Mapping[str, float]], now_ms: int) -> None:
        """Use other quotas; what was used so far counts under them."""
        self._quotas = ClientQuotas(quotas)
        self._accounts.clear()
        if self._quotas.is_empty:
            self._rates.clear()
        for key, holder in list(self._rates):
            # A holder without a name for a type stands for any: the rate is found again at need.
            found = self._quotas.find(key, holder.user or "", holder.client_id or "")
            if found is None or found.holder != holder:
                del self._rates[key, holder]

    def of(self, user: str, client_id: str, now_ms: int) -> Account:
        """Return the account of a client."""
        key = _kept(user), _kept(client_id)
        account = self._accounts.get(key)
        if account is None:
            if len(self._accounts) >= MAX_ACCOUNTS:
                self._accounts.clear()
            account = Account(
                self._find(PRODUCER_BYTE_RATE, user, client_id, now_ms),
                self._find(CONSUMER_BYTE_RATE, user, client_id, now_ms),
                self._find(REQUEST_PERCENTAGE, user, client_id, now_ms),
                self._find(CONTROLLER_MUTATION_RATE, user, client_id, now_ms),
            )
            self._accounts[key] = account
        return account

    def _find(self, key: str, user: str, client_id: str, now_ms: int) -> Metered | None:
        quota = self._quotas.find(key, user, client_id)
        if quota is None:
            return None
        holder = Holder(*(name and _kept(name) for name in quota.holder))
        metered = self._rates.get((key, holder))
        if metered is None:
            used = self._new_rate(key, quota.limit, now_ms)
            metered = self._rates[key, holder] = Metered(key, holder, used)
            if len(self._rates) > MAX_RATES:
                self._rates.popitem(last=False)
                self._accounts.clear()
        elif isinstance(metered.used, TokenBucket):
            metered.used.change(quota.limit, now_ms)
        else:
            metered.used.limit_per_second = quota.limit
        self._rates.move_to_end((key, holder))
        return metered

    def _new_rate(self, key: str, limit: float, now_ms: int) -> RateLimit | TokenBucket:
        if key == CONTROLLER_MUTATION_RATE:
            windows = self._mutation_windows
            return TokenBucket(
                limit, windows_ms=windows.window_ms * windows.window_count, now_ms=now_ms
            )
        window_ms, window_count = self._windows
        return RateLimit(limit, window_ms=window_ms, window_count=window_count)

    def metered(self) -> Iterator[Metered]:
        """Return the rates, those of clients that were found last first."""
        return reversed(self._rates.values())


def _kept(name: str) -> str:
    """Return a name as it is kept: a long one by its beginning and its digest."""
    if len(name) <= MAX_NAME_LENGTH:
        return name
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()
    return name[: MAX_NAME_LENGTH - len(digest)] + digest
