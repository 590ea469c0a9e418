"""Topics whose settings require a leader to decode or change a batch before the append.

A compacted topic refuses records without a key. A `compression.type` other than `producer` stores
every batch with that codec. `message.timestamp.type=LogAppendTime` sets the batch's timestamp. A
client's batch that takes longer than a few milliseconds must go through `rewrite_in_steps`.
"""

from collections.abc import Callable, Generator
from functools import partial
from mmap import mmap
from typing import Any

from broker.log.config import LogConfig
from broker.records.build import replace_payload, stamped_with_append_time
from broker.records.compression import CODEC_NAMES, DEFAULT_LEVEL, Codec, decompress
from broker.records.errors import CorruptBatch, TooMuchAtOnce
from broker.records.header import CONTROL_FLAG, HEADER_BYTES, BatchHeader, BytesLike
from broker.records.validation import refusal_of, validate_keys_in_steps
from broker.records.walk import walk_in_steps
from common.kafka.errors import ErrorCode, KafkaError

RECORDS_WITH_KEYS_AT_ONCE = 8192
COMPRESSED_AT_ONCE_BYTES = 256 * 1024
"""With gzip, the slowest codec, about five milliseconds."""

Aside = Callable[[Callable[[], Any]], Generator[Any, None, Any]]
"""Runs a function on another thread; the generator returns its result."""


def needs_rewrite(config: LogConfig) -> bool:
    """Return True if one of the three settings applies."""
    return (
        config.is_compacted or config.compression_type != "producer" or config.uses_log_append_time
    )


def rewrite_for_topic(
    config: LogConfig,
    header: BatchHeader,
    records: BytesLike,
    timestamp_ms: int,
    *,
    is_client: bool,
) -> BytesLike:
    """Check and change a batch as the topic requires; of a control batch only the timestamp.

    Raise TooMuchAtOnce for a client's batch that must go through `rewrite_in_steps`, and KafkaError
    for an invalid one.
    """
    payload: BytesLike = b""
    if needs_payload(config, header, is_client=is_client):
        if is_client and config.is_compacted and header.record_count > RECORDS_WITH_KEYS_AT_ONCE:
            raise TooMuchAtOnce
        try:
            payload = bytes(decompress(header.codec, memoryview(records)[HEADER_BYTES:]))
        except CorruptBatch as error:
            raise refusal_of(error) from None
        is_much = len(payload) > COMPRESSED_AT_ONCE_BYTES
        if is_client and is_much and _codec_of(config, header) != header.codec:
            raise TooMuchAtOnce
    steps = rewrite_in_steps(
        config, header, records, payload, timestamp_ms=timestamp_ms, is_client=is_client
    )
    while True:
        try:
            next(steps)
        except StopIteration as done:
            rewritten: BytesLike = done.value
            return rewritten
        except CorruptBatch as error:
            raise refusal_of(error) from None


def rewrite_in_steps(
    config: LogConfig,
    header: BatchHeader,
    records: BytesLike,
    payload: BytesLike | mmap,
    *,
    timestamp_ms: int,
    is_client: bool = True,
    aside: Aside | None = None,
) -> Generator[Any, None, BytesLike]:
    """Check and change a batch that is decompressed to `payload`; yield at intervals.

    Without `aside` it is compressed in this thread. Raise KafkaError, and CorruptBatch for records
    that do not match the header.
    """
    if needs_payload(config, header, is_client=is_client):
        yield from walk_in_steps(payload, header.record_count)
        if config.is_compacted and is_client:
            yield from validate_keys_in_steps(header, payload)
        codec = _codec_of(config, header)
        if codec != header.codec:
            if is_client and not codec and len(payload) > config.max_message_bytes:
                raise too_large(len(payload), config.max_message_bytes)
            level = _level(config, Codec(codec))
            compress = partial(_with_codec, header, payload, codec, level)
            records = compress() if aside is None else (yield from aside(compress))
            if is_client and len(records) > config.max_message_bytes:
                raise too_large(len(records), config.max_message_bytes)
    if config.uses_log_append_time:
        records = stamped_with_append_time(bytes(records), timestamp_ms)
    return records


def needs_payload(config: LogConfig, header: BatchHeader, *, is_client: bool) -> bool:
    """Return True if the records have to be looked at, for their keys or for another codec.

    Records that the broker itself writes to a compacted topic have keys.
    """
    if header.attributes & CONTROL_FLAG:
        return False
    return (config.is_compacted and is_client) or _codec_of(config, header) != header.codec


def _codec_of(config: LogConfig, header: BatchHeader) -> int:
    return CODEC_NAMES.get(config.compression_type, header.codec)


def too_large(size_bytes: int, limit_bytes: int) -> KafkaError:
    """Return the error for a too large batch."""
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size is {size_bytes} bytes, the limit is {limit_bytes}",
    )


def _with_codec(header: BatchHeader, payload: BytesLike | mmap, codec: int, level: int) -> bytes:
    with memoryview(payload) as view:
        return replace_payload(header, view, codec, level)


def _level(config: LogConfig, codec: Codec) -> int:
    levels = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return levels.get(codec, DEFAULT_LEVEL)
