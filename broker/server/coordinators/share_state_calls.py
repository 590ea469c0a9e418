"""Asks the share coordinators to begin, to forget, or to summarise the state of share-partitions.

A call is about many partitions of one group. Each coordinator's broker gets one request with its
partitions; those whose coordinator moves, or does not answer, are asked for again after a pause
that doubles, for at most `RETRY_MS`. Each of the requests may be repeated.

As long as the cluster has no `__share_group_state`, no share-partition has state: a summary says so
at once, and there is nothing to delete.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from broker.coordinator.partitioning import partition_for
from broker.coordinator.share_group.initialization import InitializeState
from broker.coordinator.share_state.state import NO_EPOCH, UNINITIALIZED, SharePartitionKey
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.server.clock import Clock
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.share_states import coordinator_key
from broker.server.network.later import Later
from broker.server.peers import Peers
from broker.share.session import PartitionKey
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state_summary,
)

RETRY_MS = 15_000
FIRST_PAUSE_MS = 50
MAX_PAUSE_MS = 1_000
REQUEST_TIMEOUT_MS = 10_000
PARTITIONS_PER_REQUEST = 1_000
TO_RETRY = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)

Results = dict[PartitionKey, Any]
"""The `PartitionResult` of each partition; the type is that of the API."""


class _Api(NamedTuple):
    """One of the requests, and how it is put together."""

    request: Callable[..., Message]
    topic: Callable[..., Any]
    version: int
    result: Callable[..., Any]
    without_state: Callable[..., Any] | None
    """The result while no share-partition of the cluster has state; None if it has to be begun."""


INITIALIZE = _Api(
    initialize_share_group_state.InitializeShareGroupStateRequest,
    initialize_share_group_state.InitializeStateData,
    0,
    initialize_share_group_state.PartitionResult,
    without_state=None,
)
DELETE = _Api(
    delete_share_group_state.DeleteShareGroupStateRequest,
    delete_share_group_state.DeleteStateData,
    0,
    delete_share_group_state.PartitionResult,
    without_state=delete_share_group_state.PartitionResult,
)
SUMMARIZE = _Api(
    read_share_group_state_summary.ReadShareGroupStateSummaryRequest,
    read_share_group_state_summary.ReadStateSummaryData,
    1,
    read_share_group_state_summary.PartitionResult,
    without_state=partial(
        read_share_group_state_summary.PartitionResult, start_offset=UNINITIALIZED
    ),
)


class ShareStateCalls:
    """Asks share coordinators about share-partitions, for the group coordinator."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, metadata: ClusterMetadata, peers: Peers
    ) -> None:
        self.loop = loop
        self.clock = clock
        self._metadata = metadata
        self.peers = peers
        self._calls: set[_Call] = set()

    def initialize(self, wanted: InitializeState) -> Later:
        """Begin states; the value is `Results`."""
        entries = {
            (topic_id, partition): initialize_share_group_state.PartitionData(
                partition=partition, state_epoch=wanted.state_epoch, start_offset=start_offset
            )
            for topic_id, start_offsets in wanted.start_offsets.items()
            for partition, start_offset in start_offsets.items()
        }
        return self._begin(INITIALIZE, wanted.group_id, entries)

    def delete(self, group_id: str, partitions: Mapping[bytes, tuple[int, ...]]) -> Later:
        """Forget states; the value is `Results`."""
        entries = {
            (topic_id, partition): delete_share_group_state.PartitionData(partition=partition)
            for topic_id, of_topic in partitions.items()
            for partition in of_topic
        }
        return self._begin(DELETE, group_id, entries)

    def summarize(self, group_id: str, partitions: Mapping[bytes, tuple[int, ...]]) -> Later:
        """Ask where share-partitions are; the value is `Results`."""
        entries = {
            (topic_id, partition): read_share_group_state_summary.PartitionData(
                partition=partition, leader_epoch=NO_EPOCH
            )
            for topic_id, of_topic in partitions.items()
            for partition in of_topic
        }
        return self._begin(SUMMARIZE, group_id, entries)

    def _begin(self, api: _Api, group_id: str, entries: dict[PartitionKey, Any]) -> Later:
        done = Later()
        call = _Call(self, api, group_id, entries, done)
        self._calls.add(call)
        self.loop.call_soon(call.attempt)
        return done

    @property
    def has_coordinators(self) -> bool:
        """Return whether the topic of the share coordinators exists."""
        return SHARE_GROUP_STATE in self._metadata.image.topics.by_name

    def coordinator_of(self, group_id: str, place: PartitionKey) -> int | None:
        """Return the broker that has the state of a partition, as far as this node knows."""
        topic = self._metadata.image.topics.by_name.get(SHARE_GROUP_STATE)
        if topic is None:
            return None
        key = coordinator_key(SharePartitionKey(group_id, *place))
        return topic.partitions[partition_for(key, len(topic.partitions))].leader

    def forget(self, call: "_Call") -> None:
        """Drop a call that is done."""
        self._calls.discard(call)

    def stop(self) -> None:
        """Stop all timers; nobody is answered."""
        for call in self._calls:
            call.stop()


