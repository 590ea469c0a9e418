"""Stock clients as one logical process each: a producer and a consumer, used one call at a time.

All send with acks=all and idempotence. The outcome of a send is `ok` with its offset, `fail` if the
broker refused it with a definite error, otherwise `info`. After any outcome but `ok` the caller
must discard the client: its retries are not part of the history.
"""

import asyncio
import concurrent.futures
import contextlib
import itertools
import threading
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors

from tests.chaos.history import Key, Outcome, Read, Sent, Value
from tests.chaos.recorder import Outcomes

GROUP = "chaos"
SEND_SECONDS = 30.0
REQUEST_MS = 4_000
POLL_SECONDS = 0.25
POLL_RECORDS = 200
# Errors after which the record is not written and never will be.
DEFINITE = {
    "INVALID_MSG",
    "MSG_SIZE_TOO_LARGE",
    "INVALID_RECORD",
    "TOPIC_AUTHORIZATION_FAILED",
    "TOPIC_EXCEPTION",
}
_clients = itertools.count(1)
Result = TypeVar("Result")

Positions = Mapping[Key, int | None]
"""The position of each key; None is its start."""


class Client(Protocol):
    """One logical process."""

    def send(self, key: Key, value: Value) -> Outcomes: ...

    def assign(self, positions: Positions) -> None: ...

    def subscribe(self, topic: str) -> None: ...

    def poll(self) -> Outcomes: ...

    def close(self) -> None: ...


def key_of(topic: str, partition: int) -> Key:
    return f"{topic}/{partition}"


def place_of(key: Key) -> tuple[str, int]:
    topic, _, partition = key.rpartition("/")
    return topic, int(partition)


def reset_policy(group: str | None) -> str:
    """Return the value of auto.offset.reset.

    A former leader that is cut off may answer OFFSET_OUT_OF_RANGE. A client that does not send the
    leader epoch (KIP-320; librdkafka does) would then reset its position to the start.
    """
    return "none" if group is None else "earliest"


def sent_ok(key: Key, value: Value, offset: int | None) -> Outcomes:
    """Return an outcome; an offset below zero is unknown: the broker found a duplicate batch."""
    known = offset if offset is not None and offset >= 0 else None
    return Outcomes(Outcome.OK, (Sent(key, value, known),))


def sent_badly(key: Key, value: Value, error: str, *, is_definite: bool) -> Outcomes:
    outcome = Outcome.FAIL if is_definite else Outcome.INFO
    return Outcomes(outcome, (Sent(key, value),), error=error)


def not_polled(error: object) -> Outcomes:
    return Outcomes(Outcome.INFO, error=str(error))


# librdkafka.


def confluent_producer(bootstrap: str) -> confluent_kafka.Producer:
    return confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            "message.timeout.ms": int(SEND_SECONDS * 1000),
            "request.timeout.ms": REQUEST_MS,
            "socket.timeout.ms": REQUEST_MS,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 2_000,
            "log_level": 0,
        }
    )


