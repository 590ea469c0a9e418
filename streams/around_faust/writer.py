"""Write the effects of micro-batches; each batch is part of one transaction.

One transaction is open at a time. Batches that other tables complete during this time go into the
next transaction together. Each transaction commits the positions after its records, with this
instance's membership in the group: the group refuses the commits of an instance that it has
replaced (KIP-447).

The outcome of a failed transaction is unknown. Nothing more is written until `take` has ended the
open transaction; then the changelogs contain the committed state.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition as KafkaPartition

from common.credentials.access import KafkaAccess
from common.kafka.transactions.producer import TransactionalProducer, TransactionError
from common.kafka.transactions.rules import Member, Outcome
from streams.around_faust.positions import TopicPartition
from streams.micro_batch import Message


class SupersededError(Exception):
    """The assignment under which this work began has ended."""


class WriteFailedError(Exception):
    """The transaction failed, or its outcome is unknown."""


@dataclass
class Changes:
    """The effects to commit together; `offsets` are the next positions of the input."""

    messages: list[Message]
    offsets: Mapping[TopicPartition, int]
    member: Member


@dataclass
class _Pending:
    changes: Changes
    is_done: bool = False
    error: Exception | None = field(default=None)


class Writer:
    """Owns the producer; call `start` in the event loop that writes."""

    def __init__(self, kafka: KafkaAccess, application_id: str, *, timeout_ms: int) -> None:
        self._kafka = kafka
        self._application_id = application_id
        self._timeout_ms = timeout_ms
        self._producer: TransactionalProducer | None = None
        self._member: Member | None = None
        self._pending: list[_Pending] = []
        self._lock = asyncio.Lock()

    async def start(self, topics: Iterable[str]) -> None:
        """Connect; raise KafkaError if Kafka cannot be reached."""
        self._producer = TransactionalProducer(
            self._kafka, self._application_id, timeout_ms=self._timeout_ms
        )
        await self._producer.start(topics)

    async def close(self) -> None:
        if self._producer is not None:
            await self._producer.stop()

    async def take(self, member: Member, partitions: Iterable[TopicPartition]) -> None:
        """Become the only writer for these inputs; return after their open transactions ended."""
        assert self._producer is not None
        inputs = sorted(partitions)
        async with self._lock:
            self._member = None
            await self._producer.take({one.partition for one in inputs})
            wanted = [KafkaPartition(*one) for one in inputs]
            if wanted:
                await self._producer.committed(member.group_id, wanted)
            self._member = member

    def between_transactions(self) -> asyncio.Lock:
        """Return a lock that keeps transactions from running while it is held."""
        return self._lock

    async def write(self, changes: Changes) -> None:
        """Commit effects; raise SupersededError or WriteFailedError."""
        pending = _Pending(changes)
        self._pending.append(pending)
        async with self._lock:
            if not pending.is_done:
                await self._commit_pending()
        if pending.error is not None:
            raise pending.error

    async def _commit_pending(self) -> None:
        """Commit all waiting effects as one transaction, and pass the outcome to each caller."""
        pending, self._pending = self._pending, []
        own = [one for one in pending if one.changes.member == self._member]
        for one in pending:
            # The outcome unless it is set below, also if this task is cancelled.
            one.is_done, one.error = True, SupersededError()
        if own:
            error = await self._commit([one.changes for one in own])
            for one in own:
                one.error = error

    async def _commit(self, changes: list[Changes]) -> Exception | None:
        assert self._producer is not None
        assert self._member is not None
        # After any failure the transaction may still be open, so nothing more may be written.
        member, self._member = self._member, None
        messages = [message for one in changes for message in one.messages]
        offsets = {
            KafkaPartition(*partition): offset
            for one in changes
            for partition, offset in one.offsets.items()
        }
        try:
            await self._producer.commit(messages, offsets, member)
        except TransactionError as error:
            if error.outcome is Outcome.GENERATION_OVER:
                return SupersededError()
            return WriteFailedError(str(error))
        except (KafkaError, OSError) as error:
            return WriteFailedError(repr(error))
        self._member = member
        return None
