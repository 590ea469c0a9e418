"""Fetch (key 1), versions 4-18: read batches, waiting until there are `min_bytes`.

v7 adds sessions (KIP-227): none is ever granted here, which every client takes as "send full
requests". v9 adds the leader epoch the client knows (KIP-320). v11 adds racks (KIP-392). v12 is
flexible and adds the epoch of the last record fetched (KIP-595). v13 names topics by id (KIP-516).
v15 moves the replica's state into a tagged field (KIP-903).
"""

from collections.abc import Callable

from broker.config.broker_config import BrokerConfig
from broker.errors import ErrorCode, KafkaError
from broker.log.index.transaction_index import AbortedTransaction as AbortedRange
from broker.log.partition_log import PartitionLog
from broker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from broker.server.metrics import Metrics
from broker.server.network.dispatch import Answer, AnswerWalk, RequestContext
from broker.server.network.walks import ITEMS_PER_STEP, Steps
from broker.server.replication.epochs import validate_leader_epoch
from broker.server.replication.parked_fetches import ParkedFetch, ParkedFetches
from broker.server.replication.partitions import Partition, Partitions
from broker.server.storage.failures import StorageFailures

FIRST_VERSION_WITH_TOPIC_IDS = 13
READ_COMMITTED = 1
PARTITIONS_AT_ONCE = 64
"""With more of them a fetch is read step by step."""
FULL_REQUEST = (0, -1)
"""The session epochs that begin a session or end one, whatever id is named: all is asked for."""


class Fetch:
    """Reads batches, and parks who finds too little."""

    def __init__(
        self,
        config: BrokerConfig,
        partitions: Partitions,
        parked_fetches: ParkedFetches,
        metrics: Metrics,
        failures: StorageFailures,
    ) -> None:
        self._max_fetch_bytes = config.max_fetch_bytes
        self._partitions = partitions
        self._parked_fetches = parked_fetches
        self._metrics = metrics
        self._failures = failures

    def handle(self, context: RequestContext, request: FetchRequest) -> Answer | AnswerWalk:
        """Answer at once when there is enough, an error, or no time to wait; else park it."""
        if request.session_epoch not in FULL_REQUEST:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        _forget_repeated(request)
        read = FetchRead(self._partitions, self._failures, context, request)
        if sum(len(topic.partitions) for topic in request.topics) > PARTITIONS_AT_ONCE:
            return self._walk(context, request, read)
        read.run(self._max_fetch_bytes)
        if read.is_enough or request.max_wait_ms <= 0 or not read.partitions:
            return self._finish(read)
        return self._park(context, request, read)

    def _walk(
        self, context: RequestContext, request: FetchRequest, read: "FetchRead"
    ) -> AnswerWalk:
        """Read very many partitions step by step."""
        yield from read.walk(self._max_fetch_bytes)
        if read.is_enough or request.max_wait_ms <= 0 or not read.partitions:
            return self._finish(read)

        def read_all() -> AnswerWalk:
            again = FetchRead(self._partitions, self._failures, context, request)
            yield from again.walk(self._max_fetch_bytes)
            return self._finish(again)

        def answer(is_final: bool) -> bool:
            # Woken by enough bytes, or by the time: either way this answer goes out.
            context.reply(read_all())
            return True

        return self._wait(context, request, read, answer)

    def _park(self, context: RequestContext, request: FetchRequest, first: "FetchRead") -> Answer:
        def answer(is_final: bool) -> bool:
            if context.connection.is_closed:
                return True
            read = FetchRead(self._partitions, self._failures, context, request)
            read.run(self._max_fetch_bytes)
            if read.is_enough or is_final:
                context.reply(self._finish(read))
                return True
            return False

        return self._wait(context, request, first, answer)

    def _wait(
        self,
        context: RequestContext,
        request: FetchRequest,
        first: "FetchRead",
        answer: Callable[[bool], bool],
    ) -> Answer:
        later = context.defer()
        parked = ParkedFetch(first.partitions, request.min_bytes - first.size_bytes, answer)
        self._parked_fetches.park(context.connection, parked, request.max_wait_ms)
        return later

    def _finish(self, read: "FetchRead") -> FetchResponse:
        self._metrics.fetched_bytes += read.size_bytes
        return FetchResponse(responses=read.topics)


