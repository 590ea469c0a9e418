"""Faust's Kafka transport with `read_committed`, which also shows its membership in the group.

The orders pipeline writes in transactions. Faust reads `read_committed` only as a part of its
`exactly_once`, which is not used here (`app`). The transactions of `writer` name the member and the
generation of the group.
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
        # The fetcher gets it at the start; Faust has no setting for it.
        consumer._isolation_level = "read_committed"  # noqa: SLF001
        return consumer

    async def on_thread_stop(self) -> None:
        # A fetch that fails during its cancellation, for example without a broker, passes the
        # cancellation on. The thread would end, and its callers would wait for ever.
        with suppress(asyncio.CancelledError):
            await super().on_thread_stop()


class _Listener(driver.ConsumerRebalanceListener):
    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        thread: Any = self._thread
        coordinator = thread._ensure_consumer()._coordinator  # noqa: SLF001
        # Otherwise a removed member could commit like a client without a group.
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

    `membership` is its generation and member id in the group.
    """

    membership: tuple[int, str] = (-1, "")

    def _new_transport(self) -> Any:
        return _Transport(self.conf.broker_consumer, self)
