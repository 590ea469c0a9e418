"""On which brokers a topic's partitions are placed.

They have one leader, those of the next topic another one. What a transaction costs is the requests
it takes: a small batch touches every partition of two or three topics, and with all leaders in one
place that is one request instead of three to write, to fetch, to follow and to end it. So topics
that are written together are named as one.
`bench/README.md` has what that makes.
"""

import zlib
from collections.abc import Iterable

from aiokafka.errors import NodeNotReadyError


def placed(name: str, broker_ids: Iterable[int], replication_factor: int) -> list[int]:
    """Return the brokers of each partition of the topics placed by this name, the leader first.

    Raises NodeNotReadyError where there is no broker just now.
    """
    ordered = sorted(broker_ids)
    if not ordered:
        raise NodeNotReadyError("the cluster has no broker just now")
    first = zlib.crc32(name.encode()) % len(ordered)
    return [*ordered[first:], *ordered[:first]][:replication_factor]
