"""The inputs and outputs of a shard: the contract with the shell.

A shard owns one partition of an internal topic. The shell keeps the order. For each `Output`, in
the order in which the shard returned them, the shell

1. appends `records` (if any) to the shard's partition, as the batches that
   `batches(max_batch_bytes)` yields: one, unless a set of tombstones is larger. Outputs that arrive
   together may share one batch (`joined`), which has all records of each or none;
2. waits until that batch, and every earlier batch of this shard, is committed;
3. sends `replies`, and starts `effects`, the shard's requests to others.

With a `transaction`, the batch is a part of a producer's transaction, or the marker that ends it.

An output without records keeps its place in the order: it waits for the earlier batches. So no
client ever sees uncommitted state, although the shard's state is ahead of the commit. If an append
fails, the shell answers the parked requests with `shard.unload(code)`, turns the replies that it
holds into refusals (the shard's own `refuse(reply, code)`), drops the effects and the shard, and
loads a new shard from the log. There is no undo.
"""

from collections.abc import Generator, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

Token: TypeAlias = Hashable
"""Identifies one request that must get one reply; the shell makes it, the shard does not use it."""


class Instant(NamedTuple):
    """The time of one input on both clocks."""

    now_ms: int
    """Monotonic time, for deadlines."""
    timestamp_ms: int
    """Wall time, for records."""


TIMELESS = Instant(0, 0)
"""The time of an input that does not depend on time."""


class TopicRights(Protocol):
    """Which topics the sender of a request may know about."""

    @property
    def version(self) -> int:
        """The version of the rules: another one after every change of them."""
        ...

    def may_describe(self, topic: str) -> bool:
        """Return whether the sender may describe a topic."""
        ...


class _EveryTopic:
    """The rights where no rules are."""

    version = 0

    def may_describe(self, topic: str) -> bool:
        return True


EVERY_TOPIC: TopicRights = _EveryTopic()


class ShardContext(NamedTuple):
    """The version and the sender of a request."""

    api_version: int
    client_id: str = ""
    client_host: str = ""
    """The client's address as Kafka prints it, with a leading slash: `/127.0.0.1`."""
    rights: TopicRights = EVERY_TOPIC


class Waiting(NamedTuple):
    """A parked request: its token, and the version to answer in."""

    token: Token
    api_version: int


class CoordinatorRecord(NamedTuple):
    """One record for the shard's partition; a record without a value is a tombstone."""

    key: bytes
    value: bytes | None


class Reply(NamedTuple):
    """The answer to the request of `token`."""

    token: Token
    response: object


class InTransaction(NamedTuple):
    """The transaction that the records of an output belong to."""

    producer_id: int
    producer_epoch: int
    guard: int = 0
    """The shell's verification guard for the log; the shard does not use it."""


class EndOfTransaction(NamedTuple):
    """The end of a transaction in this partition: the output writes a marker and no records."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int = 0


BATCH_OVERHEAD_BYTES = 61
RECORD_OVERHEAD_BYTES = 32
"""An upper bound of the varints of a record in a batch."""


def record_size_bytes(record: CoordinatorRecord) -> int:
    """Return an upper bound of the record's size inside a batch."""
    return len(record.key) + len(record.value or b"") + RECORD_OVERHEAD_BYTES


@dataclass(slots=True)
class Output:
    """The result of one input: records, and the replies and effects after their commit."""

    records: list[CoordinatorRecord] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    effects: list[object] = field(default_factory=list)
    """Objects of the shard's package. They wait for the commit, while a reply may time out."""
    transaction: InTransaction | EndOfTransaction | None = None

    @property
    def batch_size_bytes(self) -> int:
        """An upper bound of the records' size as one batch."""
        return BATCH_OVERHEAD_BYTES + sum(map(record_size_bytes, self.records))

    def batches(self, max_batch_bytes: int) -> Iterator[list[CoordinatorRecord]]:
        """Split the records into batches of at most `max_batch_bytes`.

        The shard keeps records that belong together within one batch: only tombstones and the
        records of different groups are ever split.
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


Loading: TypeAlias = Generator[None, None, Output]
"""The start of a loaded shard: it yields between bounded pieces of work, and returns an output."""


def joined(outputs: Iterable[Output], max_batch_bytes: int) -> Iterator[Output]:
    """Join outputs, in their order, as long as their records fit into one batch.

    No output is split, and an output with a transaction is not joined.
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
    """The part of `random.Random` that the coordinator uses for member ids."""

    def getrandbits(self, bit_count: int, /) -> int:
        """Return a number of `bit_count` random bits."""
        ...
