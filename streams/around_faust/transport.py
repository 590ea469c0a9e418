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
from aiokafka.errors import KafkaError
from faust.auth import (
    Credentials,
    GSSAPICredentials,
    OAuthCredentials,
    SASLCredentials,
    SSLCredentials,
)
from faust.transport.drivers import aiokafka as driver
from mode import Service

from common.credentials.access import KafkaAccess

_LOOK_SECONDS = 1.0


class _ConsumerThread(driver.AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # The fetcher gets it at the start; Faust has no setting for it.
        consumer._isolation_level = "read_committed"  # noqa: SLF001
        return consumer

    @Service.task
    async def _watch_group(self) -> None:
        """Crash if the group refuses this consumer.

        aiokafka raises that when records are fetched, and Faust fetches none before it has
        partitions: it would wait for ever, and its end would wait for it.
        """
        while not self.should_stop:
            await self.sleep(_LOOK_SECONDS)
            consumer = self._consumer
            coordinator = None if consumer is None else consumer._coordinator  # noqa: SLF001
            if coordinator is not None:
                try:
                    coordinator.check_errors()
                except KafkaError as error:
                    # In its own thread a crash would close the loop that its end needs.
                    crash = self.consumer.crash(error)
                    asyncio.run_coroutine_threadsafe(crash, self.parent_loop)
                    return

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


def credentials_of(kafka: KafkaAccess) -> Credentials | None:
    """Return Faust's credentials for a cluster; None for a cluster without authentication."""
    told = kafka.aiokafka()
    context = told.get("ssl_context")
    if "sasl_oauth_token_provider" in told:
        return OAuthCredentials(oauth_cb=told["sasl_oauth_token_provider"], ssl_context=context)
    if "sasl_kerberos_service_name" in told:
        return GSSAPICredentials(
            kerberos_service_name=told["sasl_kerberos_service_name"],
            ssl_context=context,
            mechanism=told["sasl_mechanism"],
        )
    if "sasl_mechanism" in told:
        return SASLCredentials(
            username=told["sasl_plain_username"],
            password=told["sasl_plain_password"],
            ssl_context=context,
            mechanism=told["sasl_mechanism"],
        )
    if context is not None:
        return SSLCredentials(context)
    return None
