"""What it takes to read the logs led here."""

from typing import NamedTuple

from broker.replication.throttle import ReplicationThrottle
from broker.server.clock import Clock
from broker.server.replication.partitions import Partitions
from broker.server.storage.failures import StorageFailures


class LedLogs(NamedTuple):
    """The partitions, the time, what follows from a disk that fails, and who is held back."""

    partitions: Partitions
    clock: Clock
    failures: StorageFailures
    throttle: ReplicationThrottle
