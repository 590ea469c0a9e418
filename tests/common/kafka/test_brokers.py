"""The choice of a broker to ask, in a cluster that lists no broker or a dead one."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
    RequestTimedOutError,
)

from common.kafka.brokers import any_broker, find_coordinator


def test_a_cluster_without_brokers_has_nobody_to_ask() -> None:
    async def ask() -> None:
        client = AIOKafkaClient()
        with pytest.raises(KafkaError):
            any_broker(client)
        with pytest.raises(KafkaError):
            await find_coordinator(client, CoordinationType.GROUP, "group")

    asyncio.run(ask())


class Client:
    """Two brokers; who is asked fails, as often as there are failures."""

    def __init__(self, *failures: Exception) -> None:
        self.asked: list[int] = []
        self.cluster = self
        self._failures = list(failures)

    def brokers(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(nodeId=1), SimpleNamespace(nodeId=2)]

    def get_random_node(self) -> int:
        return 2

    async def send(self, node: int, request: Any) -> SimpleNamespace:
        self.asked.append(node)
        if self._failures:
            raise self._failures.pop()
        return SimpleNamespace(error_code=0, coordinator_id=node)


def found_by(client: Any) -> int:
    return asyncio.run(find_coordinator(client, CoordinationType.GROUP, "group"))


@pytest.mark.parametrize("error", [NodeNotReadyError, KafkaConnectionError, RequestTimedOutError])
def test_when_one_broker_does_not_answer_the_next_is_asked(error: type[KafkaError]) -> None:
    client = Client(error())
    found = found_by(client)
    assert client.asked == [2, 1]
    assert found == 1


def test_it_is_an_error_when_none_answers() -> None:
    with pytest.raises(NodeNotReadyError):
        found_by(Client(NodeNotReadyError(), NodeNotReadyError()))
