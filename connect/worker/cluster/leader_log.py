"""The config topic, written by the leader in transactions that fence earlier leaders.

A former leader that is still alive could write records that the new leader does not expect. With
`exactly.once.source.support` the leader's producer has the transactional id
`connect-cluster-<group.id>`, so the next leader fences it (KIP-618). Records that any worker may
write are written without a transaction.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

from common.process.clock import now_ms
from connect.herder.config_records import LOGGER, TARGET_STATE
from connect.worker.client_settings import TRANSACTION_DEFAULTS
from connect.worker.cluster.kafka_logs import LoopLog, entries_of
from connect.worker.topic_log import LARGEST_BYTES, Entry, LogTopic, Positions, not_written
from connect.worker.transactions import begin_transactions
from connect.worker.worker import Record
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS: Final = 30.0


class LeaderLog(LoopLog):
    """Owns the leader's producer. Without a transactional id it writes as any other worker."""

    def __init__(
        self,
        client: Mapping[str, Any],
        topic: LogTopic,
        replay: Callable[[str, bytes | None], None],
        moved: Callable[[int], None],
        transactional_id: str | None,
    ) -> None:
        super().__init__(client, topic, replay, moved)
        self._client = {**TRANSACTION_DEFAULTS, "message.max.bytes": LARGEST_BYTES, **client}
        self._transactional_id = transactional_id
        self._producer: Producer | None = None
        self._thread = ThreadPoolExecutor(1, "leader-log")
        """All writes go through this one thread, in order; only it uses the producer."""
        self.shut_out: Callable[[], None] = lambda: None
        """Called when the leader's write fails: another worker may have become the leader."""

    def lead(self, is_leader: bool) -> None:
        """Become the leader, or stop being the leader. Called after every rebalance."""
        if self._transactional_id is not None:
            self._in_order(self._claim if is_leader else self._relinquish)

    async def append(self, records: Sequence[Record]) -> None:
        if not self._is_for_leader(records):
            await super().append(records)
            return
        await self._reach(await self._in_order(self._write, entries_of(records)))

    def submit(self, records: Sequence[Record]) -> None:
        if self._is_for_leader(records):
            self._in_order(self._write, entries_of(records))
        else:
            super().submit(records)

    async def stop(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        await super().stop()

    def _is_for_leader(self, records: Sequence[Record]) -> bool:
        if self._transactional_id is None:
            return False
        return any(not each.key.startswith((TARGET_STATE, LOGGER)) for each in records)

    def _in_order(self, do: Callable[..., Any], *what: Any) -> "asyncio.Future[Any]":
        doing = asyncio.get_running_loop().run_in_executor(self._thread, do, *what)
        doing.add_done_callback(self._done)
        return doing

    def _done(self, doing: "asyncio.Future[Any]") -> None:
        if doing.cancelled():
            return
        error = doing.exception()
        if error is not None:
            log.warning("leader cannot write topic=%s error=%s", self._log.topic.name, error)
            self.shut_out()

    # --- in the thread ---

    def _claim(self) -> None:
        if self._producer is None:
            assert self._transactional_id is not None
            until_ms = now_ms() + _TIMEOUT_SECONDS * 1000
            self._producer = begin_transactions(
                self._client, self._transactional_id, lambda: now_ms() < until_ms
            )

    def _relinquish(self) -> None:
        self._producer = None

    def _write(self, entries: Sequence[Entry]) -> Positions:
        """Write entries in one transaction; return the offsets after them."""
        producer, ends = self._producer, Positions()
        problems: list[KafkaException] = []
        if producer is None:
            raise ConnectException("this worker does not lead, or could not begin to")

        def delivered(problem: Any, message: Any) -> None:
            if problem is None:
                at = message.partition()
                ends[at] = max(ends.get(at, 0), message.offset() + 1)
            else:
                problems.append(KafkaException(problem))

        try:
            producer.begin_transaction()
            for key, value in entries:
                producer.produce(self._log.topic.name, value, key, on_delivery=delivered)
            producer.commit_transaction(_TIMEOUT_SECONDS)
        except (KafkaException, BufferError) as error:
            # The next producer with this id, perhaps our own, ends an open transaction.
            self._producer = None
            raise not_written(self._log.topic.name, problems[0] if problems else error) from error
        return ends
