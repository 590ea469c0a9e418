"""Asks the share coordinators for the states of share-partitions, and sends them the changes.

Each coordinator's broker gets one read and one write at a time for each share group, with all the
questions that wait: under load one request, and one batch of the coordinator's log, carries the
acknowledgements of many members. A question is repeated, after a pause that doubles, while its
coordinator moves or does not answer, for at most `RETRY_MS`. A write may be repeated, because it
gives states and not differences.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from broker.coordinator.share_state.state import SharePartitionKey
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.server.clock import Clock
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.broker_connections import BrokerConnections
from broker.server.coordinators.share_states import coordinator_key
from broker.server.network.client_connection import ClientConnection
from broker.server.share.state_requests import (
    NO_ANSWER,
    Lane,
    Question,
    Refusal,
    Result,
    request_of,
    results_of,
)
from broker.share.stored_state import TO_RETRY, StateWrite
from common.kafka.protocol.message import Message

RETRY_MS = 15_000
FIRST_PAUSE_MS = 25
MAX_PAUSE_MS = 1_000
REQUEST_TIMEOUT_MS = 10_000


class PersisterParts(NamedTuple):
    """The objects that the persister works with."""

    loop: asyncio.AbstractEventLoop
    clock: Clock
    metadata: ClusterMetadata
    connect: Callable[[tuple[str, int]], ClientConnection]
    listener_name: str
    """The listener by which brokers reach each other."""


class _Coordinator:
    """The broker of some share coordinators."""

    __slots__ = ("connection", "is_scheduled", "lanes")

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.is_scheduled = False
        self.lanes: dict[tuple[str, bool], Lane] = {}
        """By share group, and whether it writes."""


class StatePersister:
    """See the module."""

    def __init__(self, parts: PersisterParts, retry_ms: int = RETRY_MS) -> None:
        self._loop, self._clock, metadata, connect, listener_name = parts
        self._coordinators = BrokerConnections(
            metadata,
            listener_name,
            lambda address: _Coordinator(connect(address)),
            self._on_dropped,
        )
        self._retries: set[asyncio.TimerHandle] = set()
        self._retry_ms = retry_ms
        self._is_stopped = False

    def read(
        self, key: SharePartitionKey, leader_epoch: int, on_result: Callable[[Result], None]
    ) -> None:
        """Ask for the state of a share-partition; a new leader epoch fences older leaders."""
        self._ask(Question(key, leader_epoch, on_result, self._clock.now_ms() + self._retry_ms))

    def write(
        self, key: SharePartitionKey, write: StateWrite, on_result: Callable[[Result], None]
    ) -> None:
        """Store a change; the caller has one write under way for each share-partition."""
        self._ask(Question(key, write, on_result, self._clock.now_ms() + self._retry_ms))

    def _ask(self, question: Question) -> None:
        found = self._coordinators.coordinator_of(SHARE_GROUP_STATE, coordinator_key(question.key))
        if found is None:
            # Not within the caller's step: it is told later, like everything.
            self._loop.call_soon(self._retry, question, NO_ANSWER)
            return
        group_id, writes = question.key.group_id, isinstance(question.wanted, StateWrite)
        found.lanes.setdefault((group_id, writes), Lane()).queued.append(question)
        if not found.is_scheduled:
            found.is_scheduled = True
            self._loop.call_soon(self._send_all, found)

    def _retry(self, question: Question, refusal: Refusal) -> None:
        if self._is_stopped:
            return
        question.pause_ms = min(MAX_PAUSE_MS, 2 * question.pause_ms or FIRST_PAUSE_MS)
        if self._clock.now_ms() + question.pause_ms > question.deadline_ms:
            question.on_result(refusal)
            return

        def again() -> None:
            self._retries.discard(timer)
            self._ask(question)

        timer = self._loop.call_later(question.pause_ms / 1000, again)
        self._retries.add(timer)

    # --- the coordinators ---

    def on_brokers_changed(self) -> None:
        """Stop waiting for answers of brokers that are gone, or that have another address."""
        self._coordinators.on_brokers_changed()

    def _on_dropped(self, coordinator: _Coordinator) -> None:
        lanes, coordinator.lanes = coordinator.lanes, {}
        for lane in lanes.values():
            for question in (*lane.under_way.values(), *lane.queued):
                self._loop.call_soon(self._retry, question, NO_ANSWER)
            lane.under_way, lane.queued = {}, []

    # --- the requests ---

    def _send_all(self, coordinator: _Coordinator) -> None:
        """Send what was asked in this turn of the loop."""
        coordinator.is_scheduled = False
        for name, lane in list(coordinator.lanes.items()):
            if not lane.under_way:
                self._send(coordinator, name, lane)

    def _send(self, coordinator: _Coordinator, name: tuple[str, bool], lane: Lane) -> None:
        questions = lane.take_next()
        if not questions:
            coordinator.lanes.pop(name, None)
            return
        request, version = request_of(questions)
        coordinator.connection.ask(
            request,
            version,
            REQUEST_TIMEOUT_MS,
            partial(self._on_answer, coordinator, name, lane),
        )

    def _on_answer(
        self,
        coordinator: _Coordinator,
        name: tuple[str, bool],
        lane: Lane,
        answer: Message | None,
    ) -> None:
        questions, lane.under_way = lane.under_way, {}
        results = results_of(answer)
        for place, question in questions.items():
            result = results.get(place, NO_ANSWER)
            if isinstance(result, Refusal) and result.code in TO_RETRY:
                self._retry(question, result)
            else:
                question.on_result(result)
        if not lane.under_way:
            self._send(coordinator, name, lane)

    def stop(self) -> None:
        """Stop all timers and connections, without an answer to what waits."""
        self._is_stopped = True
        for timer in self._retries:
            timer.cancel()
        self._coordinators.close()
