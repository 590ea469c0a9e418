"""Limits the time of one question to Kafka, so that every call of the proxy ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from rest_proxy.kafka.errors import BROKER_NOT_AVAILABLE
from rest_proxy.refusals import RestError

KAFKA_SECONDS: Final = 10.0
"""The longest time that a question may take."""


@asynccontextmanager
async def bounded(seconds: float = KAFKA_SECONDS) -> AsyncIterator[None]:
    """Raise RestError, 503, if the body is not through after some seconds."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise RestError(
            BROKER_NOT_AVAILABLE, f"Kafka did not answer within {seconds:g} seconds."
        ) from None
