"""The partition of a record, chosen as Kafka's own producers choose it.

Kafka's built-in partitioner sends records without a key to one partition until it has `batch.size`
bytes, then to another random one (KIP-480, KIP-794), so a few lines go to one partition. A record
with a key goes by its hash, which the library computes as Kafka does. librdkafka chooses the
partition of records without a key by time instead, so the choice is made here.
"""

from collections.abc import MutableMapping
from typing import Protocol

from broker.cli.arguments import ToolFailed
from broker.cli.clients.settings import number_of
from broker.server.clock import Random

PACKAGE = "org.apache.kafka.clients.producer"
BY_LIBRARY = "partitioner"
BY_CLASS = "partitioner.class"
IGNORES_KEYS = "partitioner.ignore.keys"
MEANT_FOR_JAVA = (
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
)
DEFAULT_BATCH_BYTES = 16_384
RECORD_OVERHEAD_BYTES = 7
"""The overhead of a small record in a batch: lengths, attributes, timestamp and offset deltas."""


class Partitioner(Protocol):
    """Chooses the partition of each record."""

    def partition(self, key: bytes | None, size_bytes: int, partition_count: int) -> int | None:
        """Return a partition; None leaves the choice to the hash of the key."""


class BuiltInPartitioner:
    """Kafka's default: without a key, one partition until a batch is full."""

    def __init__(self, random: Random, batch_bytes: int, *, ignores_keys: bool) -> None:
        self._random = random
        self._batch_bytes = batch_bytes
        self._ignores_keys = ignores_keys
        self._chosen: int | None = None
        self._sent_bytes = 0

    def partition(self, key: bytes | None, size_bytes: int, partition_count: int) -> int | None:
        """Return the partition of the current batch; None for a record with a key."""
        if key is not None and not self._ignores_keys:
            return None
        if self._chosen is None or self._sent_bytes >= self._batch_bytes:
            self._chosen, self._sent_bytes = self._random.randrange(partition_count), 0
        self._sent_bytes += size_bytes + RECORD_OVERHEAD_BYTES
        return self._chosen


class RoundRobinPartitioner:
    """Each record goes to the next partition, whatever its key."""

    def __init__(self) -> None:
        self._count = 0

    def partition(self, key: bytes | None, size_bytes: int, partition_count: int) -> int | None:
        """Return the next partition."""
        chosen = self._count % partition_count
        self._count += 1
        return chosen


class LibraryPartitioner:
    """Leaves the choice to librdkafka's `partitioner`."""

    def partition(self, key: bytes | None, size_bytes: int, partition_count: int) -> int | None:
        """Return None."""
        return None


def take_partitioner(settings: MutableMapping[str, str], random: Random) -> Partitioner:
    """Return the partitioner named by the settings, and remove its settings.

    Raise ToolFailed for an unknown class.
    """
    class_name = settings.pop(BY_CLASS, "")
    ignores_keys = settings.pop(IGNORES_KEYS, "false").strip().lower() == "true"
    for name in MEANT_FOR_JAVA:
        settings.pop(name, None)
    if class_name:
        if class_name.rpartition(".")[2] != "RoundRobinPartitioner":
            raise ToolFailed(
                f"There is no partitioner {class_name}; there is {PACKAGE}.RoundRobinPartitioner, "
                "and without partitioner.class the one that Kafka has built in"
            )
        return RoundRobinPartitioner()
    if BY_LIBRARY in settings:
        # Otherwise the library sends the records of some milliseconds to one partition.
        settings.setdefault("sticky.partitioning.linger.ms", "0")
        return LibraryPartitioner()
    batch_bytes = number_of(settings, "batch.size", DEFAULT_BATCH_BYTES)
    return BuiltInPartitioner(random, batch_bytes, ignores_keys=ignores_keys)
