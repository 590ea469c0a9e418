"""Batches whose check takes so long that others are to come in between.

What a few bytes unpack to may be a hundred megabytes: a thread unpacks it, the loop walks through
its records in steps (`broker.log.append.accept_in_steps`).

Invariant: one such batch at a time is unpacked, on the whole node: that is how much memory they may
take together. The others wait, each with its connection: the order of requests is kept.
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
    """Gives them their turn."""

    def __init__(self) -> None:
        self._is_at_work = False
        self._waiting: list[Later] = []

    def accept(self, log: PartitionLog, records: BytesLike, timestamp_ms: int) -> Steps[Accepted]:
        """Check a batch, and give it as it is to be appended; raises KafkaError."""
        while self._is_at_work:
            turn = Later(holds=True)
            self._waiting.append(turn)
            yield turn
        self._is_at_work = True
        try:
            return (yield from accept_in_steps(log, records, timestamp_ms, in_thread))
        finally:
            # Everybody: whose turn it would be may be gone.
            self._is_at_work = False
            waiting, self._waiting = self._waiting, []
            for turn in waiting:
                turn.done()


def in_thread(work: Callable[[], R]) -> Steps[R]:
    """Have another thread do it, which is worth while for what leaves the interpreter's lock."""
    done = asyncio.get_running_loop().run_in_executor(None, work)
    finished = Later(holds=True)

    def on_done(_: "asyncio.Future[R]") -> None:
        # Looked at here, too: whoever asked may be gone, and then nobody misses it.
        done.exception()
        finished.done()

    done.add_done_callback(on_done)
    yield finished
    return done.result()
