"""Asks other brokers: one connection to each, made at need, for as long as its address holds.

The answer is None if the broker is gone, has another address since, or does not answer in time.
`Peers.ask` sends a request of its own. `Batches` gathers entries: each broker gets one request at a
time in each lane, with the entries that wait, so that under load one request carries many of them.

A broker answers the requests of a connection in their order. So whatever may take long has its own
`Peers`.
"""

import asyncio
from collections.abc import Callable, Hashable
from functools import partial
from typing import Generic, Protocol, TypeVar

from broker.coordinator.partitioning import partition_for
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.client_connection import ClientConnection
from common.kafka.protocol.message import Message

OnAnswer = Callable[[Message | None], None]


class _Peer:
    """One broker, and the requests that it has not answered."""

    __slots__ = ("connection", "waiting")

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.waiting: dict[object, OnAnswer] = {}

    def answer(self, request: object, answer: Message | None) -> None:
        on_answer = self.waiting.pop(request, None)
        if on_answer is not None:
            on_answer(answer)


class Peers:
    """The brokers that are asked, by id; `listener_name` is where brokers reach each other."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        metadata: ClusterMetadata,
        connect: Callable[[tuple[str, int]], ClientConnection],
        listener_name: str,
    ) -> None:
        self.loop = loop
        self._metadata = metadata
        self._connect = connect
        self._listener_name = listener_name
        self._peers: dict[int, _Peer] = {}

    def coordinator_of(self, topic_name: str, key: str) -> int | None:
        """Return the leader of a key's partition of a coordinator's topic; None if unavailable."""
        topic = self._metadata.image.topics.by_name.get(topic_name)
        if topic is None:
            return None
        leader = topic.partitions[partition_for(key, len(topic.partitions))].leader
        return None if self.address_of(leader) is None else leader

    def address_of(self, broker_id: int) -> tuple[str, int] | None:
        """Return the present address of a broker; None if it is not alive."""
        broker = self._metadata.image.brokers.get(broker_id)
        if broker is None or broker.is_fenced:
            return None
        return broker.endpoints.get(self._listener_name)

    def ask(
        self,
        broker_id: int,
        request: Message,
        api_version: int,
        timeout_ms: int,
        on_answer: OnAnswer,
    ) -> None:
        """Ask a broker, which may be this one; `on_answer` is called once, later."""
        peer = self._find(broker_id)
        if peer is None:
            self.loop.call_soon(on_answer, None)
            return
        asked = object()
        peer.waiting[asked] = on_answer
        peer.connection.ask(request, api_version, timeout_ms, partial(peer.answer, asked))

    def _find(self, broker_id: int) -> _Peer | None:
        address = self.address_of(broker_id)
        if address is None:
            return None
        found = self._peers.get(broker_id)
        if found is None or found.connection.address != address:
            if found is not None:
                self._drop(broker_id)
            found = self._peers[broker_id] = _Peer(self._connect(address))
        return found

    def on_brokers_changed(self) -> None:
        """Stop waiting for answers of brokers that are gone, or that have another address."""
        for broker_id, peer in list(self._peers.items()):
            if self.address_of(broker_id) != peer.connection.address:
                self._drop(broker_id)

    def _drop(self, broker_id: int) -> None:
        peer = self._peers.pop(broker_id)
        peer.connection.close()
        # Not within a change of the metadata: whoever is answered may append.
        for asked in list(peer.waiting):
            self.loop.call_soon(peer.answer, asked, None)

    def stop(self) -> None:
        """Close all connections; nobody is answered."""
        for peer in self._peers.values():
            peer.connection.close()


class Entry(Protocol):
    """One of the entries of a request."""

    @property
    def key(self) -> Hashable:
        """A request has at most one entry of each key."""

    @property
    def size(self) -> int:
        """The entry's part of the size that a request may have."""


EntryT = TypeVar("EntryT", bound=Entry)


class _Lane(Generic[EntryT]):
    """The entries for one broker. Invariant: at most one request is under way."""

    __slots__ = ("is_under_way", "queued")

    def __init__(self) -> None:
        self.queued: list[EntryT] = []
        self.is_under_way = False


class Batches(Generic[EntryT]):
    """Sends entries to brokers, many in a request; `on_answer` gets them with the answer or None.

    A request has at most `max_entries`, whose sizes together are at most `max_size`, except a
    single entry that is larger.
    """

    def __init__(
        self,
        peers: Peers,
        request_of: Callable[[list[EntryT]], tuple[Message, int]],
        on_answer: Callable[[list[EntryT], Message | None], None],
        *,
        timeout_ms: int,
        max_entries: int,
        max_size: int,
        gathers: bool = False,
    ) -> None:
        """Make a sender; `request_of` returns the request with the entries, and its version.

        If it `gathers`, a request leaves at the end of a turn of the loop, with all entries of
        this turn. Otherwise the first entry leaves at once, unless a request is under way.
        """
        self._peers = peers
        self._request_of = request_of
        self._on_answer = on_answer
        self._timeout_ms = timeout_ms
        self._max_entries = max_entries
        self._max_size = max_size
        self._lanes: dict[tuple[int, Hashable], _Lane[EntryT]] = {}
        self._gathers = gathers
        self._is_scheduled = False

    def put(self, broker_id: int, entry: EntryT, lane: Hashable = None) -> None:
        """Queue an entry for a broker; requests of different lanes do not wait for each other."""
        name = broker_id, lane
        found = self._lanes.setdefault(name, _Lane())
        found.queued.append(entry)
        if not self._gathers:
            if not found.is_under_way:
                self._send(name, found)
        elif not self._is_scheduled:
            self._is_scheduled = True
            self._peers.loop.call_soon(self._send_all)

    def _send_all(self) -> None:
        self._is_scheduled = False
        for name, lane in list(self._lanes.items()):
            if not lane.is_under_way:
                self._send(name, lane)

    def _send(self, name: tuple[int, Hashable], lane: _Lane[EntryT]) -> None:
        entries = self._take_next(lane)
        if not entries:
            del self._lanes[name]
            return
        lane.is_under_way = True
        request, version = self._request_of(entries)

        def on_answer(answer: Message | None) -> None:
            lane.is_under_way = False
            self._on_answer(entries, answer)
            self._send(name, lane)

        self._peers.ask(name[0], request, version, self._timeout_ms, on_answer)

    def _take_next(self, lane: _Lane[EntryT]) -> list[EntryT]:
        """Choose the entries of the next request, in the order in which they came."""
        chosen: dict[Hashable, EntryT] = {}
        left: list[EntryT] = []
        room = self._max_size
        for entry in lane.queued:
            is_full = len(chosen) == self._max_entries or (bool(chosen) and entry.size > room)
            if entry.key in chosen or is_full:
                left.append(entry)
            else:
                chosen[entry.key] = entry
                room -= entry.size
        lane.queued = left
        return list(chosen.values())
