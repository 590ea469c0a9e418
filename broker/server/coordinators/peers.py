"""Connections to other brokers by their ids, for requests that are worth one attempt each.

The answer is None if the broker is gone, has another address since, or does not answer in time.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.broker_connections import BrokerConnections
from broker.server.network.client_connection import ClientConnection
from common.kafka.protocol.message import Message

OnAnswer = Callable[[Message | None], None]


class PeersParts(NamedTuple):
    """The objects that the peers work with."""

    loop: asyncio.AbstractEventLoop
    metadata: ClusterMetadata
    connect: Callable[[tuple[str, int]], ClientConnection]
    listener_name: str
    """The listener by which brokers reach each other."""


class _Peer:
    """One broker, and the questions that it has not answered."""

    __slots__ = ("connection", "waiting")

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.waiting: dict[object, OnAnswer] = {}

    def answer(self, question: object, answer: Message | None) -> None:
        on_answer = self.waiting.pop(question, None)
        if on_answer is not None:
            on_answer(answer)


class Peers:
    """See the module."""

    def __init__(self, parts: PeersParts) -> None:
        self._loop, metadata, connect, listener_name = parts
        self._peers = BrokerConnections(
            metadata, listener_name, lambda address: _Peer(connect(address)), self._on_dropped
        )

    def ask(
        self,
        broker_id: int,
        request: Message,
        api_version: int,
        timeout_ms: int,
        on_answer: OnAnswer,
    ) -> None:
        """Ask a broker, which may be this one; `on_answer` is called once, later."""
        peer = self._peers.find(broker_id)
        if peer is None:
            self._loop.call_soon(on_answer, None)
            return
        question = object()
        peer.waiting[question] = on_answer
        peer.connection.ask(request, api_version, timeout_ms, partial(peer.answer, question))

    def on_brokers_changed(self) -> None:
        """Stop waiting for answers of brokers that are gone, or that have another address."""
        self._peers.on_brokers_changed()

    def _on_dropped(self, peer: _Peer) -> None:
        for question in list(peer.waiting):
            self._loop.call_soon(peer.answer, question, None)

    def stop(self) -> None:
        """Close all connections; nobody is answered."""
        self._peers.close()