class ConfluentClient:
    """The client of confluent-kafka."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = confluent_producer(bootstrap)
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6_000,
                "socket.timeout.ms": REQUEST_MS,
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 2_000,
                "fetch.wait.max.ms": 100,
                "log_level": 0,
                "on_commit": self._committed,
            }
        )
        self._commit_error = ""
        self._rebalanced: set[Key] = set()
        self._is_member = False

    def send(self, key: Key, value: Value) -> Outcomes:
        topic, partition = place_of(key)
        done: list[Outcomes] = []

        def delivered(error: Any, message: Any) -> None:
            done.append(delivery(key, value, error, message))

        self._producer.produce(topic, b"%d" % value, partition=partition, on_delivery=delivered)
        while not done:
            self._producer.poll(1)
        return done[0]

    def assign(self, positions: Positions) -> None:
        self._leave_group()
        self._consumer.assign(
            [
                confluent_kafka.TopicPartition(
                    *place_of(key), confluent_kafka.OFFSET_BEGINNING if at is None else at
                )
                for key, at in positions.items()
            ]
        )

    def subscribe(self, topic: str) -> None:
        self._leave_group()

        def moved(_: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
            self._rebalanced |= {key_of(one.topic, one.partition) for one in partitions}

        self._consumer.unassign()
        self._consumer.subscribe([topic], on_assign=moved, on_revoke=moved, on_lost=moved)
        self._is_member = True

    def poll(self) -> Outcomes:
        reads = []
        for message in self._consumer.consume(POLL_RECORDS, timeout=POLL_SECONDS):
            if message.error() is None:
                place = key_of(message.topic(), message.partition())
                reads.append(Read(place, message.offset(), int(message.value())))
        error, self._commit_error = self._commit_error, ""
        if self._is_member and reads:
            # A synchronous commit has no timeout: it may never return if all brokers stop.
            self._consumer.commit(asynchronous=True)
        rebalanced = tuple(sorted(self._rebalanced))
        self._rebalanced.clear()
        return Outcomes(Outcome.OK, (), tuple(reads), rebalanced, error)

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(0)
        self._consumer.close()

    def _committed(self, error: Any, _: object) -> None:
        if error is not None:
            self._commit_error = str(error)

    def _leave_group(self) -> None:
        if self._is_member:
            self._consumer.unsubscribe()
            self._is_member = False


def delivery(key: Key, value: Value, error: Any, message: Any) -> Outcomes:
    """Return the outcome of librdkafka's delivery report."""
    if error is None:
        return sent_ok(key, value, message.offset())
    name = error.name()
    return sent_badly(key, value, name, is_definite=name in DEFINITE)


# aiokafka: its clients share one event loop in its own thread.


