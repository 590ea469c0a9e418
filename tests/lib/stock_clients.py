"""Unmodified Kafka clients behind one small interface, each used as its users use it."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import aiokafka
import confluent_kafka
import kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.lib.waiting import until

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMEOUT_SECONDS = 30


class Record(NamedTuple):
    """The records that are produced and must be consumed."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class StockClient(Protocol):
    """Produce with a codec and acks=all; consume as a group member until `count` have arrived."""

    codecs: Sequence[str]

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Record], codec: str
    ) -> None: ...

    def consume(self, bootstrap: str, topic: str, group: str, count: int) -> list[Record]: ...


class AiokafkaClient:
    codecs = CODECS

    def produce(self, bootstrap: str, topic: str, records: Sequence[Record], codec: str) -> None:
        async def run() -> None:
            compression = None if codec == "none" else codec
            async with aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap, compression_type=compression, acks="all"
            ) as producer:
                futures = [
                    await producer.send(
                        topic, record.value, key=record.key, headers=list(record.headers)
                    )
                    for record in records
                ]
                await asyncio.gather(*futures)

        asyncio.run(run())

    def consume(self, bootstrap: str, topic: str, group: str, count: int) -> list[Record]:
        async def run() -> list[Record]:
            async with aiokafka.AIOKafkaConsumer(
                topic,
                bootstrap_servers=bootstrap,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            ) as consumer:
                found: list[Record] = []
                while len(found) < count:
                    for messages in (await consumer.getmany(timeout_ms=500)).values():
                        found += [
                            Record(message.key, message.value, tuple(message.headers))
                            for message in messages
                        ]
                await consumer.commit()
                return found

        return asyncio.run(asyncio.wait_for(run(), TIMEOUT_SECONDS))


class ConfluentClient:
    codecs = CODECS

    def produce(self, bootstrap: str, topic: str, records: Sequence[Record], codec: str) -> None:
        errors: list[object] = []
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "enable.idempotence": True,
            }
        )
        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                headers=list(record.headers),
                on_delivery=lambda error, _: errors.append(error) if error else None,
            )
        assert producer.flush(TIMEOUT_SECONDS) == 0
        assert errors == []

    def consume(self, bootstrap: str, topic: str, group: str, count: int) -> list[Record]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "check.crcs": True,
            }
        )
        consumer.subscribe([topic])
        found: list[Record] = []
        try:
            while len(found) < count:
                messages = consumer.consume(count, timeout=TIMEOUT_SECONDS)
                assert messages, f"only {len(found)} of {count} records came"
                for message in messages:
                    assert message.error() is None, message.error()
                    headers = tuple(message.headers() or ())
                    found.append(Record(message.key(), message.value(), headers))
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        return found


class KafkaPythonClient:
    # Its snappy, lz4 and zstd need other C libraries, which are not dependencies of Millstream.
    codecs = ("none", "gzip")

    def produce(self, bootstrap: str, topic: str, records: Sequence[Record], codec: str) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all",
        )
        futures = [
            producer.send(topic, record.value, key=record.key, headers=list(record.headers))
            for record in records
        ]
        for future in futures:
            future.get(TIMEOUT_SECONDS)
        producer.close()

    def consume(self, bootstrap: str, topic: str, group: str, count: int) -> list[Record]:
        consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            consumer_timeout_ms=TIMEOUT_SECONDS * 1000,
        )
        found: list[Record] = []
        for message in consumer:
            found.append(Record(message.key, message.value, tuple(message.headers)))
            if len(found) == count:
                break
        consumer.commit()
        consumer.close()
        return found


class KcatClient:
    codecs = CODECS

    def produce(self, bootstrap: str, topic: str, records: Sequence[Record], codec: str) -> None:
        for record in records:
            command = ["kcat", "-P", "-b", bootstrap, "-t", topic, "-z", codec, "-X", "acks=all"]
            command += ["-k", (record.key or b"").decode()]
            for name, value in record.headers:
                command += ["-H", f"{name}={value.decode()}"]
            subprocess.run(command, input=record.value, check=True, timeout=TIMEOUT_SECONDS)

    def consume(self, bootstrap: str, topic: str, group: str, count: int) -> list[Record]:
        command = ["kcat", "-b", bootstrap, "-J", "-q", "-c", str(count)]
        command += ["-X", "auto.offset.reset=earliest", "-G", group, topic]
        done = subprocess.run(command, capture_output=True, check=True, timeout=TIMEOUT_SECONDS)
        return [self._record(json.loads(line)) for line in done.stdout.splitlines()]

    @staticmethod
    def _record(message: dict[str, object]) -> Record:
        headers = message.get("headers") or []
        assert isinstance(headers, list)
        pairs = zip(headers[::2], headers[1::2], strict=True)
        return Record(
            str(message["key"]).encode(),
            str(message["payload"]).encode(),
            tuple((str(name), str(value).encode()) for name, value in pairs),
        )


NEW_COORDINATOR = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}


def commit_offsets(
    settings: Mapping[str, object], group: str, offsets: Mapping[tuple[str, int], int]
) -> None:
    """Commit offsets, by topic and partition, for a group without members.

    The first group of a cluster makes the topic of offsets: a broker is named as coordinator
    before it has heard so, and librdkafka tells that to its user.
    """
    consumer = confluent_kafka.Consumer(
        {**settings, "group.id": group, "enable.auto.commit": False}
    )
    at = [TopicPartition(*place, offset) for place, offset in offsets.items()]

    def is_taken() -> bool:
        try:
            consumer.commit(offsets=at, asynchronous=False)
        except KafkaException as refusal:
            if refusal.args[0].code() in NEW_COORDINATOR:
                return False
            raise
        return True

    until(is_taken)
    consumer.close()


CLIENTS: dict[str, StockClient] = {
    "aiokafka": AiokafkaClient(),
    "confluent-kafka": ConfluentClient(),
    "kafka-python": KafkaPythonClient(),
}
if shutil.which("kcat"):
    CLIENTS["kcat"] = KcatClient()
