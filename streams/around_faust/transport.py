"""Faust's Kafka transport, reading only what is committed, and exposing its membership in the
group.

The orders pipeline writes in transactions, and Faust reads `read_committed` only as a part of its
own `exactly_once`, which is never used here (`app`). Our own transactions name the member and the
generation of the group they are made for (`writer`).
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import faust
from faust.transport.drivers import aiokafka as driver


class _ConsumerThread(driver.AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # It is handed to the fetcher at the start; Faust has no setting for it.
        consumer._isolation_level = "read_committed"  # noqa: SLF001
        return consumer

    async def on_thread_stop(self) -> None:
        # A fetch that fails while it is cancelled, as when no broker is there, hands its
        # cancellation on, and the thread would die with those who wait for it waiting for ever.
        with suppress(asyncio.CancelledError):
            await super().on_thread_stop()


class _Listener(driver.ConsumerRebalanceListener):
    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        thread: Any = self._thread
        coordinator = thread._ensure_consumer()._coordinator  # noqa: SLF001
        # A member that the group has removed could otherwise commit as if it were in no group.
        thread.app.membership = (coordinator.generation, coordinator.member_id)
        await super().on_partitions_assigned(assigned)


class _Consumer(driver.Consumer):
    RebalanceListener = _Listener

    def _new_consumer_thread(self) -> driver.AIOKafkaConsumerThread:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)


class _Transport(driver.Transport):
    Consumer = _Consumer


class CommittedApp(faust.App):
    """An app whose consumers never see records of aborted or open transactions.

    `membership` is the generation and the member id under which it holds its partitions.
    """

    membership: tuple[int, str] = (-1, "")

    def _new_transport(self) -> Any:
        return _Transport(self.conf.broker_consumer, self)