class Loop:
    """An event loop for all of aiokafka's clients."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Awaitable[Result], seconds: float = SEND_SECONDS) -> Result:
        """Run `work` on the loop and return its result; raise TimeoutError after `seconds`."""

        async def limited() -> Result:
            async with asyncio.timeout(seconds):
                return await work

        try:
            return asyncio.run_coroutine_threadsafe(limited(), self._loop).result()
        except concurrent.futures.CancelledError as error:
            # A client that loses its connections cancels its callers' futures.
            raise aiokafka.errors.KafkaError("cancelled") from error

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class AiokafkaClient:
    """The client of aiokafka."""

    def __init__(self, bootstrap: str, loop: Loop) -> None:
        self._loop = loop
        self._bootstrap = bootstrap
        self._producer: Any = None
        self._consumer: Any = None
        self._is_member = False

    def send(self, key: Key, value: Value) -> Outcomes:
        topic, partition = place_of(key)
        try:
            if self._producer is None:
                self._producer = self._loop.run(self._start_producer())
        except (TimeoutError, aiokafka.errors.KafkaError) as error:
            # The record was not passed to the producer.
            return sent_badly(key, value, repr(error), is_definite=True)
        try:
            found = self._loop.run(
                self._producer.send_and_wait(topic, b"%d" % value, partition=partition)
            )
        except (TimeoutError, aiokafka.errors.KafkaError, AssertionError) as error:
            return sent_badly(key, value, repr(error), is_definite=False)
        return sent_ok(key, value, found.offset)

    def assign(self, positions: Positions) -> None:
        self._loop.run(self._assign(positions))

    def subscribe(self, topic: str) -> None:
        self._loop.run(self._subscribe(topic))

    def poll(self) -> Outcomes:
        try:
            return self._loop.run(self._poll())
        except (TimeoutError, aiokafka.errors.KafkaError) as error:
            return not_polled(repr(error))

    def close(self) -> None:
        for part in (self._producer, self._consumer):
            if part is not None:
                # The consumer need not leave its group.
                with contextlib.suppress(TimeoutError, aiokafka.errors.KafkaError):
                    self._loop.run(part.stop(), 5.0)
        self._producer = self._consumer = None

    async def _start_producer(self) -> Any:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            acks="all",
            enable_idempotence=True,
            request_timeout_ms=REQUEST_MS,
            metadata_max_age_ms=2_000,
        )
        try:
            await producer.start()
        except BaseException:
            await producer.stop()
            raise
        return producer

    async def _fresh_consumer(self, group: str | None) -> Any:
        if self._consumer is not None:
            await self._consumer.stop()
        self._consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset=reset_policy(group),
            request_timeout_ms=REQUEST_MS,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
            metadata_max_age_ms=2_000,
            fetch_max_wait_ms=100,
        )
        await self._consumer.start()
        return self._consumer

    async def _assign(self, positions: Positions) -> None:
        consumer = await self._fresh_consumer(None)
        places = {aiokafka.TopicPartition(*place_of(key)): at for key, at in positions.items()}
        consumer.assign(list(places))
        for place, at in places.items():
            consumer.seek(place, 0 if at is None else at)
        self._is_member = False

    async def _subscribe(self, topic: str) -> None:
        consumer = await self._fresh_consumer(GROUP)
        consumer.subscribe([topic])
        self._is_member = True

    async def _poll(self) -> Outcomes:
        found = await self._consumer.getmany(
            timeout_ms=int(POLL_SECONDS * 1000), max_records=POLL_RECORDS
        )
        reads = tuple(_reads(found))
        error = ""
        if self._is_member and reads:
            try:
                await self._consumer.commit()
            except aiokafka.errors.KafkaError as failure:
                error = repr(failure)
        return Outcomes(Outcome.OK, (), reads, (), error)


def _reads(found: Mapping[Any, Sequence[Any]]) -> Iterator[Read]:
    for place, records in found.items():
        for record in records:
            yield Read(key_of(place.topic, place.partition), record.offset, int(record.value))


# kafka-python.


class KafkaPythonClient:
    """The client of kafka-python."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap.split(",")
        self._producer: Any = None
        self._consumer: Any = None
        self._is_member = False

    def send(self, key: Key, value: Value) -> Outcomes:
        topic, partition = place_of(key)
        try:
            if self._producer is None:
                self._producer = kafka.KafkaProducer(
                    bootstrap_servers=self._bootstrap,
                    acks="all",
                    enable_idempotence=True,
                    request_timeout_ms=REQUEST_MS,
                    delivery_timeout_ms=int(SEND_SECONDS * 1000),
                    metadata_max_age_ms=2_000,
                    max_block_ms=10_000,
                )
            future = self._producer.send(topic, b"%d" % value, partition=partition)
        except kafka.errors.KafkaError as error:
            # The record was not passed to the producer.
            return sent_badly(key, value, repr(error), is_definite=True)
        try:
            found = future.get(timeout=SEND_SECONDS + 5)
        except kafka.errors.KafkaError as error:
            return sent_badly(key, value, repr(error), is_definite=False)
        return sent_ok(key, value, found.offset)

    def assign(self, positions: Positions) -> None:
        consumer = self._fresh_consumer(None)
        places = {kafka.TopicPartition(*place_of(key)): at for key, at in positions.items()}
        consumer.assign(list(places))
        for place, at in places.items():
            consumer.seek(place, 0 if at is None else at)
        self._is_member = False

    def subscribe(self, topic: str) -> None:
        self._fresh_consumer(GROUP).subscribe([topic])
        self._is_member = True

    def poll(self) -> Outcomes:
        try:
            found = self._consumer.poll(int(POLL_SECONDS * 1000), max_records=POLL_RECORDS)
        except kafka.errors.KafkaError as error:
            return not_polled(repr(error))
        reads = tuple(_reads(found))
        error = ""
        if self._is_member and reads:
            try:
                self._consumer.commit()
            except kafka.errors.KafkaError as failure:
                error = repr(failure)
        return Outcomes(Outcome.OK, (), reads, (), error)

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close(timeout=0)
        if self._consumer is not None:
            self._consumer.close(autocommit=False)
        self._producer = self._consumer = None

    def _fresh_consumer(self, group: str | None) -> Any:
        if self._consumer is not None:
            self._consumer.close(autocommit=False)
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset=reset_policy(group),
            session_timeout_ms=6_000,
            request_timeout_ms=10_000,
            metadata_max_age_ms=2_000,
            fetch_max_wait_ms=100,
        )
        return self._consumer
