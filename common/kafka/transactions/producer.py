"""Writes each batch as one transaction: `commit` returns when it is committed, or raises.

No client of Kafka for Python can do this. aiokafka knows the transactions of Kafka 0.11: its
offsets are not fenced by the generation of the group (KIP-447), so a consumer that the group has
replaced could still commit, and each partition costs a round trip. confluent-kafka fences, but has
no transactions of protocol 2 (KIP-890), no assignor of one's own, and its asyncio producer takes no
headers; in processor time they do not differ by much (bench/README.md). Here a batch is known whole
before anything of it is sent, so a transaction is a few requests side by side and one more.

Protocol 2 is used where the cluster has finalised `transaction.version` 2, else protocol 1.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar, assert_never

from aiokafka import errors
from aiokafka.structs import TopicPartition

from common.credentials.access import KafkaAccess
from common.kafka.client.cluster import GROUP, TRANSACTION, KafkaClient
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from common.kafka.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from common.kafka.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from common.kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from common.kafka.protocol.messages.offset_fetch import OffsetFetchResponse
from common.kafka.protocol.messages.produce import ProduceResponse
from common.kafka.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse
from common.kafka.transactions import requests
from common.kafka.transactions.rules import (
    Answer,
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

_RETRY_SECONDS = 0.01
_MAX_RETRY_SECONDS = 0.2
_METADATA_SECONDS = 300.0
_REQUEST_TIMEOUT_MS = 10_000
_FEATURE = "transaction.version"
_FAILED = (KafkaError, OSError)

A = TypeVar("A", bound=Message)


class TransactionError(errors.KafkaError):  # type: ignore[misc, unused-ignore]
    """The batch is not committed, or its outcome is unknown: state must be read back."""

    def __init__(self, outcome: Outcome, what: str) -> None:
        super().__init__(f"{what}: {outcome.value}")
        self.outcome = outcome


class TransactionalProducer:
    """Writes for the partitions that are held; one batch at a time."""

    def __init__(self, kafka: KafkaAccess, application: str, *, timeout_ms: int) -> None:
        self._application = application
        self._timeout_ms = timeout_ms
        self._client = KafkaClient(
            kafka.bootstrap_servers,
            kafka.security,
            client_id=application,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
        )
        self._leaders: dict[str, dict[int, int]] = {}
        """By topic and partition; -1 if there is none."""
        self._refused: dict[str, int] = {}
        """The error codes of topics that cannot be written, as by a principal without the right."""
        self._wanted: set[str] = set()
        self._looked_up_at = 0.0
        self._protocol = 1
        self._producer: Producer | None = None
        self._sequences = Sequences()
        self._coordinators: dict[tuple[int, str], int] = {}

    async def start(self, topics: Iterable[str]) -> None:
        """Connect; `topics` are those that will be written. Raise TransactionError."""
        self._wanted = set(topics)
        try:
            await self._look_up()
        except _FAILED as error:
            raise TransactionError(Outcome.MOVED, f"no connection to Kafka: {error}") from error
        self._protocol = max(1, min(self._client.finalized_level(_FEATURE), 2))

    async def stop(self) -> None:
        """Disconnect. The next holder of the partitions aborts a transaction that is open."""
        await self._client.close()

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
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=self._timeout_ms
        )

        async def ask() -> tuple[int, InitProducerIdResponse]:
            node = await self._coordinator(TRANSACTION, transactional_id)
            answer = await self._client.ask(
                request, InitProducerIdResponse, node, max_version=requests.INIT_VERSION
            )
            return answer.error_code, answer

        answer = await self._until_done(ask, f"taking {transactional_id}")
        return Producer(transactional_id, answer.producer_id, answer.producer_epoch)

    async def committed(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the committed offsets, once no open transaction could still change them."""
        request = requests.fetch_offsets(group_id, partitions)

        async def ask() -> tuple[int, OffsetFetchResponse]:
            node = await self._coordinator(GROUP, group_id)
            answer = await self._client.ask(
                request, OffsetFetchResponse, node, max_version=requests.FETCH_VERSION
            )
            return requests.fetched_error(answer), answer

        return requests.fetched(await self._until_done(ask, f"offsets of {group_id}"))

    async def _until_done(self, ask: Callable[[], Awaitable[tuple[int, A]]], what: str) -> A:
        deadline = now_seconds() + 2 * self._timeout_ms / 1000
        pause = _RETRY_SECONDS
        while True:
            try:
                code, answer = await ask()
            except _FAILED as error:
                log.info("asked again what=%s error=%r", what, error)
                code = _code_of(error)
            else:
                if outcome_of(code) is Outcome.DONE:
                    return answer
            outcome = outcome_of(code)
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
        except _FAILED as error:
            log.warning("transaction not aborted by its producer error=%r", error)

    async def _encode(self, records: Iterable[OutgoingRecord]) -> dict[Write, bytes]:
        assert self._producer is not None
        if now_seconds() - self._looked_up_at > _METADATA_SECONDS:
            await self._look_up_again()
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
        deadline = now_seconds() + self._timeout_ms / 1000
        while not (found := self._leaders.get(topic)):
            if now_seconds() > deadline:
                raise TransactionError(Outcome.ABORTED, f"no topic {topic}")
            self._wanted.add(topic)
            await self._look_up_again()
            if topic in self._refused:
                refusal = _named(self._refused[topic])
                raise TransactionError(Outcome.ABORTED, f"topic {topic} error={refusal}")
            await asyncio.sleep(_RETRY_SECONDS)
        return len(found)

    # -- requests

    async def _send_all(self, transaction: "_Transaction", parts: set[Part]) -> list[Answer]:
        """Send the parts side by side; one that cannot be sent is answered like a lost one."""
        by_node: dict[int, list[Write]] = defaultdict(list)
        for write in sorted(part for part in parts if isinstance(part, Write)):
            leader = self._leaders.get(write.topic, {}).get(write.partition, -1)
            by_node[leader].append(write)
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

    async def _guarded(
        self, parts: Sequence[Part], sending: Awaitable[list[Answer]]
    ) -> list[Answer]:
        try:
            return await sending
        except _FAILED as error:
            log.info("sent again parts=%s error=%r", parts, error)
            code = _code_of(error)
            return [(part, code) for part in parts]

    async def _produce(
        self, transaction: "_Transaction", node: int, writes: list[Write]
    ) -> list[Answer]:
        if node < 0:
            return [(write, ErrorCode.LEADER_NOT_AVAILABLE) for write in writes]
        answer = await self._client.ask(
            requests.produce(
                transaction.producer, transaction.batches, writes, _REQUEST_TIMEOUT_MS
            ),
            ProduceResponse,
            node,
            max_version=requests.PRODUCE_VERSIONS[self._protocol],
        )
        return requests.produced(answer, writes)

    async def _step(self, transaction: "_Transaction", step: Step) -> list[Answer]:
        producer = transaction.producer
        match step:
            case Step.ADD_PARTITIONS:
                add = requests.add_partitions(producer, transaction.partitions)
                added = await self._ask_coordinator(
                    producer, add, AddPartitionsToTxnResponse, requests.ADD_VERSION
                )
                code = requests.added(added)
            case Step.ADD_OFFSETS:
                code = await self._add_offsets(producer, transaction.member.group_id)
            case Step.WRITE_OFFSETS:
                code = await self._write_offsets(transaction)
            case Step.END:
                code = await self._end(producer, is_committed=True)
            case _:
                assert_never(step)
        return [(step, code)]

    async def _add_offsets(self, producer: Producer, group_id: str) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=group_id,
        )
        answer = await self._ask_coordinator(
            producer, request, AddOffsetsToTxnResponse, requests.ADD_VERSION
        )
        return answer.error_code

    async def _write_offsets(self, transaction: "_Transaction") -> int:
        member = transaction.member
        request = requests.commit_offsets(transaction.producer, member, transaction.offsets)
        node = await self._coordinator(GROUP, member.group_id)
        answer = await self._client.ask(
            request,
            TxnOffsetCommitResponse,
            node,
            max_version=requests.OFFSETS_VERSIONS[self._protocol],
        )
        return requests.offsets_committed(answer)

    async def _end(self, producer: Producer, *, is_committed: bool) -> int:
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=is_committed,
        )
        answer = await self._ask_coordinator(
            producer, request, EndTxnResponse, requests.END_VERSIONS[self._protocol]
        )
        if answer.error_code == ErrorCode.NONE and self._protocol >= 2:
            self._producer = producer._replace(
                producer_id=answer.producer_id, producer_epoch=answer.producer_epoch
            )
        return answer.error_code

    async def _ask_coordinator(
        self, producer: Producer, request: Message, answer: type[A], max_version: int
    ) -> A:
        node = await self._coordinator(TRANSACTION, producer.transactional_id)
        return await self._client.ask(request, answer, node, max_version=max_version)

    # -- brokers and coordinators

    async def _coordinator(self, kind: int, key: str) -> int:
        node = self._coordinators.get((kind, key))
        if node is None:
            node = self._coordinators[kind, key] = await self._client.coordinator(kind, key)
        return node

    async def _look_up(self) -> None:
        """Ask for the topics that are written."""
        found = await self._client.metadata(self._wanted)
        self._looked_up_at = now_seconds()
        for topic in found.topics:
            name = topic.name or ""
            self._refused.pop(name, None)
            if topic.partitions:
                leaders = {each.partition_index: each.leader_id for each in topic.partitions}
                self._leaders[name] = leaders
            elif topic.error_code and not KafkaError(ErrorCode(topic.error_code)).is_retriable:
                self._refused[name] = topic.error_code

    async def _look_up_again(self) -> None:
        """Ask for topics and coordinators anew; without an answer the topics stay as they are."""
        self._coordinators.clear()
        try:
            await self._look_up()
        except _FAILED as error:
            log.info("leaders not looked up error=%r", error)


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


def _code_of(error: Exception) -> int:
    """Return a refusal's code; a request that was not answered counts as lost."""
    return error.code if isinstance(error, KafkaError) else ErrorCode.NETWORK_EXCEPTION


def _named(code: int) -> str:
    """Return an error with its name: `TopicAuthorizationFailed (29)`."""
    name: str = errors.for_code(code).__name__.removesuffix("Error")
    return f"{name} ({int(code)})"
