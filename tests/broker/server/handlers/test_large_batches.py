"""Batches that unpack to very much: checked in steps, one at a time, and not without end."""

import asyncio
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from broker.log.append import Accepted, AppendOrigin, accept_in_steps
from broker.log.config import LogConfig
from broker.records.build import build_batch, stamped_with_create_time
from broker.records.compression import UNPACKED_AT_ONCE_BYTES, Codec
from broker.records.errors import TooMuchAtOnce
from broker.server.handlers.produce import produce
from broker.server.storage import large_batches
from broker.server.storage.large_batches import LargeBatches
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.fuzz.in_process import answer_to, in_process_node
from tests.fuzz.valid_requests import BROKER, TOPIC
from tests.lib.logs import NOW_MS, append_of_any_size, at_once, last_of, open_log, read_batches
from tests.lib.simulated_storage import SimulatedStorage

SMALL_RECORDS = 20_000


def large_batch(codec: Codec = Codec.ZSTD, timestamp_ms: int = NOW_MS) -> bytes:
    # What shrinks a thousandfold is refused.
    value = Random(1).randbytes(10_000) + bytes(UNPACKED_AT_ONCE_BYTES)
    return build_batch([(b"key", value, (), timestamp_ms)], compression=codec)


def log_with(**settings: Any) -> Any:
    return open_log(SimulatedStorage(), LogConfig(**settings))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("settings", [{}, {"compression_type": "lz4"}])
def test_a_large_batch_is_too_much_at_once_and_is_appended_after_its_steps(codec, settings):
    log, batch = log_with(**settings), large_batch(codec)
    with pytest.raises(TooMuchAtOnce):
        log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS)
    append_of_any_size(log, batch)
    (stored,) = read_batches(log)
    assert stored.header.codec == (Codec.LZ4 if settings else codec)
    assert [record.key for record in stored.records()] == [b"key"]


@pytest.mark.parametrize("keyless", [[], [7, SMALL_RECORDS - 1]])
def test_a_compacted_topic_looks_at_the_keys_of_many_records_in_steps(keyless):
    records = [
        (None if index in keyless else b"k", b"", (), NOW_MS) for index in range(SMALL_RECORDS)
    ]
    log, batch = log_with(cleanup_policy=("compact",)), build_batch(records)
    with pytest.raises(TooMuchAtOnce):
        log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS)
    walk = accept_in_steps(log, batch, NOW_MS, at_once)
    if keyless:
        with pytest.raises(KafkaError, match="2 without key, the first at 7"):
            list(walk)
    else:
        assert len(list(walk)) > SMALL_RECORDS // 1024


def test_a_coordinator_appends_many_records_to_a_compacted_topic_at_once():
    log = log_with(cleanup_policy=("compact",))
    batch = build_batch([(b"k", b"", (), NOW_MS)] * SMALL_RECORDS)
    origin = AppendOrigin.COORDINATOR
    log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS, origin=origin)
    assert log.log_end_offset == SMALL_RECORDS


def test_one_large_batch_at_a_time_is_unpacked_and_who_gave_up_keeps_nobody_waiting():
    async def scenario() -> list[Accepted]:
        gate, batch = LargeBatches(), large_batch()

        async def accept() -> Accepted:
            walk = gate.accept(log_with(), batch, NOW_MS)
            while True:
                try:
                    wait = next(walk)
                except StopIteration as done:
                    accepted: Accepted = done.value
                    return accepted
                if wait is not None and not wait.is_done:
                    gone_on = asyncio.Event()
                    wait.when_done(gone_on.set)
                    await gone_on.wait()

        gone = gate.accept(log_with(), batch, NOW_MS)
        next(gone)
        others = [asyncio.create_task(accept()) for _ in range(3)]
        await asyncio.sleep(0)
        assert len(gate._waiting) == len(others)
        gone.close()
        return await asyncio.gather(*others)

    for accepted in asyncio.run(scenario()):
        assert accepted.unpacked_bytes > UNPACKED_AT_ONCE_BYTES


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[ProduceRequest], Any]]:
    monkeypatch.setattr(large_batches, "in_thread", at_once)
    with in_process_node() as node:

        def produced(request: ProduceRequest) -> Any:
            frame = encode_request(request.__api_key__, 9, 1, "test", request)[4:]
            return answer_to(frame, node.send(BROKER, frame, steps=200))

        yield produced


def test_what_the_batches_of_a_request_unpack_to_together_is_bounded(ask, monkeypatch):
    monkeypatch.setattr(produce, "UNPACKED_PER_REQUEST_BYTE", 0)
    batch = large_batch(timestamp_ms=-1)
    data = [PartitionProduceData(index=index, records=batch) for index in range(2)]
    topics = [TopicProduceData(name=TOPIC, partition_data=data)]
    (topic,) = ask(ProduceRequest(acks=1, topic_data=topics)).responses
    assert [partition.error_code for partition in topic.partition_responses] == [
        ErrorCode.NONE,
        ErrorCode.MESSAGE_TOO_LARGE,
    ]


SMALL_MAX_BYTES = 20_000


@pytest.mark.parametrize("size_bytes", [30_000, UNPACKED_AT_ONCE_BYTES + 1])
def test_a_batch_that_grows_beyond_the_largest_message_is_refused_at_any_size(size_bytes):
    log = log_with(compression_type="uncompressed", max_message_bytes=SMALL_MAX_BYTES)
    value = Random(1).randbytes(10_000) + bytes(size_bytes)
    batch = build_batch([(b"key", value, (), NOW_MS)], compression=Codec.ZSTD)
    assert len(batch) < SMALL_MAX_BYTES
    with pytest.raises(KafkaError) as refused:
        append_of_any_size(log, batch)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert log.log_end_offset == 0


@pytest.mark.parametrize("max_timestamp", [NOW_MS, NOW_MS + 7], ids=["right", "wrong"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"compression_type": "lz4"},
        {"compression_type": "uncompressed"},
        {"message_timestamp_type": "LogAppendTime"},
        {"cleanup_policy": ("compact",)},
    ],
    ids=str,
)
def test_a_batch_is_stored_alike_at_once_and_in_steps(settings, max_timestamp):
    records = [(b"k", bytes(index), (), NOW_MS) for index in range(300)]
    batch = stamped_with_create_time(build_batch(records, compression=Codec.ZSTD), max_timestamp)
    at_once_log, in_steps_log = log_with(**settings), log_with(**settings)
    at_once_log.append_as_leader(batch, leader_epoch=0, timestamp_ms=NOW_MS)
    accepted = last_of(accept_in_steps(in_steps_log, batch, NOW_MS, at_once))
    is_unchanged = not settings or "cleanup_policy" in settings
    assert (accepted.records == batch) == (is_unchanged and max_timestamp == NOW_MS)
    in_steps_log.append_as_leader(
        accepted.records, leader_epoch=0, timestamp_ms=NOW_MS, origin=AppendOrigin.CHECKED_CLIENT
    )
    (one,), (other,) = read_batches(at_once_log), read_batches(in_steps_log)
    assert bytes(one.buffer) == bytes(other.buffer)
