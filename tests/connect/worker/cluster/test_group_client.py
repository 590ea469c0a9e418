"""Where a worker looks for the coordinator of its group."""

import asyncio
from typing import Any

import pytest

from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.heartbeat import HeartbeatResponse
from connect.worker.cluster.membership import GroupClient
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

    def __init__(self, error: ErrorCode) -> None:
        self.current = OLD
        self.asked: list[int] = []
        self._error = error

    async def coordinator(self, kind: int, key: str) -> int:
        return self.current

    async def ask(self, request: Any, answer: Any, node: int, **_: Any) -> HeartbeatResponse:
        self.asked.append(node)
        return HeartbeatResponse(error_code=0 if node == self.current else self._error)


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_who_says_that_it_is_not_the_coordinator_is_not_asked_again(error: ErrorCode) -> None:
    async def play() -> list[int]:
        client: Any = GroupClient(WorkerSettings.of(SETTINGS, is_distributed=True))
        brokers = Brokers(error)
        client._client = brokers
        assert not await client.heartbeat()
        brokers.current = NEW
        with pytest.raises(KafkaError) as raised:
            await client.heartbeat()
        assert raised.value.code == error
        assert not await client.heartbeat()
        return brokers.asked

    assert asyncio.run(play()) == [OLD, OLD, NEW]
