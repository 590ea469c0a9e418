"""Records that somebody outside waits for, each batch of them in a transaction of its own.

A record that a plain producer could not get acknowledged may arrive later, or never, and whoever
writes it again may write it twice. So what a request causes is written as a batch is: all or
nothing, and settled before anybody reads the state back.

- Those that come while one transaction is being committed go into the next.
- A transaction of orders makes some seven more: three checks, the verdict, what becomes of the
  orders, their payment. Were the next one begun at once, all of these would be beside each other
  without end, and at every step a batch would wait for one that is half done. So a pause follows,
  some times as long as such a transaction takes: a wave of orders finds every service ready for it.
  The slower the machine, the longer a wave and the more is in it; what comes alone does not wait.
- With every record goes an offset of the partition of its number in the topic `fence`, at which
  nobody starts. The group refuses it from a member of a generation that is over, and whoever takes
  the partition waits for its outcome: so of a former holder there is either everything before the
  state is read back, or nothing ever (KIP-447).
- After a failure nothing is written any more; the processor begins anew.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from common.kafka.transactions.producer import TransactionalProducer
from common.kafka.transactions.rules import Member
from common.process.clock import now_seconds
from common.processing.outbox import Outgoing

_BATCH_RECORDS = 500
PAUSE_FACTOR = 5
"""What a transaction makes takes two processors some five times as long as it took itself; with one
more or less the latency is the same (bench/README.md)."""
PAUSE_MAX_SECONDS = 0.2
"""Under press waves are large whatever the pause: then it would only cost."""
LAST_SHARE = 0.1
"""What the last transaction counts in how long one takes: one was slow because the wave before was
in its way, and a pause after that one would be too long, and the next too short."""

PositionOf = Callable[[TopicPartition], Awaitable[int]]


class NotAcceptedError(KafkaError):  # type: ignore[misc, unused-ignore]
    """No partitions are held now; nothing was written, nor will be."""


class UnsettledError(KafkaError):  # type: ignore[misc, unused-ignore]
    """The writer was stopped while it was writing this: it is there or not once state is read."""


class RequestWriter:
    """Writes records one transaction after the other. Its methods belong to one event loop."""

    def __init__(
        self, producer: TransactionalProducer, fence: str, position_of: PositionOf
    ) -> None:
        self._producer = producer
        self._fence = fence
        self._position_of = position_of
        self._taken_by: Member | None = None
        self._member: Member | None = None
        self._waiting: list[tuple[Outgoing, asyncio.Future[None]]] = []
        self._committing: asyncio.Task[None] | None = None
        self._pace = Pace()
        self._next_at_seconds = 0.0
        self._refused = asyncio.Event()
        self.failure: Exception | None = None

    @property
    def is_writing(self) -> bool:
        """Whether a record that comes now is taken."""
        return self._member is not None and self.failure is None

    async def start(self, topics: Iterable[str]) -> None:
        """Connect; `topics` are those that will be written."""
        await self._producer.start(topics)

    async def stop(self) -> None:
        """Write nothing any more, and disconnect."""
        self.refuse()
        if self._committing is not None:
            self._committing.cancel()
            await asyncio.wait([self._committing])
        await self._producer.stop()

    async def take(self, partitions: Iterable[int], member: Member) -> None:
        """Become the one who writes; call `accept` when the state is read back."""
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

        Raise KafkaError if it is not: then it never will be once the state is read back. Who stops
        waiting does not stop the record.
        """
        if not self.is_writing:
            raise NotAcceptedError
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((record, written))
        if self._committing is None:
            self._committing = asyncio.ensure_future(self._commit_all())
        await written

    async def _commit_all(self) -> None:
        batch: list[tuple[Outgoing, asyncio.Future[None]]] = []
        try:
            while (member := await self._next_writer()) is not None:
                batch, self._waiting = (
                    self._waiting[:_BATCH_RECORDS],
                    self._waiting[_BATCH_RECORDS:],
                )
                begun_at = now_seconds()
                await self._commit([record for record, _ in batch], member)
                self._next_at_seconds = self._pace.next_at(begun_at, now_seconds())
                _answer(batch, None)
        except (KafkaError, OSError, TimeoutError) as error:
            self.failure = error
            self.refuse()
        finally:
            _answer(batch, self.failure or UnsettledError())
            self._committing = None

    async def _next_writer(self) -> Member | None:
        """Return who writes the next transaction, once it may begin; None if there is none."""
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


class Pace:
    """How long transactions pause, by how long they take."""

    def __init__(self) -> None:
        self._pause_seconds: float | None = None

    def next_at(self, begun_at: float, ended_at: float) -> float:
        """Return when the next transaction may begin, by when the last one did and was done."""
        last_seconds = min(PAUSE_FACTOR * (ended_at - begun_at), PAUSE_MAX_SECONDS)
        if self._pause_seconds is None:
            self._pause_seconds = last_seconds
        self._pause_seconds += LAST_SHARE * (last_seconds - self._pause_seconds)
        return ended_at + self._pause_seconds


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
