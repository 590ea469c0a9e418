"""Asks the share coordinators for the states of share-partitions, and sends them the changes.

Each coordinator's broker gets one read and one write at a time for each share group, with all the
questions that wait: under load one request, and one batch of the coordinator's log, carries the
acknowledgements of many members. A question is repeated, after a pause that doubles, while its
coordinator moves or does not answer, for at most `RETRY_MS`. A write may be repeated, because it
gives states and not differences.
"""

import asyncio
from collections.abc import Callable

from broker.coordinator.share_state.state import SharePartitionKey
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.server.clock import Clock
from broker.server.coordinators.share_states import coordinator_key
from broker.server.peers import Batches, Peers
from broker.server.share.state_requests import (
    BATCHES_PER_REQUEST,
    NO_ANSWER,
    PARTITIONS_PER_REQUEST,
    Refusal,
    Result,
    StateQuestion,
    request_of,
    results_of,
)
from broker.share.stored_state import TO_RETRY, StateWrite
from common.kafka.protocol.message import Message

RETRY_MS = 15_000
FIRST_PAUSE_MS = 25
MAX_PAUSE_MS = 1_000
REQUEST_TIMEOUT_MS = 10_000


class StatePersister:
    """Reads and writes the states of share-partitions at their coordinators."""

    def __init__(self, clock: Clock, peers: Peers, retry_ms: int = RETRY_MS) -> None:
        self._clock = clock
        self._peers = peers
        self._loop = peers.loop
        self._batches = Batches(
            peers,
            request_of,
            self._on_answer,
            timeout_ms=REQUEST_TIMEOUT_MS,
            max_entries=PARTITIONS_PER_REQUEST,
            max_size=BATCHES_PER_REQUEST,
            gathers=True,
        )
        self._retries: set[asyncio.TimerHandle] = set()
        self._retry_ms = retry_ms
        self._is_stopped = False

    def read(
        self, key: SharePartitionKey, leader_epoch: int, on_result: Callable[[Result], None]
    ) -> None:
        """Ask for the state of a share-partition; a new leader epoch fences older leaders."""
        self._ask(
            StateQuestion(key, leader_epoch, on_result, self._clock.now_ms() + self._retry_ms)
        )

    def write(
        self, key: SharePartitionKey, write: StateWrite, on_result: Callable[[Result], None]
    ) -> None:
        """Store a change; the caller has one write under way for each share-partition."""
        deadline_ms = self._clock.now_ms() + self._retry_ms
        self._ask(StateQuestion(key, write, on_result, deadline_ms))

    def _ask(self, question: StateQuestion) -> None:
        key = question.share_partition
        coordinator = self._peers.coordinator_of(SHARE_GROUP_STATE, coordinator_key(key))
        if coordinator is None:
            # Not within the caller's step: it is told later, like everything.
            self._loop.call_soon(self._retry, question, NO_ANSWER)
            return
        lane = key.group_id, isinstance(question.wanted, StateWrite)
        self._batches.put(coordinator, question, lane)

    def _retry(self, question: StateQuestion, refusal: Refusal) -> None:
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

    def _on_answer(self, questions: list[StateQuestion], answer: Message | None) -> None:
        results = results_of(answer)
        for question in questions:
            result = results.get(question.key, NO_ANSWER)
            if isinstance(result, Refusal) and result.code in TO_RETRY:
                self._retry(question, result)
            else:
                question.on_result(result)

    def stop(self) -> None:
        """Stop all timers, without an answer to what waits."""
        self._is_stopped = True
        for timer in self._retries:
            timer.cancel()
