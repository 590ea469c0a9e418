"""Where a worker looks for the coordinator of its group."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import errors
from aiokafka.protocol.coordination import FindCoordinatorRequest

from connect.worker.cluster.group_client import GroupClient
from connect.worker.settings import WorkerSettings

SETTINGS = {
    "bootstrap.servers": "127.0.0.1:9092",
    "group.id": "connect",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}
OLD, NEW = 1, 2


class Brokers:
    """Two nodes; the old one is there, and coordinates the group no more."""

    def __init__(self, error: type[errors.KafkaError]) -> None:
        self.coordinator = OLD
        self.cluster = self
        self.asked: list[int] = []
        self._error = error.errno

    def get_random_node(self) -> int:
        return self.coordinator

    def brokers(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(nodeId=self.coordinator)]

    async def send(self, node: int, request: Any, group: Any = None) -> Any:
        if isinstance(request, FindCoordinatorRequest):
            return SimpleNamespace(error_code=0, coordinator_id=self.coordinator)
        self.asked.append(node)
        return SimpleNamespace(error_code=0 if node == self.coordinator else self._error)

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    "error", [errors.NotCoordinatorForGroupError, errors.GroupCoordinatorNotAvailableError]
)
def test_who_says_that_it_is_not_the_coordinator_is_not_asked_again(
    error: type[errors.KafkaError],
) -> None:
    async def play() -> list[int]:
        client: Any = GroupClient(WorkerSettings.of(SETTINGS, is_distributed=True))
        brokers = Brokers(error)
        await client._client.close()
        client._client = brokers
        assert not await client.heartbeat()
        brokers.coordinator = NEW
        with pytest.raises(error):
            await client.heartbeat()
        assert not await client.heartbeat()
        return brokers.asked

    assert asyncio.run(play()) == [OLD, OLD, NEW]
