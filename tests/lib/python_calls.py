"""Stock Python clients beside a broker that fails: `python -m tests.lib.python_calls CLIENT`.

One line of input is one thing to do, and one line of output that begins with "> " is what the
program of a user sees. A line "! ready" says that the test can bring about its situation; at
"? ready" the program waits for a line before it goes on.

    produce    bootstrap servers, topic, "true" for idempotent     the error, "" if delivered
    consume    bootstrap servers, topic, group                     the error, "|", the value
    member     bootstrap servers, topic, group, seconds            what a member sees, in words
    transact   bootstrap servers, topic, transactional id          what a transaction sees
    create     bootstrap servers, topic                            the error, "" if created
    log_in     bootstrap servers, topic, token, its secret         the error of a later record

Words are separated by tabs. The clients have their own defaults, except short timeouts: a request
is given up after 1.5 s, a record after 6 s. The client id of a producer is the name of its topic.
"""

import asyncio
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import aiokafka
import confluent_kafka
import kafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AiokafkaTopic
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import NewTopic as ConfluentTopic
from kafka.errors import KafkaError as KafkaPythonError

REQUEST_MS: Final = 1_500
RECORD_MS: Final = 6_000
HEARTBEAT_MS: Final = 300
READ_SECONDS: Final = 60.0
"""A machine may be slow; a program that has met an error gives up sooner."""
SECONDS_AFTER_AN_ERROR: Final = 6.0
SETTLING_POLLS: Final = 10
POLL_SECONDS: Final = 10
"""A `poll` of 0.2 s that has not returned after this time never will."""
FIRST, SECOND = b"first", b"second"


def ready_and_wait() -> None:
    print("? ready", flush=True)
    sys.stdin.readline()


class Reading:
    """How long a consumer goes on, and the first error that it met."""

    def __init__(self) -> None:
        self.error = ""
        self._deadline = time.monotonic() + READ_SECONDS

    def goes_on(self) -> bool:
        return time.monotonic() < self._deadline

    def fails(self, error: str) -> None:
        if not self.error:
            self.error = error
            self._deadline = time.monotonic() + SECONDS_AFTER_AN_ERROR

    def answer(self, value: bytes | None = None) -> str:
        return f"{self.error}|{value.decode() if value else ''}"


class Membership:
    """What a member of a group sees after it has read the first record."""

    def __init__(self, seconds: str) -> None:
        self._seconds = float(seconds)
        self._deadline = time.monotonic() + READ_SECONDS
        self._is_ready = False
        self._quiet_polls = -math.inf
        self._has_second = False
        self._is_over = False
        self._seen: list[str] = []

    def goes_on(self) -> bool:
        return not self._is_over and time.monotonic() < self._deadline

    def notes(self, seen: str) -> None:
        if self._is_ready and seen not in self._seen:
            self._seen.append(seen)

    def reads(self, value: bytes | None) -> None:
        if value == FIRST:
            self.notes("reads the first again")
        elif not self._has_second:
            self._has_second = True
            self.notes("reads on")

    def has_committed(self, *, is_settled: bool = True) -> None:
        """Be ready the first time, or, for one that joins again soon, after some quiet polls."""
        if is_settled or self._is_ready:
            self._is_over = self._has_second
            self._begins()
        else:
            self._quiet_polls = 0

    def has_polled(self, *, is_member: bool) -> None:
        """Count a poll that found nothing."""
        self._quiet_polls += 1
        if is_member and self._quiet_polls >= SETTLING_POLLS:
            self._begins()

    def _begins(self) -> None:
        if not self._is_ready:
            self._is_ready = True
            self._deadline = time.monotonic() + self._seconds
            print("! ready", flush=True)

    def commit_fails(self, error: str) -> None:
        self.notes(f"commit: `{error}`")
        if self._has_second:
            self._deadline = min(self._deadline, time.monotonic() + SECONDS_AFTER_AN_ERROR)

    def answer(self) -> str:
        return ", ".join(self._seen if self._has_second else [*self._seen, "reads no more"])


