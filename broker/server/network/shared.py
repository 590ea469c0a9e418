"""The objects that all connections of a listener share."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from broker.server.network.buffers import ReceiveBuffers
from broker.server.network.hang_ups import HangUps
from broker.server.network.turns import Turns


class Shared(NamedTuple):
    """See the module."""

    turns: Turns
    buffers: ReceiveBuffers
    hang_ups: HangUps

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop, now: Callable[[], float]) -> "Shared":
        """Make the shared objects for the connections of a loop."""
        return cls(Turns(loop, now), ReceiveBuffers(), HangUps(loop))
