"""What aiokafka makes of a connection that breaks just before a request is written to it.

Its client takes a KafkaError for "ask another time"; anything else ends the task that keeps the
client's metadata up to date, and with it, silently, the client. uvloop raises RuntimeError here,
which is why services, registry and streams run on asyncio's own loop.
"""

import asyncio

import pytest
from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from millstream.testing import LocalBroker

pytestmark = [pytest.mark.slow, pytest.mark.interop]

TURNS = 5


async def outcomes_of_requests(connection: AIOKafkaConnection) -> list[BaseException | None]:
    """Send a request in each of the loop's next turns; return how each ended."""

    async def ask() -> None:
        await connection.send(MetadataRequest(None))

    asked = []
    for _ in range(TURNS):
        asked.append(asyncio.ensure_future(ask()))
        await asyncio.sleep(0)
    ended = await asyncio.gather(*asked, return_exceptions=True)
    return [one if isinstance(one, BaseException) else None for one in ended]


def test_every_request_ends_as_a_kafka_error() -> None:
    async def check(host: str, port: int) -> list[BaseException | None]:
        connection = await create_conn(host, port)
        await connection.send(MetadataRequest(None))
        connection._writer.transport.abort()
        return await outcomes_of_requests(connection)

    with LocalBroker() as broker:
        host, _, port = broker.bootstrap_servers.partition(":")
        outcomes = asyncio.run(check(host, int(port)))

    assert len(outcomes) == TURNS
    assert all(isinstance(outcome, KafkaError) for outcome in outcomes), outcomes
