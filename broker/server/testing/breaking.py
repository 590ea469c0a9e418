"""What a fault does to the connection of a client: it waits, is closed or reset, or breaks off."""

import asyncio
import os
import socket
import struct
from contextlib import suppress
from typing import cast

from broker.log.storage import FileRegion
from broker.server.network.connection import Connection
from broker.server.network.dispatch import NO_RESPONSE, Answer, RequestContext, encode
from broker.server.network.later import Later, Steps
from broker.server.network.sending import Part
from common.kafka.protocol.message import Message

_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset


class Pause(Later):
    """A time that passes before a connection goes on."""

    __slots__ = ("_timer",)

    def __init__(self, loop: asyncio.AbstractEventLoop, ms: int) -> None:
        super().__init__(holds=True)
        self._timer = loop.call_later(ms / 1_000, self.done)

    def abandon(self) -> None:
        """Forget a connection that is closed."""
        self._timer.cancel()
        super().abandon()


def never() -> Steps[Answer]:
    """Answer nothing on this connection from here on; it ends when the client closes it."""
    yield Later(holds=True)
    return NO_RESPONSE


def close(connection: Connection, *, resets: bool) -> Answer:
    """Close a connection, with a reset if it is asked for."""
    if resets:
        _reset_on_close(connection.socket.fileno())
    connection.close()
    return NO_RESPONSE


def tear(context: RequestContext, answer: Answer, count: int | None) -> Answer:
    """Send the first bytes of an answer, half of it if there is no count, and close."""
    if isinstance(answer, Message):
        whole = b"".join(map(_bytes, encode(context.header, answer)))
        sent = len(whole) // 2 if count is None else min(count, len(whole) - 1)
        with suppress(OSError):  # The client has gone, or reads nothing: it gets still less.
            context.connection.socket.send(whole[:sent])
        context.connection.close()
    return NO_RESPONSE


def _bytes(part: Part) -> bytes:
    return part.read() if isinstance(part, FileRegion) else bytes(cast(bytes, part))


def _reset_on_close(descriptor: int) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
