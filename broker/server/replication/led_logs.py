"""The objects that handlers need to read the logs that this broker leads."""

from typing import NamedTuple

from broker.replication.throttle import ReplicationThrottle
from broker.server.clock import Clock
from broker.server.replication.partitions import Partitions
from broker.server.storage.failures import StorageFailures


class LedLogs(NamedTuple):
    """The partitions, the clock, the handling of a failed disk, and the throttles."""

    partitions: Partitions
    clock: Clock
    failures: StorageFailures
    throttle: ReplicationThrottle