class ConfluentKafka:
    def produce(self, bootstrap: str, topic: str, is_idempotent: str) -> str:
        errors: list[str] = []
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": topic,
                "enable.idempotence": is_idempotent == "true",
                "socket.timeout.ms": REQUEST_MS,
                "message.timeout.ms": RECORD_MS,
                "log_level": 0,
            }
        )
        producer.produce(
            topic,
            b"value",
            partition=0,
            on_delivery=lambda error, _: errors.append(error.name() if error else ""),
        )
        producer.flush(3 * RECORD_MS / 1_000)
        return errors[0] if errors else "no answer"

    def consume(self, bootstrap: str, topic: str, group: str) -> str:
        consumer = self._consumer(bootstrap, group)
        consumer.subscribe([topic])
        reading = Reading()
        try:
            while reading.goes_on():
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    return reading.answer(message.value())
                if message is not None:
                    reading.fails(message.error().name())
            return reading.answer()
        finally:
            consumer.close()

    def member(self, bootstrap: str, topic: str, group: str, seconds: str) -> str:
        consumer = self._consumer(
            bootstrap, group, **{"enable.auto.commit": False, "heartbeat.interval.ms": HEARTBEAT_MS}
        )
        seen = Membership(seconds)
        consumer.subscribe(
            [topic],
            on_assign=lambda *_: seen.notes("assigned"),
            on_revoke=lambda *_: seen.notes("revoked"),
            on_lost=lambda *_: seen.notes("lost"),
        )
        while seen.goes_on():
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error() is not None:
                seen.notes(f"`{message.error().name()}`")
                continue
            seen.reads(message.value())
            try:
                consumer.commit(message=message, asynchronous=False)
                seen.has_committed()
            except confluent_kafka.KafkaException as raised:
                seen.commit_fails(raised.args[0].name())
        answer = seen.answer()
        consumer.close()
        return answer

    def _consumer(self, bootstrap: str, group: str, **more: object) -> confluent_kafka.Consumer:
        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "socket.timeout.ms": REQUEST_MS,
                "fetch.wait.max.ms": HEARTBEAT_MS,
                "check.crcs": True,
                "log_level": 0,
                **more,
            }
        )

    def transact(self, bootstrap: str, topic: str, transactional_id: str) -> str:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "log_level": 0,
            }
        )
        producer.init_transactions(READ_SECONDS)

        def send() -> None:
            producer.produce(topic, b"value")
            assert producer.flush(READ_SECONDS) == 0

        return transacted(
            producer.begin_transaction,
            send,
            lambda: producer.commit_transaction(READ_SECONDS),
            lambda: producer.abort_transaction(READ_SECONDS),
            confluent_kafka.KafkaException,
        )

    def create(self, bootstrap: str, topic: str) -> str:
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        try:
            admin.create_topics([ConfluentTopic(topic, 1, 1)])[topic].result(READ_SECONDS)
        except confluent_kafka.KafkaException as raised:
            return name_of(raised)
        return ""


def name_of(error: BaseException) -> str:
    if isinstance(error, confluent_kafka.KafkaException):
        return str(error.args[0].name())
    return type(error).__name__


def transacted(
    begin: Callable[[], object],
    send: Callable[[], object],
    commit: Callable[[], object],
    abort: Callable[[], object],
    failure: type[Exception],
) -> str:
    """Do a transaction, in the middle of which the situation comes about, and then another one."""
    begin()
    send()
    ready_and_wait()
    try:
        send()
        commit()
    except failure as raised:
        first = f"`{name_of(raised)}`"
    else:
        return "is committed"
    try:
        abort()
        begin()
        send()
        commit()
    except failure:
        return f"{first}, the producer is over"
    return f"{first}, aborts, the next is committed"


