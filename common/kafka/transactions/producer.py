"""Writes each batch as one transaction: `commit` returns when it is committed, or raises.

No client of Kafka for Python can do this. aiokafka knows the transactions of Kafka 0.11: its
offsets are not fenced by the generation of the group (KIP-447), so a consumer that the group has
replaced could still commit, and each partition costs a round trip. confluent-kafka fences, but has
no transactions of protocol 2 (KIP-890), no assignor of one's own, and its asyncio producer takes no
headers; in processor time they do not differ by much (bench/README.md). So aiokafka's connections,
metadata and record batches are used, and the requests are ours: a batch is known whole before
anything of it is sent, so a transaction is a few requests side by side and one more.

Protocol 2 is used where the cluster has finalised `transaction.version` 2, else protocol 1.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, assert_never

from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.errors import KafkaError, for_code
from aiokafka.structs import TopicPartition

from common.credentials.access import KafkaAccess
from common.kafka.brokers import any_broker, find_coordinator
from common.kafka.transactions import messages
from common.kafka.transactions.rules import (
    ErrorCode,
    Member,
    Outcome,
    OutgoingRecord,
    Part,
    Producer,
    Progress,
    Sequences,
    Step,
    Write,
    by_partition,
    encode,
    outcome_of,
    partition_of,
    stages,
    transactional_id_of,
)
from common.process.clock import now_seconds, timestamp_ms

log = logging.getLogger(__name__)

_ACKS_ALL = -1
_RETRY_SECONDS = 0.01
_MAX_RETRY_SECONDS = 0.2
_REQUEST_TIMEOUT_MS = 10_000
_NEW = -1
_NO_TAGS: dict[int, bytes] = {}

Answer = tuple[Part, int]


class TransactionError(KafkaError):  # type: ignore[misc, unused-ignore]
    """The batch is not committed, or its outcome is unknown: state must be read back."""

    def __init__(self, outcome: Outcome, what: str) -> None:
        super().__init__(f"{what}: {outcome.value}")
        self.outcome = outcome


class TransactionalProducer:
    """Writes for the partitions that are held; one batch at a time."""

    def __init__(self, kafka: KafkaAccess, application: str, *, timeout_ms: int) -> None:
        self._application = application
        self._timeout_ms = timeout_ms
        self._client = AIOKafkaClient(
            **kafka.aiokafka(),
            client_id=application,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            retry_backoff_ms=round(_RETRY_SECONDS * 1000),
        )
        self._protocol = 1
        self._producer: Producer | None = None
        self._sequences = Sequences()
        self._coordinators: dict[tuple[int, str], int] = {}

    async def start(self, topics: Iterable[str]) -> None:
        """Connect; `topics` are those that will be written."""
        await self._client.bootstrap()
        await self._client.set_topics(set(topics))  # which aiokafka reads twice
        node = any_broker(self._client)
        answer = await self._client.send(node, messages.ApiVersions3("millstream", "1", {}))
        self._protocol = min(answer.finalized("transaction.version"), 2)

    async def stop(self) -> None:
        """Disconnect. The next holder of the partitions aborts a transaction that is open."""
        await self._client.close()

    async def ping(self) -> None:
        """Return if a broker answers."""
        await self._client.fetch_all_metadata()

    # -- taking over

    async def take(self, partitions: Iterable[int]) -> None:
        """Become the only writer for these partitions: earlier holders are fenced."""
        numbers = sorted(set(partitions))
        try:
            async with asyncio.TaskGroup() as group:
                taking = [group.create_task(self._init_producer(number)) for number in numbers]
        except ExceptionGroup as errors:
            # Any of the errors will do: the caller has to begin anew.
            raise errors.exceptions[0] from None
        self._producer = taking[0].result() if taking else None

    async def _init_producer(self, number: int) -> Producer:
        transactional_id = transactional_id_of(self._application, number)
        request = messages.InitProducerId4(transactional_id, self._timeout_ms, _NEW, _NEW, {})

        async def ask() -> tuple[int, Any]:
            node = await self._coordinator(CoordinationType.TRANSACTION, transactional_id)
            answer = await self._client.send(node, request)
            return answer.error_code, answer

        answer = await self._until_done(ask, f"taking {transactional_id}")
        return Producer(transactional_id, answer.producer_id, answer.producer_epoch)

    async def committed(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the committed offsets, once no open transaction could still change them."""
        request = messages.OffsetFetch7(group_id, _by_topic(partitions), True, {})

        async def ask() -> tuple[int, Any]:
            node = await self._coordinator(CoordinationType.GROUP, group_id)
            answer = await self._client.send(node, request)
            codes = [code for _, found, _ in answer.topics for *_, code, _ in found]
            return next((code for code in [answer.error_code, *codes] if code), 0), answer

        answer = await self._until_done(ask, f"offsets of {group_id}")
        return {
            TopicPartition(topic, partition): offset
            for topic, found, _ in answer.topics
            for partition, offset, *_ in found
            if offset >= 0
        }

    async def _until_done(self, ask: Callable[[], Any], what: str) -> Any:
        deadline = now_seconds() + 2 * self._timeout_ms / 1000
        pause = _RETRY_SECONDS
        while True:
            try:
                code, answer = await ask()
            except (KafkaError, OSError) as error:
                log.info("asked again what=%s error=%r", what, error)
                code, answer = ErrorCode.NETWORK_EXCEPTION, None
            outcome = outcome_of(code)
            if outcome is Outcome.DONE:
                return answer
            if outcome not in (Outcome.AGAIN, Outcome.MOVED) or now_seconds() > deadline:
                raise TransactionError(outcome, f"{what} error={_named(code)}")
            if outcome is Outcome.MOVED:
                await self._look_up_again()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_RETRY_SECONDS)

    # -- one batch

    async def commit(
        self,
        records: Iterable[OutgoingRecord],
        offsets: Mapping[TopicPartition, int],
        member: Member,
    ) -> None:
        """Write records and consumed offsets: all or nothing. Raise TransactionError."""
        assert self._producer is not None, "no partitions are held"
        transaction = _Transaction(self._producer, offsets, member)
        transaction.batches = await self._encode(records)
        progress = Progress(
            stages(transaction.batches, has_offsets=bool(offsets), protocol=self._protocol)
        )
        try:
            await self._drive(transaction, progress)
        except TransactionError as error:
            if error.outcome is not Outcome.FENCED and Step.END not in progress.pending:
                await self._abort(transaction.producer)
            raise

    async def _drive(self, transaction: "_Transaction", progress: Progress) -> None:
        deadline = now_seconds() + self._timeout_ms / 1000
        pause = _RETRY_SECONDS
        while not progress.is_ended:
            for part, code in await self._send_all(transaction, progress.begin_round()):
                outcome = progress.see(part, code)
                if outcome not in (Outcome.DONE, Outcome.AGAIN, Outcome.MOVED):
                    raise TransactionError(outcome, f"{part} error={_named(code)}")
            if progress.must_pause:
                if now_seconds() > deadline:
                    raise TransactionError(Outcome.ABORTED, f"no end of {progress.pending}")
                if progress.has_moved:
                    await self._look_up_again()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MAX_RETRY_SECONDS)

    async def _abort(self, producer: Producer) -> None:
        """Abort, so that readers need not wait. If this fails, the next holder aborts."""
        try:
            await self._end(producer, is_committed=False)
        except (KafkaError, OSError) as error:
            log.warning("transaction not aborted by its producer error=%r", error)

    async def _encode(self, records: Iterable[OutgoingRecord]) -> dict[Write, bytes]:
        assert self._producer is not None
        records = list(records)
        counts = {record.topic: 0 for record in records}
        for topic in counts:
            counts[topic] = await self.partition_count(topic)
        shared_out = by_partition(records, counts)
        return encode(self._producer, self._sequences, shared_out, timestamp_ms())

    async def partition_of(self, topic: str, key: bytes) -> int:
        """Return the partition to which a record with this key is written."""
        return partition_of(key, await self.partition_count(topic))

    async def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has. Raise TransactionError if it is not there."""
        cluster = self._client.cluster
        deadline = now_seconds() + self._timeout_ms / 1000
        while (found := cluster.partitions_for_topic(topic)) is None:
            if now_seconds() > deadline:
                raise TransactionError(Outcome.ABORTED, f"no topic {topic}")
            await self._client.add_topic(topic)
            await self._look_up_again()
            await asyncio.sleep(_RETRY_SECONDS)
        return len(found)

    # -- requests

    async def _send_all(self, transaction: "_Transaction", parts: set[Part]) -> list[Answer]:
        """Send the parts side by side; one that cannot be sent is answered like a lost one."""
        by_node: dict[int | None, list[Write]] = defaultdict(list)
        for write in sorted(part for part in parts if isinstance(part, Write)):
            by_node[self._leader(write)].append(write)
        sending = [
            self._guarded(found, self._produce(transaction, node, found))
            for node, found in by_node.items()
        ]
        sending += [
            self._guarded([part], self._step(transaction, part))
            for part in parts
            if isinstance(part, Step)
        ]
        answers = await asyncio.gather(*sending)
        return [answer for found in answers for answer in found]

    def _leader(self, write: Write) -> int | None:
        partition = TopicPartition(write.topic, write.partition)
        leader = self._client.cluster.leader_for_partition(partition)
        return None if leader in (None, -1) else leader

    async def _guarded(self, parts: Sequence[Part], sending: Any) -> list[Answer]:
        try:
            answers: list[Answer] = await sending
        except (KafkaError, OSError) as error:
            log.info("sent again parts=%s error=%r", parts, error)
            return [(part, ErrorCode.NETWORK_EXCEPTION) for part in parts]
        return answers

    async def _produce(
        self, transaction: "_Transaction", node: int | None, writes: list[Write]
    ) -> list[Answer]:
        if node is None:
            return [(write, ErrorCode.LEADER_NOT_AVAILABLE) for write in writes]
        by_topic: dict[str, list[tuple[int, bytes, dict[int, bytes]]]] = defaultdict(list)
        for write in writes:
            by_topic[write.topic].append((write.partition, transaction.batches[write], {}))
        kind = messages.Produce12 if self._protocol >= 2 else messages.Produce9
        transactional_id = transaction.producer.transactional_id
        topics = [(topic, found, _NO_TAGS) for topic, found in by_topic.items()]
        answer = await self._client.send(
            node, kind(transactional_id, _ACKS_ALL, _REQUEST_TIMEOUT_MS, topics, {})
        )
        codes = {
            (topic, partition): code
            for topic, found, _ in answer.topics
            for partition, code, *_ in found
        }
        return [(write, codes[write.topic, write.partition]) for write in writes]

    async def _step(self, transaction: "_Transaction", step: Step) -> list[Answer]:
        producer = transaction.producer
        match step:
            case Step.ADD_PARTITIONS:
                code = await self._add_partitions(producer, transaction.partitions)
            case Step.ADD_OFFSETS:
                code = await self._add_offsets(producer, transaction.member.group_id)
            case Step.WRITE_OFFSETS:
                code = await self._write_offsets(transaction)
            case Step.END:
                code = await self._end(producer, is_committed=True)
            case _:
                assert_never(step)
        return [(step, code)]

    async def _add_partitions(
        self, producer: Producer, partitions: Iterable[TopicPartition]
    ) -> int:
        request = messages.AddPartitionsToTxn3(*producer, _by_topic(partitions), {})
        answer = await self._ask_coordinator(producer, request)
        return _first_error(answer.topics)

    async def _add_offsets(self, producer: Producer, group_id: str) -> int:
        request = messages.AddOffsetsToTxn3(*producer, group_id, {})
        return int((await self._ask_coordinator(producer, request)).error_code)

    async def _write_offsets(self, transaction: "_Transaction") -> int:
        producer, member = transaction.producer, transaction.member
        by_topic: dict[str, list[Any]] = defaultdict(list)
        for partition, offset in transaction.offsets.items():
            by_topic[partition.topic].append((partition.partition, offset, _NEW, None, {}))
        kind = messages.TxnOffsetCommit5 if self._protocol >= 2 else messages.TxnOffsetCommit3
        request = kind(
            producer.transactional_id,
            member.group_id,
            producer.producer_id,
            producer.producer_epoch,
            member.generation_id,
            member.member_id,
            member.group_instance_id,
            [(topic, found, {}) for topic, found in by_topic.items()],
            {},
        )
        node = await self._coordinator(CoordinationType.GROUP, member.group_id)
        return _first_error((await self._client.send(node, request)).topics)

    async def _end(self, producer: Producer, *, is_committed: bool) -> int:
        kind = messages.EndTxn5 if self._protocol >= 2 else messages.EndTxn3
        answer = await self._ask_coordinator(producer, kind(*producer, is_committed, {}))
        if answer.error_code == ErrorCode.NONE and self._protocol >= 2:
            self._producer = producer._replace(
                producer_id=answer.producer_id, producer_epoch=answer.producer_epoch
            )
        return int(answer.error_code)

    async def _ask_coordinator(self, producer: Producer, request: messages.Message) -> Any:
        node = await self._coordinator(CoordinationType.TRANSACTION, producer.transactional_id)
        return await self._client.send(node, request)

    # -- brokers and coordinators

    async def _coordinator(self, kind: int, key: str) -> int:
        node = self._coordinators.get((kind, key))
        if node is None:
            node = self._coordinators[kind, key] = await find_coordinator(self._client, kind, key)
        return node

    async def _look_up_again(self) -> None:
        self._coordinators.clear()
        await self._client.force_metadata_update()


class _Transaction:
    """What one transaction writes, and under which producer and member."""

    def __init__(
        self, producer: Producer, offsets: Mapping[TopicPartition, int], member: Member
    ) -> None:
        self.producer = producer
        self.offsets = offsets
        self.member = member
        self.batches: dict[Write, bytes] = {}

    @property
    def partitions(self) -> set[TopicPartition]:
        return {TopicPartition(write.topic, write.partition) for write in self.batches}


def _by_topic(
    partitions: Iterable[TopicPartition],
) -> list[tuple[str, list[int], dict[int, bytes]]]:
    found: dict[str, list[int]] = defaultdict(list)
    for partition in partitions:
        found[partition.topic].append(partition.partition)
    return [(topic, sorted(numbers), {}) for topic, numbers in found.items()]


def _first_error(topics: Iterable[Any]) -> int:
    codes = (code for _, found, _ in topics for _, code, _ in found)
    return next((code for code in codes if code), ErrorCode.NONE)


def _named(code: int) -> str:
    """Return an error with its name: `TopicAuthorizationFailed (29)`."""
    name: str = for_code(code).__name__.removesuffix("Error")
    return f"{name} ({int(code)})"
