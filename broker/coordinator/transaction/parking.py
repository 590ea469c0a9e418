"""Requests of producers that start their next transaction before the last one is complete.

EndTxn is answered when its outcome is final, which is before the transaction is complete. The
producer's next request then arrives early. Kafka answers it with CONCURRENT_TRANSACTIONS, and the
producer retries after a pause that is longer than the markers take. Here the request is parked, for
PARKED_MS at most, and the completion of the transaction answers it in the same batch.

Each transactional id has at most one parked request, because a producer has one transaction at a
time. Requests of brokers for many producers are not parked but refused as in Kafka: one parked
element would delay the others.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from broker.coordinator.output import Reply, ShardContext, Token
from common.kafka.errors import ErrorCode

PARKED_MS = 500
"""The longest wait. Markers that take longer wait for a partition's leader or replicas."""


class ParkedUntil(NamedTuple):
    """The name of the deadline of a parked request."""

    transactional_id: str


class Parked(NamedTuple):
    """A parked request, with its handler and the function that refuses it."""

    token: Token
    context: ShardContext
    request: Any
    handler: Callable[..., None]
    refuse: Callable[..., object]

    def refused(self, code: ErrorCode) -> Reply:
        """Return the reply that refuses the request."""
        return Reply(self.token, self.refuse(self.context, self.request, code))


@dataclass(slots=True)
class Parking:
    """Invariant: `_by_id` and `_ids` name the same requests, at most one per transactional id."""

    _by_id: dict[str, Parked] = field(default_factory=dict)
    _ids: dict[Token, str] = field(default_factory=dict)

    def park(self, transactional_id: str, parked: Parked) -> bool:
        """Park a request; return False if the id already has a parked one."""
        if transactional_id in self._by_id:
            return False
        self._by_id[transactional_id] = parked
        self._ids[parked.token] = transactional_id
        return True

    def take(self, transactional_id: str) -> Parked | None:
        """Remove and return an id's parked request, if there is one."""
        parked = self._by_id.pop(transactional_id, None)
        if parked is not None:
            del self._ids[parked.token]
        return parked

    def forget(self, token: Token) -> None:
        """Remove a parked request, because its connection is closed."""
        transactional_id = self._ids.get(token)
        if transactional_id is not None:
            self.take(transactional_id)

    def take_all(self) -> list[Parked]:
        """Remove and return all parked requests."""
        parked = list(self._by_id.values())
        self._by_id.clear()
        self._ids.clear()
        return parked
