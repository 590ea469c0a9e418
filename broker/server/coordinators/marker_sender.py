"""Sends the markers of ended transactions to the leaders of their partitions.

Each leader gets one WriteTxnMarkers at a time, with the markers of many transactions. A marker that
a leader cannot write (it leads no longer, it is loading, it is gone) is sent again after a pause,
to the leader of that time. A marker is sent until it is written, or until its partition is deleted,
because a transaction whose outcome is decided must not stay open in any partition. A marker that is
written twice ends an empty transaction the second time, which changes nothing.

A leader answers when all markers of a request are replicated. A partition that takes long (a
follower is frozen, and still in the ISR) would delay the markers of all others: the markers of a
partition that timed out therefore use a separate connection, until one is written.

Invariant: every open partition is queued at one leader, is under way to one, or waits for the next
attempt.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from itertools import islice

from broker.coordinator.transaction.markers import SendMarkers
from broker.metadata.image import NO_LEADER
from broker.model import TopicPartition
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.peers import Peers
from common.kafka.errors import ErrorCode
from common.kafka.protocol.array_limits import REPLICAS_OF_A_BROKER
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

log = logging.getLogger("millstream.transactions")

WRITE_TXN_MARKERS_VERSION = 2
MAX_TRANSACTIONS_PER_REQUEST = 100
"""The records for the transactions that one answer completes are appended in one turn."""
REQUEST_TIMEOUT_MS = 30_000
MAX_BACKOFF_MS = 1_000
"""A pause doubles up to this while there is no progress: no marker written, no new leader."""

OnWritten = Callable[[int, SendMarkers, Iterable[TopicPartition]], None]


class _Sending:
    """The markers of one effect of a shard; compared by identity."""

    __slots__ = ("markers", "missing_count", "shard_number")

    def __init__(self, shard_number: int, markers: SendMarkers) -> None:
        self.shard_number = shard_number
        self.markers = markers
        self.missing_count = len(markers.partitions)


Entries = dict[_Sending, list[TopicPartition]]


class _Leader:
    """One broker that gets markers. Invariant: at most one request is under way."""

    __slots__ = ("broker_id", "peers", "queued", "under_way")

    def __init__(self, broker_id: int, peers: Peers) -> None:
        self.broker_id = broker_id
        self.peers = peers
        self.queued: Entries = {}
        self.under_way: Entries | None = None

    def take_next(self) -> Entries:
        """Choose the markers of the next request: up to its limit, at least one."""
        room = REPLICAS_OF_A_BROKER
        chosen: list[_Sending] = []
        for sending in islice(self.queued, MAX_TRANSACTIONS_PER_REQUEST):
            room -= len(self.queued[sending])
            if room < 0 and chosen:
                break
            chosen.append(sending)
        return {sending: self.queued.pop(sending) for sending in chosen}


class MarkerSender:
    """Writes the markers of this broker's transaction shards to the leaders of the partitions."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        new_peers: Callable[[], Peers],
        retry_backoff_ms: int,
        coordinator_epoch: Callable[[int], int],
        on_written: OnWritten,
    ) -> None:
        self._metadata = metadata
        self._peers = {False: new_peers(), True: new_peers()}
        """The connections, and those for the markers of slow partitions."""
        self._loop = self._peers[False].loop
        self._retry_backoff_ms = retry_backoff_ms
        self._coordinator_epoch = coordinator_epoch
        self._on_written = on_written
        self._leaders: dict[tuple[int, bool], _Leader] = {}
        """The targets by broker, and by whether they are for slow partitions."""
        self._slow: set[TopicPartition] = set()
        self._waiting: Entries = {}
        self._open: dict[int, dict[_Sending, None]] = {}
        """The markers of each shard, which are dropped when the shard is unloaded."""
        self._flushing: asyncio.Handle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._backoff_ms = retry_backoff_ms
        self._is_stopped = False

    def send(self, shard_number: int, markers: SendMarkers) -> None:
        """Begin to write these markers."""
        sending = _Sending(shard_number, markers)
        self._open.setdefault(shard_number, {})[sending] = None
        self._assign({sending: list(markers.partitions)})

    def forget(self, shard_number: int) -> None:
        """Drop the markers of an unloaded shard: the broker that loads it sends them again."""
        for sending in self._open.pop(shard_number, {}):
            self._waiting.pop(sending, None)
            for leader in self._leaders.values():
                leader.queued.pop(sending, None)
        if not self._open:
            self._slow.clear()

    def on_metadata_change(self) -> None:
        """Try again soon: a partition may have another leader."""
        if self._retry is not None and self._backoff_ms > self._retry_backoff_ms:
            self._retry.cancel()
            self._retry = None
            self._backoff_ms = self._retry_backoff_ms
            self._try_later({})

    def on_brokers_changed(self) -> None:
        """Stop waiting for answers of brokers that are gone, or that have another address."""
        for peers in self._peers.values():
            peers.on_brokers_changed()
        for lane, leader in list(self._leaders.items()):
            if leader.peers.address_of(leader.broker_id) is None:
                del self._leaders[lane]
                self._assign(leader.queued)
                leader.queued = {}

    def stop(self) -> None:
        """Stop all timers and connections."""
        self._is_stopped = True
        for handle in (self._flushing, self._retry):
            if handle is not None:
                handle.cancel()
        for peers in self._peers.values():
            peers.stop()

    # --- where each partition is ---

    def _assign(self, entries: Entries) -> None:
        """Queue partitions at their leaders; those that are deleted need no marker."""
        for sending, partitions in entries.items():
            if not self._is_open(sending):
                continue
            gone: list[TopicPartition] = []
            for partition in partitions:
                self._queue(sending, partition, gone)
            if gone:
                self._slow.difference_update(gone)
                self._done(sending, gone)
        if self._flushing is None and not self._is_stopped:
            self._flushing = self._loop.call_soon(self._flush)

    def _queue(
        self, sending: _Sending, partition: TopicPartition, gone: list[TopicPartition]
    ) -> None:
        topic = self._metadata.image.topics.by_name.get(partition.topic)
        image = None if topic is None else topic.partitions.get(partition.partition)
        if image is None:
            gone.append(partition)
            return
        is_slow = partition in self._slow
        leader = None if image.leader == NO_LEADER else self._leader(image.leader, is_slow)
        if leader is None:
            self._try_later({sending: [partition]})
        else:
            leader.queued.setdefault(sending, []).append(partition)

    def _leader(self, broker_id: int, is_slow: bool) -> _Leader | None:
        leader = self._leaders.get((broker_id, is_slow))
        if leader is None:
            peers = self._peers[is_slow]
            if peers.address_of(broker_id) is None:
                return None
            leader = self._leaders[broker_id, is_slow] = _Leader(broker_id, peers)
        return leader

    # --- asking ---

    def _flush(self) -> None:
        self._flushing = None
        for leader in list(self._leaders.values()):
            self._ask(leader)

    def _ask(self, leader: _Leader) -> None:
        if leader.under_way is not None or not leader.queued:
            return
        entries = leader.under_way = leader.take_next()
        request = WriteTxnMarkersRequest(
            markers=[self._marker(sending, wanted) for sending, wanted in entries.items()]
        )
        leader.peers.ask(
            leader.broker_id,
            request,
            WRITE_TXN_MARKERS_VERSION,
            REQUEST_TIMEOUT_MS,
            lambda answer: self._on_answer(leader, answer),
        )

    def _marker(self, sending: _Sending, partitions: list[TopicPartition]) -> WritableTxnMarker:
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        markers = sending.markers
        return WritableTxnMarker(
            producer_id=markers.producer_id,
            producer_epoch=markers.producer_epoch,
            transaction_result=markers.is_commit,
            topics=[
                WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                for name, indexes in topics.items()
            ],
            coordinator_epoch=self._coordinator_epoch(sending.shard_number),
            transaction_version=markers.transaction_version,
        )

    def _on_answer(self, leader: _Leader, answer: Message | None) -> None:
        entries, leader.under_way = leader.under_way or {}, None
        written: dict[int, frozenset[TopicPartition]] = {}
        if isinstance(answer, WriteTxnMarkersResponse):
            written = _written(answer)
            self._slow |= _timed_out(answer)
        for sending, partitions in entries.items():
            done = written.get(sending.markers.producer_id, frozenset())
            left = [partition for partition in partitions if partition not in done]
            self._slow.difference_update(done)
            if left:
                self._try_later({sending: left})
            if len(left) < len(partitions):
                self._done(sending, [each for each in partitions if each in done])
        self._ask(leader)

    def _done(self, sending: _Sending, partitions: list[TopicPartition]) -> None:
        self._backoff_ms = self._retry_backoff_ms
        if not self._is_open(sending):
            return
        sending.missing_count -= len(partitions)
        if not sending.missing_count:
            of_shard = self._open[sending.shard_number]
            del of_shard[sending]
            if not of_shard:
                del self._open[sending.shard_number]
        self._on_written(sending.shard_number, sending.markers, partitions)

    def _is_open(self, sending: _Sending) -> bool:
        return sending in self._open.get(sending.shard_number, ())

    # --- trying again ---

    def _try_later(self, entries: Entries) -> None:
        for sending, partitions in entries.items():
            if self._is_open(sending):
                self._waiting.setdefault(sending, []).extend(partitions)
        if self._waiting and self._retry is None and not self._is_stopped:
            self._retry = self._loop.call_later(self._backoff_ms / 1000, self._try_again)
            self._backoff_ms = min(2 * self._backoff_ms, MAX_BACKOFF_MS)

    def _try_again(self) -> None:
        self._retry = None
        waiting, self._waiting = self._waiting, {}
        self._assign(waiting)


def _timed_out(answer: WriteTxnMarkersResponse) -> set[TopicPartition]:
    """Yield the partitions whose markers are not replicated yet."""
    return {
        TopicPartition(topic.name, partition.partition_index)
        for marker in answer.markers
        for topic in marker.topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.REQUEST_TIMED_OUT
    }


def _written(answer: WriteTxnMarkersResponse) -> dict[int, frozenset[TopicPartition]]:
    """Return, by producer id, the partitions that have their marker."""
    written: dict[int, frozenset[TopicPartition]] = {}
    for marker in answer.markers:
        done = set()
        for topic in marker.topics:
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.NONE:
                    done.add(TopicPartition(topic.name, partition.partition_index))
                else:
                    log.info(
                        "marker not written yet topic=%s partition=%d producer_id=%d error_code=%d",
                        topic.name,
                        partition.partition_index,
                        marker.producer_id,
                        partition.error_code,
                    )
        written[marker.producer_id] = frozenset(done)
    return written
