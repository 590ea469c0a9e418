"""How fast a broker accepts connections: in all, at each listener, and from each address (KIP-612).

When the broker or a listener is above its rate, accepting pauses, and clients wait in the system's
queue. A connection above the rate of its address is refused: the clients of other addresses do not
wait for it. The listener of the other brokers is never slowed down by the broker's rate.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from broker.model import plain_address
from broker.quotas.accounts import Windows
from broker.quotas.client_quotas import AddressQuotas
from broker.quotas.rate import RateLimit

MAX_ADDRESSES = 10_000
"""Beyond this number the address that connected the longest time ago is forgotten."""
ALL_LISTENERS = ""


class ConnectionRates:
    """Counts accepted connections. The limits are connections per second."""

    def __init__(self, windows: Windows, between_brokers: str) -> None:
        """`between_brokers` is the listener of the other brokers."""
        self._windows = windows
        self._between_brokers = between_brokers
        self._listeners: dict[str, RateLimit] = {}
        self._quotas = AddressQuotas({})
        self._addresses: OrderedDict[str, RateLimit] = OrderedDict()

    def limit(self, limits: Mapping[str, int]) -> None:
        """Set the limit of each listener, and of ALL_LISTENERS together."""
        for name, limit in limits.items():
            self._listeners.setdefault(name, self._new_rate(limit)).limit_per_second = limit

    def limit_addresses(self, quotas: AddressQuotas) -> None:
        """Set the limits of addresses; what they have used counts."""
        self._quotas = quotas
        if quotas.is_empty:
            self._addresses.clear()
        for address, rate in list(self._addresses.items()):
            limit = quotas.find(address)
            if limit is None:
                del self._addresses[address]
            else:
                rate.limit_per_second = limit

    def refuse_ms(self, host: str, now_ms: int) -> int:
        """Return how long to keep a connection of this address before it is closed.

        0 if it may connect; then it is counted.
        """
        if self._quotas.is_empty:
            return 0
        address = plain_address(host)
        limit = self._quotas.find(address)
        if limit is None:
            return 0
        rate = self._addresses.get(address)
        if rate is None:
            rate = self._addresses[address] = self._new_rate(limit)
            if len(self._addresses) > MAX_ADDRESSES:
                self._addresses.popitem(last=False)
        self._addresses.move_to_end(address)
        if rate.allows(1, now_ms):
            rate.record(1, now_ms)
            return 0
        return self._windows.window_ms

    def pause_ms(self, listener: str, now_ms: int) -> int:
        """Count a connection of this listener, and return how long not to accept another one."""
        every = self._listeners[ALL_LISTENERS]
        every.record(1, now_ms)
        own = self._listeners[listener]
        own.record(1, now_ms)
        wait_ms = own.excess_ms(now_ms)
        # A broker without a listener of its own for brokers slows them down with the clients.
        if listener == self._between_brokers and len(self._listeners) > 2:
            return wait_ms
        return max(wait_ms, every.excess_ms(now_ms))

    def of_listeners(self, now_ms: int) -> Iterator[tuple[str, float]]:
        """Return each listener with its rate; ALL_LISTENERS is among them."""
        for name, rate in self._listeners.items():
            yield name, rate.per_second(now_ms)

    def of_addresses(self, now_ms: int) -> Iterator[tuple[str, float]]:
        """Return the addresses with a limit, each with its rate, the latest first."""
        for address, rate in reversed(self._addresses.items()):
            yield address, rate.per_second(now_ms)

    def _new_rate(self, limit: float) -> RateLimit:
        window_ms, window_count = self._windows
        return RateLimit(limit, window_ms=window_ms, window_count=window_count)