class Aiokafka:
    def produce(self, bootstrap: str, topic: str, is_idempotent: str) -> str:
        async def run() -> str:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                client_id=topic,
                enable_idempotence=is_idempotent == "true",
                request_timeout_ms=REQUEST_MS,
            )
            try:
                async with asyncio.timeout(3 * RECORD_MS / 1_000):
                    await producer.start()
                    await producer.send_and_wait(topic, b"value", partition=0)
            except AiokafkaError as error:
                return type(error).__name__
            except TimeoutError:
                return "no answer"
            finally:
                await producer.stop()
            return ""

        return asyncio.run(run())

    def consume(self, bootstrap: str, topic: str, group: str) -> str:
        async def run() -> str:
            reading = Reading()
            consumer = self._consumer(bootstrap, group)
            consumer.subscribe([topic])
            try:
                await consumer.start()
                while reading.goes_on():
                    try:
                        found = await consumer.getmany(timeout_ms=200)
                    except AiokafkaError as raised:
                        reading.fails(type(raised).__name__)
                        continue
                    for records in found.values():
                        return reading.answer(records[0].value)
            except AiokafkaError as raised:  # The start waits for the group.
                reading.fails(type(raised).__name__)
            finally:
                await consumer.stop()
            return reading.answer()

        return asyncio.run(run())

    def member(self, bootstrap: str, topic: str, group: str, seconds: str) -> str:
        seen = Membership(seconds)

        class Listener(aiokafka.ConsumerRebalanceListener):
            async def on_partitions_revoked(self, revoked: object) -> None:
                seen.notes("revoked")

            async def on_partitions_assigned(self, assigned: object) -> None:
                seen.notes("assigned")

        async def run() -> str:
            settings = {"enable_auto_commit": False, "heartbeat_interval_ms": HEARTBEAT_MS}
            async with self._consumer(bootstrap, group, **settings) as consumer:
                consumer.subscribe([topic], listener=Listener())
                while seen.goes_on():
                    try:
                        found = await consumer.getmany(timeout_ms=200, max_records=1)
                    except AiokafkaError as raised:
                        seen.notes(f"`{name_of(raised)}`")
                        continue
                    for records in found.values():
                        seen.reads(records[0].value)
                        try:
                            await consumer.commit()
                            seen.has_committed()
                        except AiokafkaError as raised:
                            seen.commit_fails(name_of(raised))
                return seen.answer()

        return asyncio.run(run())

    def _consumer(self, bootstrap: str, group: str, **more: Any) -> aiokafka.AIOKafkaConsumer:
        return aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            request_timeout_ms=REQUEST_MS,
            fetch_max_wait_ms=HEARTBEAT_MS,
            **more,
        )

    def transact(self, bootstrap: str, topic: str, transactional_id: str) -> str:
        with asyncio.Runner() as runner:

            async def started() -> aiokafka.AIOKafkaProducer:
                made = aiokafka.AIOKafkaProducer(
                    bootstrap_servers=bootstrap, transactional_id=transactional_id
                )
                await made.start()
                return made

            producer = runner.run(started())
            try:
                return transacted(
                    lambda: runner.run(producer.begin_transaction()),
                    lambda: runner.run(producer.send_and_wait(topic, b"value")),
                    lambda: runner.run(producer.commit_transaction()),
                    lambda: runner.run(producer.abort_transaction()),
                    AiokafkaError,
                )
            finally:
                runner.run(producer.stop())

    def create(self, bootstrap: str, topic: str) -> str:
        async def run() -> str:
            admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
            await admin.start()
            try:
                answer = await admin.create_topics([AiokafkaTopic(topic, 1, 1)])
                return of_code(answer.topic_errors[0][1])
            except AiokafkaError as raised:
                return name_of(raised)
            finally:
                await admin.close()

        return asyncio.run(run())


def of_code(code: int) -> str:
    """Return the name of an error in an answer that the client hands on, "" for none."""
    error = confluent_kafka.KafkaError(code)
    return f"{error.name()} in the answer" if code else ""


