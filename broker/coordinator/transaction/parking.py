"""Producers that begin their next transaction while the markers of the last one are being written.

EndTxn is answered when its outcome cannot change any more, and that is before the transaction is
complete. What a producer says next is on its way already then, and Kafka sends it away with
CONCURRENT_TRANSACTIONS, to come again after a pause that is longer than the markers take. Here it
waits, for PARKED_MS at most: what completes the transaction answers it, in the same batch.

One request a transactional id: a producer has one transaction at a time. Brokers, who ask for many
producers at once, are sent away as by Kafka: one that waits would hold up the others.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from broker.coordinator.output import Reply, RequestContext, Token
from broker.errors import ErrorCode

PARKED_MS = 500
"""Markers that take longer wait for a partition that has no leader, or its replicas."""


class ParkedUntil(NamedTuple):
    """The name of the deadline of a parked request."""

    transactional_id: str


class Parked(NamedTuple):
    """A request that waits, and how to go on with it."""

    token: Token
    context: RequestContext
    request: Any
    handler: Callable[..., None]
    refuse: Callable[..., object]

    def refused(self, code: ErrorCode) -> Reply:
        """Answer it with an error."""
        return Reply(self.token, self.refuse(self.context, self.request, code))


@dataclass(slots=True)
class Parking:
    """Invariant: each id has one parked request, each token is that of one."""

    _by_id: dict[str, Parked] = field(default_factory=dict)
    _ids: dict[Token, str] = field(default_factory=dict)

    def park(self, transactional_id: str, parked: Parked) -> bool:
        """Let a request wait; False when another one does."""
        if transactional_id in self._by_id:
            return False
        self._by_id[transactional_id] = parked
        self._ids[parked.token] = transactional_id
        return True

    def take(self, transactional_id: str) -> Parked | None:
        """End the wait of an id's request, if there is one."""
        parked = self._by_id.pop(transactional_id, None)
        if parked is not None:
            del self._ids[parked.token]
        return parked

    def forget(self, token: Token) -> None:
        """End the wait of a request that nobody listens to any more."""
        transactional_id = self._ids.get(token)
        if transactional_id is not None:
            self.take(transactional_id)

    def take_all(self) -> list[Parked]:
        """End every wait."""
        parked = list(self._by_id.values())
        self._by_id.clear()
        self._ids.clear()
        return parked
