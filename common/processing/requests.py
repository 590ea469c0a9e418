"""Records that a client waits for, each batch of them in a transaction of its own.

A record that a plain producer could not get acknowledged may arrive later, or never, and a caller
that writes it again may write it twice. So the records of requests are written in transactions too:
all or nothing, and settled before the state is read back.

- Records that come while one transaction is being committed go into the next.
- A transaction begins `interval_seconds` after the one before at the earliest, unless it is full.
  What a transaction costs depends little on how many records are in it, and each one of orders
  causes nine more, most at other services. A record that comes alone does not wait.
- Each transaction commits, for each partition it writes, an offset of the same partition number of
  the topic `fence`. The offset itself does not matter. The group refuses it from a member of an
  earlier generation, and the next holder of the partition waits until it is settled. So the records
  of a former holder are all there before the state is read back, or never (KIP-447).
- After a failure nothing more is written, and the processor begins anew.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from common.kafka.transactions.producer import TransactionalProducer
from common.kafka.transactions.rules import Member
from common.process.clock import now_seconds
from common.process.tasks import spawn
from common.processing.outbox import Outgoing

_BATCH_RECORDS = 500

PositionOf = Callable[[TopicPartition], Awaitable[int]]


class NotAcceptedError(KafkaError):  # type: ignore[misc, unused-ignore]
    """No partitions are held now; nothing was written, nor will be."""


class UnsettledError(KafkaError):  # type: ignore[misc, unused-ignore]
    """The writer was stopped meanwhile: the outcome is unknown until state is restored."""


class RequestWriter:
    """Writes records one transaction after the other. Its methods belong to one event loop."""

    def __init__(
        self,
        producer: TransactionalProducer,
        fence: str,
        position_of: PositionOf,
        interval_seconds: float = 0.0,
    ) -> None:
        self._producer = producer
        self._fence = fence
        self._position_of = position_of
        self._interval_seconds = interval_seconds
        self._next_at_seconds = 0.0
        self._refused = asyncio.Event()
        self._taken_by: Member | None = None
        self._member: Member | None = None
        self._waiting: list[tuple[Outgoing, asyncio.Future[None]]] = []
        self._committing: asyncio.Task[None] | None = None
        self.failure: Exception | None = None

    @property
    def is_writing(self) -> bool:
        """True if `write` accepts records."""
        return self._member is not None and self.failure is None

    async def start(self, topics: Iterable[str]) -> None:
        """Connect; `topics` are those that will be written."""
        await self._producer.start(topics)

    async def stop(self) -> None:
        """Refuse what waits, and disconnect."""
        self.refuse()
        if self._committing is not None:
            self._committing.cancel()
            await asyncio.wait([self._committing])
        await self._producer.stop()

    async def take(self, partitions: Iterable[int], member: Member) -> None:
        """Become the only writer; call `accept` when the state is read back."""
        await self._producer.take(partitions)
        self._taken_by = member

    def accept(self) -> None:
        """Write from now on."""
        self._member = self._taken_by
        self._refused.clear()

    def refuse(self) -> None:
        """Write nothing new; what waits is refused."""
        self._member = None
        self._refused.set()
        waiting, self._waiting = self._waiting, []
        _answer(waiting, NotAcceptedError())

    async def settle(self) -> None:
        """Refuse, and wait until what is being written is committed or has failed."""
        self.refuse()
        if self._committing is not None:
            await asyncio.wait([self._committing])

    async def write(self, record: Outgoing) -> None:
        """Return when the record is committed.

        Raise KafkaError if it is not: then it is not there when the state is read back, nor later.
        Cancelling the wait does not stop the record.
        """
        if not self.is_writing:
            raise NotAcceptedError
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((record, written))
        if self._committing is None:
            self._committing = spawn(self._commit_all())
        await written

    async def _commit_all(self) -> None:
        batch: list[tuple[Outgoing, asyncio.Future[None]]] = []
        try:
            while (member := await self._next_writer()) is not None:
                batch, self._waiting = (
                    self._waiting[:_BATCH_RECORDS],
                    self._waiting[_BATCH_RECORDS:],
                )
                self._next_at_seconds = now_seconds() + self._interval_seconds
                await self._commit([record for record, _ in batch], member)
                _answer(batch, None)
        except (KafkaError, OSError, TimeoutError) as error:
            self.failure = error
            self.refuse()
        finally:
            _answer(batch, self.failure or UnsettledError())
            self._committing = None

    async def _next_writer(self) -> Member | None:
        """Return the writer of the next transaction once it may begin; None if there is none."""
        left_seconds = self._next_at_seconds - now_seconds()
        if left_seconds > 0 and 0 < len(self._waiting) < _BATCH_RECORDS:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._refused.wait(), left_seconds)
        return self._member if self._waiting else None

    async def _commit(self, records: list[Outgoing], member: Member) -> None:
        numbers = {record.partition for record in records if record.partition is not None}
        fences = [TopicPartition(self._fence, number) for number in sorted(numbers)]
        offsets = {fence: await self._position_of(fence) for fence in fences}
        await self._producer.commit(records, offsets, member)


def _answer(
    waiting: Iterable[tuple[Outgoing, asyncio.Future[None]]], error: Exception | None
) -> None:
    for _, written in waiting:
        if written.done():
            continue
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)
