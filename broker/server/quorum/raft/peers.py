"""Raft's own connections: one to each other voter, for every request that the node sends.

The node is told of two kinds of failures. A request whose connection broke, or that got no answer
in time, has *failed*; the node sends it again. A port that *refuses* has no process behind it: an
election then need not wait for a timeout (if fast failure detection is on).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from broker.config.broker_config import Voter
from broker.protocol.api_keys import API_VERSION_RANGES, ApiKey
from broker.protocol.message import Message
from broker.raft.output import Envelope
from broker.server.network.client_connection import ClientConnection, ClientSettings

log = logging.getLogger("millrace.quorum.peers")


class Peers:
    """The other voters; their answers go to `on_answer`, requests without one to `on_failed`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        others: Iterable[Voter],
        settings: ClientSettings,
        request_timeout_ms: int,
    ) -> None:
        self._loop = loop
        self._request_timeout_ms = request_timeout_ms
        self.on_answer: Callable[[Envelope], None] = lambda envelope: None
        self.on_failed: Callable[[Envelope], None] = lambda envelope: None
        self.on_refused: Callable[[int], None] = lambda node_id: None
        self._connections = {
            voter.node_id: ClientConnection(
                loop, (voter.host, voter.port), settings, self._refusal_of(voter.node_id)
            )
            for voter in others
        }

    def _refusal_of(self, node_id: int) -> Callable[[], None]:
        return lambda: self.on_refused(node_id)

    def send(self, envelope: Envelope) -> None:
        """Send a request of this node."""
        request = envelope.message
        version = API_VERSION_RANGES[ApiKey(request.__api_key__)].max

        def on_answer(answer: Message | None) -> None:
            if answer is None:
                self.on_failed(envelope)
            else:
                source, destination, correlation_id, _ = envelope
                self.on_answer(Envelope(destination, source, correlation_id, answer))

        connection = self._connections.get(envelope.destination)
        if connection is None:
            # The other nodes know a voter that this node's configuration does not have.
            log.warning("no address of the voter node_id=%d", envelope.destination)
            pause_s = self._request_timeout_ms / 1000
            self._loop.call_later(pause_s, on_answer, None)
            return
        connection.ask(request, version, self._request_timeout_ms, on_answer)

    def wake(self, node_id: int) -> None:
        """End the pause before connecting to a node that has shown a sign of life."""
        if node_id in self._connections:
            self._connections[node_id].wake()

    def close(self) -> None:
        """Drop all connections."""
        for connection in self._connections.values():
            connection.close()