class FetchRead:
    """One pass over the partitions of a request, under its byte limits.

    The first batch of the first partition that has one is always returned whole, however small the
    limits are, so that a consumer can make progress (KIP-74).
    """

    __slots__ = (
        "_by_id",
        "_failures",
        "_has_error",
        "_partitions",
        "_read_committed",
        "_request",
        "partitions",
        "size_bytes",
        "topics",
    )

    def __init__(
        self,
        partitions: Partitions,
        failures: StorageFailures,
        context: RequestContext,
        request: FetchRequest,
    ) -> None:
        self._partitions = partitions
        self._failures = failures
        self._request = request
        self._by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        self._read_committed = request.isolation_level == READ_COMMITTED
        self._has_error = False
        self.size_bytes = 0
        self.partitions: list[Partition] = []
        self.topics: list[FetchableTopicResponse] = []

    @property
    def is_enough(self) -> bool:
        """Whether the answer need not wait: enough bytes, or an error to tell."""
        return self._has_error or self.size_bytes >= self._request.min_bytes

    def run(self, max_fetch_bytes: int) -> None:
        """Read every partition asked for, and never more than the broker's own limit."""
        left_bytes = min(self._request.max_bytes, max_fetch_bytes)
        for topic in self._request.topics:
            self._add(topic, self._read_each(topic, topic.partitions, left_bytes))

    def walk(self, max_fetch_bytes: int) -> Steps[None]:
        """Do what `run` does, step by step."""
        left_bytes = min(self._request.max_bytes, max_fetch_bytes)
        for topic in self._request.topics:
            answers: list[PartitionData] = []
            for start in range(0, len(topic.partitions), ITEMS_PER_STEP):
                some = topic.partitions[start : start + ITEMS_PER_STEP]
                answers += self._read_each(topic, some, left_bytes)
                yield
            self._add(topic, answers)

    def _add(self, topic: FetchTopic, answers: list[PartitionData]) -> None:
        self.topics.append(
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=answers)
        )

    def _read_each(
        self, topic: FetchTopic, partitions: list[FetchPartition], left_bytes: int
    ) -> list[PartitionData]:
        answers: list[PartitionData] = []
        for wanted in partitions:
            try:
                name = self._partitions.name_of(topic.topic_id) if self._by_id else topic.topic
                answers.append(self._read(name, wanted, left_bytes - self.size_bytes))
            except KafkaError as error:
                self._has_error = True
                answers.append(self._refused(topic.topic, wanted, error))
            except OSError as error:
                self._has_error = True
                failure = self._failures.on_failure(topic.topic, wanted.partition, error)
                answers.append(self._refused(topic.topic, wanted, failure))
        return answers

    def _read(self, topic: str, wanted: FetchPartition, left_bytes: int) -> PartitionData:
        partition = self._partitions.get(topic, wanted.partition)
        log = partition.log
        validate_leader_epoch(wanted.current_leader_epoch, log.leader_epoch)
        diverging = _diverging_epoch(log, wanted)
        if diverging is not None:
            self._has_error = True  # nothing to wait for
            return PartitionData(
                partition_index=wanted.partition,
                high_watermark=log.high_watermark,
                last_stable_offset=log.last_stable_offset,
                log_start_offset=log.log_start_offset,
                diverging_epoch=diverging,
                aborted_transactions=None,
                records=b"",
            )
        end = log.last_stable_offset if self._read_committed else log.high_watermark
        read = log.read(
            wanted.fetch_offset,
            max_bytes=max(0, min(wanted.partition_max_bytes, left_bytes)),
            max_offset=end,
            minimum_one_batch=self.size_bytes == 0,
            with_aborted_transactions=self._read_committed,
        )
        self.size_bytes += read.size_bytes
        self.partitions.append(partition)
        return PartitionData(
            partition_index=wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=self._aborted(read.aborted_transactions),
            records=read.parts or b"",
        )

    def _aborted(self, aborted: list[AbortedRange]) -> list[AbortedTransaction] | None:
        if not self._read_committed:
            return None
        return [
            AbortedTransaction(producer_id=found.producer_id, first_offset=found.first_offset)
            for found in aborted
        ]

    def _refused(self, topic: str, wanted: FetchPartition, error: KafkaError) -> PartitionData:
        return PartitionData(
            partition_index=wanted.partition,
            error_code=error.code,
            high_watermark=-1,
            log_start_offset=-1,
            aborted_transactions=None,
            records=b"",
        )


def _forget_repeated(request: FetchRequest) -> None:
    """Read a partition once, as it is asked for last, as Kafka does."""
    for topic in request.topics:
        if len(topic.partitions) > 1:
            by_index = {wanted.partition: wanted for wanted in topic.partitions}
            if len(by_index) < len(topic.partitions):
                topic.partitions = list(by_index.values())


def _diverging_epoch(log: PartitionLog, wanted: FetchPartition) -> EpochEndOffset | None:
    """Say where our log and the reader's part, if they do (KIP-595).

    Raises OFFSET_OUT_OF_RANGE when the epoch the reader read last was never ours.
    """
    if wanted.last_fetched_epoch < 0:
        return None
    epoch, end_offset = log.end_offset_for_epoch(wanted.last_fetched_epoch)
    if epoch < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch == wanted.last_fetched_epoch and end_offset >= wanted.fetch_offset:
        return None
    return EpochEndOffset(epoch=epoch, end_offset=end_offset)
