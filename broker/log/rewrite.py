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
from broker.records.validation import validate_keys, validate_keys_in_steps
from broker.records.walk import walk_records
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
    if not header.attributes & CONTROL_FLAG:
        # Records that the broker itself writes to a compacted topic have keys.
        if config.is_compacted and is_client:
            if header.record_count > RECORDS_WITH_KEYS_AT_ONCE:
                raise TooMuchAtOnce
            validate_keys(header, records)
        if config.compression_type != "producer":
            records = _recompress(config, header, records, is_client=is_client)
    if config.uses_log_append_time:
        records = stamped_with_append_time(bytes(records), timestamp_ms)
    return records


def rewrite_in_steps(
    config: LogConfig,
    header: BatchHeader,
    records: BytesLike,
    payload: BytesLike | mmap,
    *,
    timestamp_ms: int,
    aside: Aside,
) -> Generator[Any, None, BytesLike]:
    """Do the same as `rewrite_for_topic` for a client's batch, decompressed to `payload`."""
    if config.is_compacted:
        yield from validate_keys_in_steps(header, payload)
    codec = CODEC_NAMES.get(config.compression_type, header.codec)
    if codec != header.codec:
        if not codec and len(payload) > config.max_message_bytes:
            raise too_large(len(payload), config.max_message_bytes)
        level = _level(config, Codec(codec))
        records = yield from aside(partial(_with_codec, header, payload, codec, level))
    if config.uses_log_append_time:
        records = stamped_with_append_time(bytes(records), timestamp_ms)
    return records


def too_large(size_bytes: int, limit_bytes: int) -> KafkaError:
    """Return the error for a too large batch."""
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size is {size_bytes} bytes, the limit is {limit_bytes}",
    )


def _recompress(
    config: LogConfig, header: BatchHeader, records: BytesLike, *, is_client: bool
) -> BytesLike:
    codec = CODEC_NAMES[config.compression_type]
    if codec == header.codec:
        return records
    try:
        payload = bytes(decompress(header.codec, memoryview(records)[HEADER_BYTES:]))
        if is_client and len(payload) > COMPRESSED_AT_ONCE_BYTES:
            raise TooMuchAtOnce
        walk_records(payload, header.record_count)
    except CorruptBatch as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None
    return replace_payload(header, payload, codec, _level(config, codec))


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
