"""What goes into a shard and what comes out: the contract with the shell.

A shard owns one partition of an internal topic. The shell owns the order. For each `Output`, in the
order the shard returned them:

1. append `records` (if any) to the shard's partition, as the batches that
   `batches(max_batch_bytes)` yields: one, unless a bulk of tombstones outgrows it; outputs that
   come together may be one batch (`joined`), which holds all of each or nothing;
2. wait until that batch, and every batch of this shard before it, is committed;
3. send `replies`, and begin `effects`: what the shard wants of others.

With a `transaction` the batch is a part of a producer's transaction, or the marker that ends it.

An output without records follows the same queue: it waits for the batches before it and then goes
at once. So nobody ever sees state that is not committed, although the shard moves ahead of the
commit. If an append fails, the shell sends `shard.unload(code)` to whoever is parked, turns
the replies it still holds into refusals (the shard's own `refuse(reply, code)`), forgets the
effects, drops the shard and loads a new one from the log. There is no undo.
"""

from collections.abc import Generator, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

Token: TypeAlias = Hashable
"""Names one request that is owed one reply; made by the shell, opaque to the shard."""


class Instant(NamedTuple):
    """The time of one input, by both clocks."""

    now_ms: int
    """Monotonic, for deadlines."""
    timestamp_ms: int
    """Wall time, for what is written down."""


TIMELESS = Instant(0, 0)
"""For inputs in which time plays no part."""


class RequestContext(NamedTuple):
    """Who sent a request, in which version."""

    api_version: int
    client_id: str = ""
    client_host: str = ""
    """The client's address as Kafka prints it, with a leading slash: `/127.0.0.1`."""


class Waiting(NamedTuple):
    """A parked request: whom to answer, and in which version it asked."""

    token: Token
    api_version: int


class CoordinatorRecord(NamedTuple):
    """One record for the shard's partition; no value means a tombstone."""

    key: bytes
    value: bytes | None


class Reply(NamedTuple):
    """The answer owed to `token`."""

    token: Token
    response: object


class InTransaction(NamedTuple):
    """The transaction that the records of an output belong to."""

    producer_id: int
    producer_epoch: int
    guard: int = 0
    """What the shell brings to the log with them; no matter of the shard."""


class EndOfTransaction(NamedTuple):
    """A transaction that an output ends in this partition, without records."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int = 0


BATCH_OVERHEAD_BYTES = 61
RECORD_OVERHEAD_BYTES = 32
"""More than a record's own varints take in a batch, at any size."""


def record_size_bytes(record: CoordinatorRecord) -> int:
    """Return at least what the record takes inside a batch."""
    return len(record.key) + len(record.value or b"") + RECORD_OVERHEAD_BYTES


@dataclass(slots=True)
class Output:
    """What one input caused: records first, replies and effects once they are committed."""

    records: list[CoordinatorRecord] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    effects: list[object] = field(default_factory=list)
    """In the words of the shard's own package; a reply may be refused by a deadline, these wait."""
    transaction: InTransaction | EndOfTransaction | None = None

    @property
    def batch_size_bytes(self) -> int:
        """What the records take as one batch, at most."""
        return BATCH_OVERHEAD_BYTES + sum(map(record_size_bytes, self.records))

    def batches(self, max_batch_bytes: int) -> Iterator[list[CoordinatorRecord]]:
        """Split the records into batches that fit.

        The shard never lets records that belong together grow past one batch: only tombstones and
        the records of different groups are ever split.
        """
        batch: list[CoordinatorRecord] = []
        size_bytes = BATCH_OVERHEAD_BYTES
        for record in self.records:
            size_bytes += record_size_bytes(record)
            if batch and size_bytes > max_batch_bytes:
                yield batch
                batch, size_bytes = [], BATCH_OVERHEAD_BYTES + record_size_bytes(record)
            batch.append(record)
        if batch:
            yield batch


LoadedSteps: TypeAlias = Generator[None, None, Output]
"""How a shard that has replayed its log begins to serve: in steps, if it knows very many."""


def joined(outputs: Iterable[Output], max_batch_bytes: int) -> Iterator[Output]:
    """Put outputs together, in their order, as long as their records fit into one batch.

    None is torn by that; one with a transaction stays alone.
    """
    whole, size_bytes = Output(), BATCH_OVERHEAD_BYTES
    for output in outputs:
        added_bytes = output.batch_size_bytes - BATCH_OVERHEAD_BYTES
        is_alone = whole.transaction is not None or output.transaction is not None
        if is_alone or size_bytes + added_bytes > max_batch_bytes:
            if whole != Output():
                yield whole
            whole, size_bytes = Output(transaction=output.transaction), BATCH_OVERHEAD_BYTES
        whole.records += output.records
        whole.replies += output.replies
        whole.effects += output.effects
        size_bytes += added_bytes
    yield whole


class RandomSource(Protocol):
    """The part of random.Random that the coordinator uses, for member ids."""

    def getrandbits(self, bit_count: int, /) -> int:
        """Return that many random bits."""
        ...
