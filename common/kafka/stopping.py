"""How to be rid of a client of Kafka, whatever state it and the cluster are in."""

import asyncio
import logging
from typing import Protocol

from aiokafka import AIOKafkaConsumer

log = logging.getLogger(__name__)


class Stoppable(Protocol):
    """A client, or what consists of clients."""

    async def stop(self) -> None: ...


async def stop(*clients: Stoppable | None) -> None:
    """Stop these one after the other; what one of them raises is said, and the next one is stopped.

    A consumer of aiokafka cancels its own tasks when it stops, and the `CancelledError` of a fetch
    that is backing off comes out of `stop` (`Fetcher.close`). To the caller it would look like a
    cancellation of its own: its task would end, and nobody would hear of it.
    """
    for client in clients:
        if client is not None:
            await _stop(client)


async def _stop(client: Stoppable) -> None:
    stopping = asyncio.ensure_future(client.stop())
    await asyncio.wait([stopping])
    if stopping.cancelled():
        log.info("a client stopped in the middle of its work client=%s", type(client).__name__)
        if isinstance(client, AIOKafkaConsumer):
            await client._client.close()  # noqa: SLF001, which it did not come to
    elif (error := stopping.exception()) is not None:
        log.warning("a client did not stop client=%s error=%r", type(client).__name__, error)
