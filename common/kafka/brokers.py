"""Which broker to ask, in a cluster that may have none at the moment.

A cluster whose brokers are all fenced lists none. aiokafka has assertions for that, which
would end a program that only expects a `KafkaError`.
"""

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
    RequestTimedOutError,
    for_code,
)
from aiokafka.protocol.coordination import FindCoordinatorRequest

_DID_NOT_ANSWER = (NodeNotReadyError, KafkaConnectionError, RequestTimedOutError)


def any_broker(client: AIOKafkaClient) -> int:
    """Return the id of a broker; raises NodeNotReadyError when there is none."""
    node: int | None = client.get_random_node()
    if node is None:
        raise NodeNotReadyError("the cluster has no broker just now")
    return node


async def find_coordinator(client: AIOKafkaClient, kind: int, key: str) -> int:
    """Return the id of the broker that coordinates a group or a transactional id.

    A broker that has died is listed for a while, so one that does not answer is no reason to wait:
    the next one is asked. Raises KafkaError, and NodeNotReadyError when there is no broker to ask.
    """
    first = any_broker(client)
    others = {broker.nodeId for broker in client.cluster.brokers()} - {first}
    failure: KafkaError = NodeNotReadyError()
    for node in (first, *others):
        try:
            answer = await client.send(node, FindCoordinatorRequest(key, kind))
        except _DID_NOT_ANSWER as error:
            failure = error
            continue
        if answer.error_code:
            raise for_code(answer.error_code)
        return int(answer.coordinator_id)
    raise failure
