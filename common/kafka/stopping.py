"""Stop clients of Kafka, whatever state they and the cluster are in."""

import asyncio
import logging
from typing import Final, Protocol

from common.process.tasks import spawn

log = logging.getLogger(__name__)


STOP_SECONDS: Final = 10.0
"""A client that has not stopped by then is given up: it may wait for a broker that is gone."""


class Stoppable(Protocol):
    """A client, or something that consists of clients."""

    async def stop(self) -> None: ...


async def stop(*clients: Stoppable | None) -> None:
    """Stop the clients one after the other, each within `STOP_SECONDS`.

    An error of one is logged, and the next is stopped.

    A consumer of aiokafka cancels its own tasks when it stops, and `stop` can raise the
    `CancelledError` of a fetch that is backing off (`Fetcher.close`). The caller would take it for
    its own cancellation, and its task would end without an error.
    """
    for client in clients:
        if client is not None:
            await _stop(client)


async def _stop(client: Stoppable) -> None:
    stopping = spawn(client.stop())
    done, _ = await asyncio.wait([stopping], timeout=STOP_SECONDS)
    if not done:
        log.warning("a client did not stop in time client=%s", type(client).__name__)
        stopping.cancel()
        await asyncio.wait([stopping], timeout=STOP_SECONDS)
    elif stopping.cancelled():
        log.info("a client stopped in the middle of its work client=%s", type(client).__name__)
    elif (error := stopping.exception()) is not None:
        log.warning("a client did not stop client=%s error=%r", type(client).__name__, error)
