"""Faust's Kafka transport, reading only what is committed.

The orders pipeline writes in transactions, and Faust reads `read_committed` only as a part of its
own `exactly_once`, which is never used here (`app`).
"""

from typing import Any

import faust
from faust.transport.drivers import aiokafka as driver


class _ConsumerThread(driver.AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # It is handed to the fetcher at the start; Faust has no setting for it.
        consumer._isolation_level = "read_committed"  # noqa: SLF001
        return consumer


class _Consumer(driver.Consumer):
    def _new_consumer_thread(self) -> driver.AIOKafkaConsumerThread:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)


class _Transport(driver.Transport):
    Consumer = _Consumer


class CommittedApp(faust.App):
    """An app whose consumers never see what is aborted or still open."""

    def _new_transport(self) -> Any:
        return _Transport(self.conf.broker_consumer, self)