class KafkaPython:
    """Its consumers know the topic before they join: else one in four never reads, nor says so."""

    def produce(self, bootstrap: str, topic: str, is_idempotent: str) -> str:
        producer = None
        try:
            producer = kafka.KafkaProducer(
                bootstrap_servers=bootstrap,
                client_id=topic,
                enable_idempotence=is_idempotent == "true",
                request_timeout_ms=REQUEST_MS,
                delivery_timeout_ms=RECORD_MS,
                max_block_ms=RECORD_MS,
                bootstrap_timeout_ms=RECORD_MS,
            )
            producer.send(topic, b"value", partition=0).get(3 * RECORD_MS / 1_000)
        except KafkaPythonError as error:
            return type(error).__name__
        finally:
            if producer is not None:
                producer.close(timeout=1)
        return ""

    def consume(self, bootstrap: str, topic: str, group: str) -> str:
        consumer = self._consumer(
            bootstrap, group, request_timeout_ms=REQUEST_MS, session_timeout_ms=1_400
        )
        consumer.partitions_for_topic(topic)
        consumer.subscribe([topic])
        reading = Reading()
        signal.signal(signal.SIGALRM, _end_without_an_answer)
        while reading.goes_on():
            signal.alarm(POLL_SECONDS)
            try:
                found = consumer.poll(timeout_ms=200)
            except KafkaPythonError as raised:
                reading.fails(type(raised).__name__)
                continue
            finally:
                signal.alarm(0)
            for records in found.values():
                consumer.close()
                return reading.answer(records[0].value)
        return reading.answer()

    def member(self, bootstrap: str, topic: str, group: str, seconds: str) -> str:
        seen = Membership(seconds)

        class Listener(kafka.ConsumerRebalanceListener):
            def on_partitions_revoked(self, revoked: object) -> None:
                seen.notes("revoked")

            def on_partitions_lost(self, lost: object) -> None:
                seen.notes("lost")

            def on_partitions_assigned(self, assigned: object) -> None:
                seen.notes("assigned")

        consumer = self._consumer(bootstrap, group, enable_auto_commit=False)
        consumer.partitions_for_topic(topic)
        consumer.subscribe([topic], listener=Listener())
        # It joins again when it has seen the topic's metadata, most often after the first record.
        while seen.goes_on():
            try:
                found = consumer.poll(timeout_ms=200, max_records=1)
            except KafkaPythonError as raised:
                seen.notes(f"`{name_of(raised)}`")
                continue
            if not found:
                seen.has_polled(is_member=bool(consumer.assignment()))
            for records in found.values():
                seen.reads(records[0].value)
                try:
                    consumer.commit()
                    seen.has_committed(is_settled=False)
                except KafkaPythonError as raised:
                    seen.commit_fails(name_of(raised))
        answer = seen.answer()
        consumer.close()
        return answer

    def _consumer(self, bootstrap: str, group: str, **more: object) -> kafka.KafkaConsumer:
        return kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=HEARTBEAT_MS,
            fetch_max_wait_ms=HEARTBEAT_MS,
            **more,
        )

    def transact(self, bootstrap: str, topic: str, transactional_id: str) -> str:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id
        )
        producer.init_transactions()
        try:
            return transacted(
                producer.begin_transaction,
                lambda: producer.send(topic, b"value").get(READ_SECONDS),
                producer.commit_transaction,
                producer.abort_transaction,
                KafkaPythonError,
            )
        finally:
            producer.close(timeout=1)

    def create(self, bootstrap: str, topic: str) -> str:
        admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            admin.create_topics([topic])
        except KafkaPythonError as raised:
            return name_of(raised)
        finally:
            admin.close()
        return ""


def _end_without_an_answer(_number: int, _frame: object) -> None:
    print("> poll() does not return|", flush=True)
    os._exit(0)


CLIENTS: Final = {
    "confluent-kafka": ConfluentKafka,
    "aiokafka": Aiokafka,
    "kafka-python": KafkaPython,
}


def main(name: str) -> None:
    """Do what the lines of the input say."""
    client = CLIENTS[name]()
    while line := sys.stdin.readline():
        what, *words = line.removesuffix("\n").split("\t")
        call: Callable[..., str] = getattr(client, what)
        print(f"> {call(*words)}", flush=True)
    os._exit(0)  # A producer that reached no broker leaves a thread that never ends.


if __name__ == "__main__":
    main(sys.argv[1])
