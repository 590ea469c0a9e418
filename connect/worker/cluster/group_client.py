"""One worker as a member of its group."""

from typing import Final

from common.kafka.group_member import GroupMember
from connect.group.protocol import PROTOCOL_TYPE
from connect.worker.client_settings import librdkafka_settings
from connect.worker.kafka_client import kafka_client
from connect.worker.settings import WorkerSettings

_SPARE_MS: Final = 10_000


class GroupClient(GroupMember):
    """Owns the connections. Requests raise KafkaError or OSError."""

    def __init__(self, settings: WorkerSettings) -> None:
        rebalance_timeout_ms = settings["rebalance.timeout.ms"]
        said = {
            **librdkafka_settings(settings.client()),
            "bootstrap.servers": settings.bootstrap_servers,
            "client.id": settings["client.id"],
        }
        self._kafka = kafka_client(said, rebalance_timeout_ms + _SPARE_MS)
        super().__init__(
            self._kafka,
            settings["group.id"],
            PROTOCOL_TYPE,
            session_timeout_ms=settings["session.timeout.ms"],
            rebalance_timeout_ms=rebalance_timeout_ms,
        )

    async def close(self) -> None:
        """Close the connections; the worker stays a member until its session ends."""
        await self._kafka.close()