class _Call:
    """One call. Invariant: each partition is in `_open` or has a result."""

    def __init__(
        self,
        calls: ShareStateCalls,
        api: _Api,
        group_id: str,
        entries: dict[PartitionKey, Any],
        done: Later,
    ) -> None:
        self._calls = calls
        self._api = api
        self._group_id = group_id
        self._open = entries
        self._done = done
        self._results: Results = {}
        self._deadline_ms = calls.clock.now_ms() + RETRY_MS
        self._pause_ms = FIRST_PAUSE_MS
        self._under_way = 0
        self._timer: asyncio.TimerHandle | None = None

    def attempt(self) -> None:
        """Ask for everything that has no result."""
        self._timer = None
        without_state = self._api.without_state
        if without_state is not None and not self._calls.has_coordinators:
            self._end_with(without_state)
            return
        by_broker: dict[int, dict[PartitionKey, Any]] = {}
        for place, entry in self._open.items():
            broker_id = self._calls.coordinator_of(self._group_id, place)
            if broker_id is not None:
                by_broker.setdefault(broker_id, {})[place] = entry
        parts = [
            (broker_id, part)
            for broker_id, entries in by_broker.items()
            for part in _parts(entries)
        ]
        self._under_way = len(parts)
        for broker_id, part in parts:
            self._calls.peers.ask(
                broker_id,
                self._request(part),
                self._api.version,
                REQUEST_TIMEOUT_MS,
                self._on_answer,
            )
        if not parts:
            self._go_on()

    def _request(self, entries: Mapping[PartitionKey, Any]) -> Message:
        topics: dict[bytes, Any] = {}
        for (topic_id, _), entry in entries.items():
            if topic_id not in topics:
                topics[topic_id] = self._api.topic(topic_id=topic_id)
            topics[topic_id].partitions.append(entry)
        return self._api.request(group_id=self._group_id, topics=list(topics.values()))

    def _on_answer(self, answer: Any) -> None:
        for topic in () if answer is None else answer.results:
            for each in topic.partitions:
                place = topic.topic_id, each.partition
                if place in self._open and each.error_code not in TO_RETRY:
                    del self._open[place]
                    self._results[place] = each
        self._under_way -= 1
        if not self._under_way:
            self._go_on()

    def _go_on(self) -> None:
        if self._open and self._calls.clock.now_ms() + self._pause_ms <= self._deadline_ms:
            self._timer = self._calls.loop.call_later(self._pause_ms / 1000, self.attempt)
            self._pause_ms = min(MAX_PAUSE_MS, 2 * self._pause_ms)
            return
        self._end_with(
            partial(
                self._api.result,
                error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
                error_message="The share coordinator does not answer.",
            )
        )

    def _end_with(self, result: Callable[..., Any]) -> None:
        """End the call, with this result for each partition that has none."""
        for place in self._open:
            self._results[place] = result(partition=place[1])
        self._calls.forget(self)
        self._done.done(self._results)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()


def _parts(entries: dict[PartitionKey, Any]) -> Iterator[dict[PartitionKey, Any]]:
    left = iter(entries.items())
    while part := dict(islice(left, PARTITIONS_PER_REQUEST)):
        yield part


def divided(results: Results) -> tuple[dict[bytes, list[int]], dict[PartitionKey, Any]]:
    """Return the partitions without an error by topic id, and the results that have one."""
    done: dict[bytes, list[int]] = {}
    refused: dict[PartitionKey, Any] = {}
    for (topic_id, partition), result in results.items():
        if result.error_code == ErrorCode.NONE:
            done.setdefault(topic_id, []).append(partition)
        else:
            refused[topic_id, partition] = result
    return done, refused


def by_topic(places: Mapping[PartitionKey, object]) -> dict[bytes, list[int]]:
    """Return partitions by topic id."""
    partitions: dict[bytes, list[int]] = {}
    for topic_id, partition in places:
        partitions.setdefault(topic_id, []).append(partition)
    return partitions
