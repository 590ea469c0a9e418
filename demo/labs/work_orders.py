"""The orders of the work queue, and what its workers and the walk have to agree on."""

import json
import logging
from typing import Final, NamedTuple, Self

TOPIC: Final = "paid-orders"
DEAD_LETTERS: Final = f"{TOPIC}.dead-letter"
GROUP: Final = "packing"
PARTITIONS: Final = 2
DELIVERY_LIMIT: Final = 4
"""share.delivery.count.limit of the group."""
PLAIN: Final = "plain"
HEAVY: Final = "heavy"
"""The first worker that takes it is busy for very long."""
BROKEN: Final = "broken"
"""Nobody can pack it."""
PACK_SECONDS: Final = 0.02
STUCK_SECONDS: Final = 600.0
QUIET: Final = logging.getLogger("demo.labs.clients")


class Order(NamedTuple):
    """A paid order, which is to be packed."""

    number: int
    kind: str = PLAIN

    def encoded(self) -> bytes:
        """Return the record's value."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def parse(cls, value: bytes) -> Self:
        """Parse a record's value."""
        found = json.loads(value)
        return cls(found["number"], found["kind"])
