"""What the program of a user sees of a fault, with each stock client: an error, or the record.

The clients have their own defaults, except short timeouts: a request is given up after 1.5 s, a
record after 6 s. The client id of a producer is the name of its topic. A consumer reads until it
has the record, or for four seconds after its first error.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from typing import NamedTuple, Protocol

import aiokafka
import confluent_kafka
import kafka
from aiokafka.errors import KafkaError as AiokafkaError
from kafka.errors import KafkaError as KafkaPythonError

from tests.lib.apache_kafka import kafka_libs
from tests.lib.java import JAVA, java_program

REQUEST_MS = 1_500
RECORD_MS = 6_000
READ_SECONDS = 60.0
"""A machine may be slow; a program that has met an error gives up sooner."""
SECONDS_AFTER_AN_ERROR = 4.0
POLL_SECONDS = 10
"""A `poll` of 0.2 s that has not returned after this time never will."""


class Read(NamedTuple):
    """What a consumer's program saw."""

    error: str
    """The first error; "" if there was none."""
    has_record: bool


class FaultyClient(Protocol):
    """A stock client that meets a fault."""

    def produce(self, bootstrap: str, topic: str, *, is_idempotent: bool) -> str:
        """Produce one record to partition 0, and return the error, "" if it was delivered."""
        ...

    def consume(self, bootstrap: str, topic: str, group: str) -> Read:
        """Read one record as a member of a group."""
        ...


class _Reading:
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


class ConfluentKafka:
    def produce(self, bootstrap: str, topic: str, *, is_idempotent: bool) -> str:
        errors: list[str] = []
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": topic,
                "enable.idempotence": is_idempotent,
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

    def consume(self, bootstrap: str, topic: str, group: str) -> Read:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "socket.timeout.ms": REQUEST_MS,
                "fetch.wait.max.ms": 300,
                "check.crcs": True,
                "log_level": 0,
            }
        )
        consumer.subscribe([topic])
        reading = _Reading()
        try:
            while reading.goes_on():
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    return Read(reading.error, has_record=True)
                if message is not None:
                    reading.fails(str(message.error().name()))
            return Read(reading.error, has_record=False)
        finally:
            consumer.close()


class Aiokafka:
    def produce(self, bootstrap: str, topic: str, *, is_idempotent: bool) -> str:
        async def run() -> str:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                client_id=topic,
                enable_idempotence=is_idempotent,
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

    def consume(self, bootstrap: str, topic: str, group: str) -> Read:
        async def run() -> Read:
            reading = _Reading()
            consumer = aiokafka.AIOKafkaConsumer(
                topic,
                bootstrap_servers=bootstrap,
                group_id=group,
                auto_offset_reset="earliest",
                request_timeout_ms=REQUEST_MS,
                fetch_max_wait_ms=300,
            )
            try:
                await consumer.start()
                while reading.goes_on():
                    try:
                        found = await consumer.getmany(timeout_ms=200)
                    except AiokafkaError as raised:
                        reading.fails(type(raised).__name__)
                        continue
                    if found:
                        return Read(reading.error, has_record=True)
            except AiokafkaError as raised:  # The start waits for the group.
                reading.fails(type(raised).__name__)
            finally:
                await consumer.stop()
            return Read(reading.error, has_record=False)

        return asyncio.run(run())


class KafkaPython:
    """kafka-python, in a process of its own for each call.

    It leaves sockets open when it cannot reach a broker, and its `poll` spins for ever over a batch
    whose checksum is wrong.
    """

    def produce(self, bootstrap: str, topic: str, *, is_idempotent: bool) -> str:
        return self._ask("produce", bootstrap, topic, "idempotent" if is_idempotent else "")

    def consume(self, bootstrap: str, topic: str, group: str) -> Read:
        error, _, has_record = self._ask("consume", bootstrap, topic, group).partition("|")
        return Read(error, has_record=has_record == "True")

    @staticmethod
    def _ask(*arguments: str) -> str:
        """Return what the process prints."""
        command = [sys.executable, "-W", "ignore", "-m", "tests.lib.faulty_clients", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=2 * READ_SECONDS
        )
        return done.stdout.strip()


def _write_with_kafka_python(bootstrap: str, topic: str, idempotent: str) -> str:
    producer = None
    try:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            client_id=topic,
            enable_idempotence=bool(idempotent),
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


def _read_with_kafka_python(bootstrap: str, topic: str, group: str) -> Read:
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        request_timeout_ms=REQUEST_MS,
        session_timeout_ms=1_400,
        heartbeat_interval_ms=400,
        fetch_max_wait_ms=300,
    )
    reading = _Reading()
    signal.signal(signal.SIGALRM, _end_without_an_answer)
    while reading.goes_on():
        signal.alarm(POLL_SECONDS)
        try:
            found = consumer.poll(timeout_ms=200)
        except KafkaPythonError as raised:
            reading.fails(type(raised).__name__)
            continue
        if found:
            return Read(reading.error, has_record=True)
    return Read(reading.error, has_record=False)


def _end_without_an_answer(_number: int, _frame: object) -> None:
    print("poll() does not return|False", flush=True)
    os._exit(0)


class Java:
    """The Java client, in one JVM for all calls."""

    def __init__(self) -> None:
        command = java_program(kafka_libs(), JAVA / "RunFaultyCalls.java", "-Xmx256m")
        self._jvm = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def produce(self, bootstrap: str, topic: str, *, is_idempotent: bool) -> str:
        return self._ask("produce", bootstrap, topic, str(is_idempotent).lower())

    def consume(self, bootstrap: str, topic: str, group: str) -> Read:
        error, _, value = self._ask("consume", bootstrap, topic, group).partition("|")
        return Read(error, has_record=value == "value")

    def _ask(self, *words: str) -> str:
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.write("\t".join(words) + "\n")
        self._jvm.stdin.flush()
        while not (line := self._jvm.stdout.readline()).startswith("> "):
            assert line, "the JVM has ended"
        return line.removeprefix("> ").removesuffix("\n")

    def close(self) -> None:
        """End the JVM."""
        self._jvm.communicate()


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "produce":
        print(_write_with_kafka_python(*words), flush=True)
    else:
        print("{}|{}".format(*_read_with_kafka_python(*words)), flush=True)
    os._exit(0)  # A producer that reached no broker leaves a thread that never ends.
