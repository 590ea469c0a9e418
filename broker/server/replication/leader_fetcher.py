"""One connection to one leader: each Fetch asks for the missing records of many partitions.

    IDLE        no Fetch to send: there is no partition, or all of them back off
    ASKING      a Fetch of the session is under way (KIP-227); a partition that is added meanwhile
                is fetched without a session, which also makes the leader answer the first Fetch
    APPENDING   an answer is written, one piece per turn, so that megabytes do not block the loop;
                the connection is paused meanwhile

The `PartitionFollower` of each partition decides its fetch offset and the effect of an answer. A
partition whose offset is outside of the leader's log asks for the leader's offsets first
(ListOffsets). A throttled partition is left out of the Fetch until the rate permits it (KIP-73).
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator

from broker.replication.fetch_session.fetcher_session import FetcherSession, SessionRequest
from broker.replication.fetch_session.session import FINAL_EPOCH, NO_SESSION
from broker.replication.follower import FetchPosition, FollowerOutcome
from broker.server.network.client_connection import ClientConnection
from broker.server.replication.offsets_question import (
    FetcherParts,
    Key,
    OffsetsQuestion,
    follower_of,
)
from broker.server.replication.partitions import Partition
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

log = logging.getLogger("millstream.fetcher")

FETCH_VERSION = 17
BYTES_PER_TURN = 1024 * 1024
EXTRA_WAIT_MS = 0

Asked = dict[Key, FetchPosition]


class LeaderFetcher:
    """Fetches from one leader. Invariant: no partition is in two Fetches at a time.

    `_asked` has every partition that the session fetches, also between two of its requests, and
    `_free` has all others. A session at rest costs nothing here: only free partitions are checked.
    """

    def __init__(self, parts: FetcherParts, leader_id: int, address: tuple[str, int]) -> None:
        self._parts = parts
        self._leader_id = leader_id
        self.address = address
        self._is_lost = False
        self._partitions: dict[Key, Partition] = {}
        self._asked: Asked = {}
        self._free: dict[Key, Partition] = {}
        self._session = FetcherSession()
        self._under_way = 0
        self._is_extra_under_way = False
        self._is_asking_offsets = False
        self._timer: asyncio.Handle | None = None
        self._answers: Iterator[None] | None = None
        self._connection = ClientConnection(parts.loop, address, parts.settings, lends_answers=True)

    @property
    def is_empty(self) -> bool:
        """True if it fetches no partition."""
        return not self._partitions

    def add(self, partition: Partition) -> None:
        """Start to fetch a partition."""
        key = partition.key
        self._partitions[key] = self._free[key] = partition
        self._asked.pop(key, None)
        self._schedule(0)

    def remove(self, key: Key) -> None:
        """Stop fetching a partition."""
        self._partitions.pop(key, None)
        self._free.pop(key, None)
        self._asked.pop(key, None)
        self._session.drop(key)

    def partitions(self) -> Iterable[Partition]:
        """Return the partitions that it fetches."""
        return self._partitions.values()

    def close(self) -> None:
        """Stop, and drop the request under way."""
        self._partitions.clear()
        self._free.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._answers = None
        self._connection.close()

    # --- ask ---

    def _schedule(self, delay_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = self._parts.loop
        self._timer = (
            loop.call_later(delay_ms / 1000, self._on_time)
            if delay_ms
            else loop.call_soon(self._on_time)
        )

    def _on_time(self) -> None:
        self._timer = None
        self._ask()

    def _ask(self) -> None:
        """Fetch every partition that is ready and is not in a Fetch yet.

        No Fetch is sent while one without a session is under way: that one is answered at once, and
        so is the session's because of it. Otherwise neither would ever wait for records.
        """
        if self._answers is not None or self._is_extra_under_way:
            return
        now_ms, free = self._parts.clock.now_ms(), self._free
        self._ask_offsets(free, now_ms)
        asked: Asked = {}
        is_throttled = self._parts.throttle.is_used
        for key, partition in free.items():
            if not (is_throttled and self._must_wait(partition, now_ms)):
                position = follower_of(partition).next_fetch(now_ms)
                if position is not None:
                    asked[key] = position
        for key in asked:
            del free[key]
        if asked or (self._asked and not self._under_way):
            self._send(asked, self._request_for(asked))
        if free:
            self._wait_for_backoff(free.values(), now_ms)

    def _must_wait(self, partition: Partition, now_ms: int) -> bool:
        is_in_sync = follower_of(partition).is_in_sync
        return self._parts.throttle.must_wait(
            *partition.topic_partition, is_in_sync=is_in_sync, now_ms=now_ms
        )

    def _request_for(self, asked: Asked) -> SessionRequest:
        """Return the differences from the last request, or all if another one is under way."""
        if self._under_way:
            return SessionRequest(NO_SESSION, FINAL_EPOCH, list(asked.items()), [])
        session = self._session
        for key in self._free:
            session.drop(key)
        for key, position in asked.items():
            session.want(key, position)
        return session.next_request()

    def _wait_for_backoff(self, free: Iterable[Partition], now_ms: int) -> None:
        """Set the timer for the first partition that backs off or is throttled."""
        waits_ms = [
            follower.retry_at_ms - now_ms
            for follower in map(follower_of, free)
            if follower.retry_at_ms > now_ms
        ]
        throttle = self._parts.throttle
        if throttle.is_used and (throttle_ms := throttle.rate.wait_ms(now_ms)):
            waits_ms.append(throttle_ms)
        if waits_ms:
            self._schedule(min(waits_ms))

    def _send(self, asked: Asked, said: SessionRequest) -> None:
        parts, config = self._parts, self._parts.config
        topics: dict[bytes, FetchTopic] = {}
        for (topic_id, number), position in said.to_send:
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic_id=topic_id)
            topic.partitions.append(
                FetchPartition(
                    partition=number,
                    current_leader_epoch=position.current_leader_epoch,
                    fetch_offset=position.fetch_offset,
                    last_fetched_epoch=position.last_fetched_epoch,
                    log_start_offset=position.log_start_offset,
                    partition_max_bytes=config.fetch_max_bytes,
                )
            )
        request = FetchRequest(
            replica_state=ReplicaState(
                replica_id=parts.node_id, replica_epoch=parts.broker_epoch()
            ),
            max_wait_ms=EXTRA_WAIT_MS if self._under_way else config.fetch_wait_max_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.response_max_bytes,
            session_id=said.session_id,
            session_epoch=said.session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic_id, partitions=[number])
                for topic_id, number in said.to_forget
            ],
        )
        in_session = said.session_epoch != FINAL_EPOCH
        self._asked.update(asked)
        answered = self._asked.copy() if in_session else asked
        self._under_way += 1
        self._is_extra_under_way = not in_session
        self._connection.ask(
            request,
            FETCH_VERSION,
            config.socket_timeout_ms,
            lambda response: self._on_response(answered, response, in_session=in_session),
        )

    # --- answers ---

    def _on_response(self, asked: Asked, response: Message | None, *, in_session: bool) -> None:
        self._under_way -= 1
        if not in_session:
            self._is_extra_under_way = False
        if response is None:
            self._answers = None
            if in_session:
                self._session.handle_no_answer()
            # A broken connection is opened again at once; the back-off is for the next failures.
            self._give_up(asked, is_at_fault=self._is_lost)
            self._note_lost(is_lost=True)
            return
        self._note_lost(is_lost=False)
        assert isinstance(response, FetchResponse), response
        if not in_session:
            is_valid = response.error_code == ErrorCode.NONE
        else:
            is_valid = self._session.handle_answer(
                response.error_code,
                response.session_id,
                [
                    (topic.topic_id, partition.partition_index)
                    for topic in response.responses
                    for partition in topic.partitions
                ],
            )
        if not is_valid:
            log.info("fetch refused by=%s:%d error=%d", *self.address, response.error_code)
            self._give_up(asked, is_at_fault=response.error_code not in SESSION_IS_OVER)
            return
        self._answers = self._take(asked, response, in_session=in_session)
        self._go_on()

    def _note_lost(self, *, is_lost: bool) -> None:
        """Notify of the loss of the leader, and of its return."""
        if is_lost != self._is_lost:
            self._is_lost = is_lost
            tell = self._parts.on_lost if is_lost else self._parts.on_reached
            tell(self._leader_id)

    def _give_up(self, asked: Asked, *, is_at_fault: bool = True) -> None:
        """Wait before the next Fetch, or fetch all partitions again at once."""
        now_ms = self._parts.clock.now_ms()
        for key, position in asked.items():
            if self._asked.get(key) is position:
                partition = self._set_free(key)
                if partition is not None and is_at_fault:
                    follower_of(partition).back_off(now_ms)
        self._schedule(0)

    def _go_on(self) -> None:
        """Write the next piece of an answer; send the next Fetch after the last piece."""
        if self._answers is None:
            return
        if next(self._answers, self) is not self:
            self._connection.pause()
            self._parts.loop.call_soon(self._go_on)
            return
        self._answers = None
        self._connection.resume()
        self._ask()

    def _take(self, asked: Asked, response: FetchResponse, *, in_session: bool) -> Iterator[None]:
        """Hand every partition its answer, yielding when a turn's bytes are written.

        A partition that is not in the answer of a session has no news: it stays in the session, and
        is checked again only after an answer without any partition.
        """
        written_bytes = 0
        for topic in response.responses:
            for answer in topic.partitions:
                key = (topic.topic_id, answer.partition_index)
                position = asked.get(key)
                if position is None or self._asked.get(key) is not position:
                    continue
                partition = self._set_free(key)
                if partition is None:
                    continue
                written_bytes += self._take_one(partition, position, answer)
                if written_bytes >= BYTES_PER_TURN:
                    written_bytes = 0
                    yield
        if not in_session or not response.responses:
            for key, position in asked.items():
                if self._asked.get(key) is position:
                    self._set_free(key)

    def _set_free(self, key: Key) -> Partition | None:
        """Return a partition to the free ones, None if it is no longer fetched."""
        del self._asked[key]
        partition = self._partitions.get(key)
        if partition is not None:
            self._free[key] = partition
        return partition

    def _take_one(
        self, partition: Partition, position: FetchPosition, answer: PartitionData
    ) -> int:
        follower, log_of = follower_of(partition), partition.log
        before = log_of.high_watermark
        try:
            outcome = follower.handle_fetch_answer(position, answer, self._parts.clock.now_ms())
        except OSError as error:
            self._parts.on_failed(partition, error)
            return 0
        size_bytes = len(answer.records) if answer.records else 0
        partition.uncommitted_bytes += size_bytes
        throttle = self._parts.throttle
        if throttle.is_used and throttle.is_throttled(*partition.topic_partition):
            throttle.rate.record(size_bytes, self._parts.clock.now_ms())
        if log_of.high_watermark != before:
            self._parts.on_moved(partition)
        partition.lag = max(0, answer.high_watermark - log_of.log_end_offset)
        if outcome in QUIET:
            self._parts.on_bytes(size_bytes)
            return size_bytes
        if answer.error_code in LEADER_LAGS:
            follower.retry_at_ms = min(
                follower.retry_at_ms, self._parts.clock.now_ms() + LAGGING_BACKOFF_MS
            )
        log.info(
            "follower topic_partition=%s outcome=%s leader_epoch=%d log_end_offset=%d error=%s",
            partition.topic_partition,
            outcome.value,
            follower.leader_epoch,
            log_of.log_end_offset,
            ErrorCode(answer.error_code).name,
        )
        return 0

    # --- the bounds of the leader's log ---

    def _ask_offsets(self, free: dict[Key, Partition], now_ms: int) -> None:
        """Ask for the bounds of the leader's logs, for partitions whose offset is outside."""
        lost = {
            key: follower_of(partition).leader_epoch
            for key, partition in free.items()
            if follower_of(partition).needs_offsets(now_ms)
        }
        if not lost or self._is_asking_offsets:
            return
        self._is_asking_offsets = True
        OffsetsQuestion(self._parts, self._connection, self._partitions, lost, self._on_offsets)

    def _on_offsets(self) -> None:
        self._is_asking_offsets = False
        self._schedule(0)


SESSION_IS_OVER = {
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
}
LAGGING_BACKOFF_MS = 20
LEADER_LAGS = {
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
}
"""Errors of a leader that has not applied its leadership yet: it does so in less than
`replica.fetch.backoff.ms`, and no record is committed during that back-off."""
QUIET = {FollowerOutcome.APPENDED, FollowerOutcome.UNCHANGED, FollowerOutcome.STALE}
