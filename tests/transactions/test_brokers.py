"""A cluster that lists no broker just now is an error of Kafka's, not the end of who asks."""

import asyncio

import pytest
from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.errors import KafkaError

from transactions.brokers import any_broker, find_coordinator


def test_a_cluster_without_brokers_has_nobody_to_ask() -> None:
    async def ask() -> None:
        client = AIOKafkaClient()
        with pytest.raises(KafkaError):
            any_broker(client)
        with pytest.raises(KafkaError):
            await find_coordinator(client, CoordinationType.GROUP, "group")

    asyncio.run(ask())
