"""Batches whose validation takes so long that other requests are served in between.

A few bytes may unpack to a hundred megabytes: a thread unpacks the batch, and the loop validates
its records in steps (`broker.log.append.accept_in_steps`).

Invariant: one such batch at a time is unpacked on the whole node, which limits their memory. The
others wait, each with its connection, so that the order of requests is kept.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from broker.log.append import Accepted, accept_in_steps
from broker.log.partition_log import PartitionLog
from broker.records.header import BytesLike
from broker.server.network.later import Later, Steps

R = TypeVar("R")


class LargeBatches:
    """Validates large batches one at a time."""

    def __init__(self) -> None:
        self._is_at_work = False
        self._waiting: list[Later] = []

    def accept(self, log: PartitionLog, records: BytesLike, timestamp_ms: int) -> Steps[Accepted]:
        """Validate a batch, and return it in the form for the append; raises KafkaError."""
        while self._is_at_work:
            turn = Later(holds=True)
            self._waiting.append(turn)
            yield turn
        self._is_at_work = True
        try:
            return (yield from accept_in_steps(log, records, timestamp_ms, in_thread))
        finally:
            # All waiting batches are woken: the connection of the next one may be closed.
            self._is_at_work = False
            waiting, self._waiting = self._waiting, []
            for turn in waiting:
                turn.done()


def in_thread(work: Callable[[], R]) -> Steps[R]:
    """Run a function in another thread; useful for a function that releases the GIL."""
    done = asyncio.get_running_loop().run_in_executor(None, work)
    finished = Later(holds=True)

    def on_done(_: "asyncio.Future[R]") -> None:
        # The exception is retrieved here: the connection that asked may be closed.
        done.exception()
        finished.done()

    done.add_done_callback(on_done)
    yield finished
    return done.result()
