"""Raft's own connections: one to each node that it sends requests to.

The address of a node is asked for at each request: it is in the voter set, which changes, or a
leader has told it. A bootstrap server has a negative number instead of a node id.

The node is told of two kinds of failures. A request whose connection broke, or that got no answer
in time, has *failed*; the node sends it again. A port that *refuses* has no process behind it: an
election then need not wait for a timeout (if fast failure detection is on).
"""

import asyncio
import logging
from collections.abc import Callable

from broker.raft.output import Envelope
from broker.server.network.client_connection import (
    ChannelTraffic,
    ClientConnection,
    ClientSettings,
)
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.message import Message

log = logging.getLogger("millstream.quorum.peers")

MAX_CONNECTIONS = 64
"""More than controllers that a cluster has; the connection that is not used for longest goes."""

Address = tuple[str, int]


class Peers:
    """The other nodes; their answers go to `on_answer`, requests without one to `on_failed`."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, settings: ClientSettings, request_timeout_ms: int
    ) -> None:
        self._loop = loop
        self.traffic = ChannelTraffic()
        self._settings = settings._replace(traffic=self.traffic)
        self._request_timeout_ms = request_timeout_ms
        self.address_of: Callable[[int], Address | None] = lambda node_id: None
        self.on_answer: Callable[[Envelope], None] = lambda envelope: None
        self.on_failed: Callable[[Envelope], None] = lambda envelope: None
        self.on_refused: Callable[[int], None] = lambda node_id: None
        self._connections: dict[int, ClientConnection] = {}
        """By node, the one that was used last at the end."""
        self._is_closed = False

    def _refusal_of(self, node_id: int) -> Callable[[], None]:
        return lambda: self.on_refused(node_id)

    def send(self, envelope: Envelope) -> None:
        """Send a request of this node."""
        request = envelope.message
        version = API_VERSION_RANGES[ApiKey(request.__api_key__)].max

        def on_answer(answer: Message | None) -> None:
            if self._is_closed:
                return
            if answer is None:
                self.on_failed(envelope)
            else:
                source, destination, correlation_id, _ = envelope
                self.on_answer(Envelope(destination, source, correlation_id, answer))

        connection = self._connection(envelope.destination)
        if connection is None:
            log.warning("no address of the controller node_id=%d", envelope.destination)
            pause_s = self._request_timeout_ms / 1000
            self._loop.call_later(pause_s, on_answer, None)
            return
        connection.ask(request, version, self._request_timeout_ms, on_answer)

    def _connection(self, node_id: int) -> ClientConnection | None:
        """Return the connection to a node's current address; None if that is unknown."""
        address = self.address_of(node_id)
        connection = self._connections.pop(node_id, None)
        if connection is not None and connection.address != address:
            connection.close()
            connection = None
        if address is None:
            return None
        if connection is None:
            connection = ClientConnection(
                self._loop, address, self._settings, self._refusal_of(node_id)
            )
        self._connections[node_id] = connection
        if len(self._connections) > MAX_CONNECTIONS:
            self._connections.pop(next(iter(self._connections))).close()
        return connection

    def wake(self, node_id: int) -> None:
        """End the pause before connecting to a node that has shown a sign of life."""
        if node_id in self._connections:
            self._connections[node_id].wake()

    def close(self) -> None:
        """Drop all connections."""
        self._is_closed = True
        for connection in self._connections.values():
            connection.close()
