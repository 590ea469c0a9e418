"""Whom to ask of a cluster, when it may have nobody just now.

A cluster whose brokers are all fenced lists none. aiokafka has assertions for that: they would end
whoever goes on after a `KafkaError`.
"""

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import NodeNotReadyError


def any_broker(client: AIOKafkaClient) -> int:
    """Return the id of a broker; raises NodeNotReadyError when there is none."""
    node: int | None = client.get_random_node()
    if node is None:
        raise NodeNotReadyError("the cluster has no broker just now")
    return node


async def find_coordinator(client: AIOKafkaClient, kind: int, key: str) -> int:
    """Ask who coordinates a group or a transactional id.

    Raises KafkaError, NodeNotReadyError when there is nobody to ask.
    """
    any_broker(client)
    return int(await client.coordinator_lookup(kind, key))
