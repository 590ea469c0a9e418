"""The well-behaved client beside the fuzzer: it produces, reads back, and compares every byte.

The fuzzer cannot guess the name of its topic. A round trip takes little time by itself, so the
node's CPU time during one is the delay that the fuzzer causes other clients. The wall-clock time is
reported as well; on a busy machine it is not the node's fault.
"""

import time
from collections.abc import Callable
from threading import Event, Thread

from broker.records.batch import split_batches
from broker.records.build import build_batch
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from common.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.lib.raw_kafka import RawConnection

PRODUCE_VERSION, FETCH_VERSION, CREATE_TOPICS_VERSION = 9, 11, 7
TIMEOUT_SECONDS = 30.0
PAUSE_SECONDS = 0.01


class Neighbour:
    """Runs on its own thread from `start` to `stop`; `problem` is the first error."""

    def __init__(self, bootstrap: str, topic: str, processor_seconds: Callable[[], float]) -> None:
        self._processor_seconds = processor_seconds
        self._bootstrap = bootstrap
        self._topic = topic
        self._stopped = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.problem: str | None = None
        self.rounds = 0
        self.longest_seconds = 0.0
        self.most_computed_seconds = 0.0

    def start(self) -> None:
        """Create its topic, and start its thread."""
        with RawConnection(self._bootstrap, TIMEOUT_SECONDS) as connection:
            topic = CreatableTopic(name=self._topic, num_partitions=1, replication_factor=1)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
            connection.ask(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, request)
        self._thread.start()

    def stop(self) -> None:
        """Stop after another read of all records from the start."""
        self._stopped.set()
        self._thread.join(TIMEOUT_SECONDS * 2)
        if self._thread.is_alive():
            self.problem = self.problem or "the well-behaved client waits for an answer"

    def _run(self) -> None:
        try:
            with RawConnection(self._bootstrap, TIMEOUT_SECONDS) as connection:
                while not self._stopped.wait(PAUSE_SECONDS):
                    self._round(connection)
                offset = 0
                while offset < self.rounds:
                    offset = self._read(connection, offset)
        except (OSError, AssertionError) as error:
            self.problem = f"the well-behaved client, after {self.rounds} rounds: {error!r}"

    def _round(self, connection: RawConnection) -> None:
        begun, computed = time.perf_counter(), self._processor_seconds()
        self._produce(connection)
        self._read(connection, self.rounds - 1)
        self.longest_seconds = max(self.longest_seconds, time.perf_counter() - begun)
        computed_seconds = self._processor_seconds() - computed
        self.most_computed_seconds = max(self.most_computed_seconds, computed_seconds)

    def _produce(self, connection: RawConnection) -> None:
        # The current time: records older than the retention time are deleted.
        timestamp_ms = int(time.time() * 1000)
        batch = build_batch([(b"key", self._value(self.rounds), (), timestamp_ms)])
        partition = PartitionProduceData(index=0, records=batch)
        data = TopicProduceData(name=self._topic, partition_data=[partition])
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
        answer = connection.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request)
        told = answer.responses[0].partition_responses[0]  # type: ignore[attr-defined]
        assert (told.error_code, told.base_offset) == (0, self.rounds), told
        self.rounds += 1

    def _read(self, connection: RawConnection, offset: int) -> int:
        partition = FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic=self._topic, partitions=[partition])
        request = FetchRequest(max_wait_ms=5_000, min_bytes=1, topics=[topic])
        answer = connection.ask(ApiKey.FETCH, FETCH_VERSION, request)
        told = answer.responses[0].partitions[0]  # type: ignore[attr-defined]
        assert (told.error_code, told.high_watermark) == (0, self.rounds), told
        for batch in split_batches(told.records):
            for record in batch.records():
                assert (record.offset, record.value) == (offset, self._value(offset)), record
                offset += 1
        return offset

    def _value(self, number: int) -> bytes:
        return b"%s %d" % (self._topic.encode(), number)
