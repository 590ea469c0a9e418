"""The topics whose settings make a leader look into a batch, or change it, before the append.

A compacted topic takes no record without a key. `compression.type` other than `producer` stores
every batch with that codec. `message.timestamp.type=LogAppendTime` stamps the batch.
"""

from broker.errors import ErrorCode, KafkaError
from broker.log.config import LogConfig
from broker.records.build import replace_payload, stamped_with_append_time
from broker.records.compression import CODEC_NAMES, DEFAULT_LEVEL, Codec, decompress
from broker.records.errors import CorruptBatch
from broker.records.header import CONTROL_FLAG, HEADER_BYTES, BatchHeader, BytesLike
from broker.records.validation import validate_keys
from broker.records.walk import walk_records


def needs_rewrite(config: LogConfig) -> bool:
    """Tell whether any of the three settings is in force."""
    return (
        config.is_compacted or config.compression_type != "producer" or config.uses_log_append_time
    )


def rewrite_for_topic(
    config: LogConfig, header: BatchHeader, records: BytesLike, timestamp_ms: int
) -> BytesLike:
    """Check and change a batch as the topic asks; control batches are left alone but for time."""
    if not header.attributes & CONTROL_FLAG:
        if config.is_compacted:
            validate_keys(header, records)
        if config.compression_type != "producer":
            records = _recompress(config, header, records)
    if config.uses_log_append_time:
        records = stamped_with_append_time(bytes(records), timestamp_ms)
    return records


def _recompress(config: LogConfig, header: BatchHeader, records: BytesLike) -> BytesLike:
    codec = CODEC_NAMES[config.compression_type]
    if codec == header.codec:
        return records
    try:
        payload = bytes(decompress(header.codec, memoryview(records)[HEADER_BYTES:]))
        walk_records(payload, header.record_count)
    except CorruptBatch as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None
    return replace_payload(header, payload, codec, _level(config, codec))


def _level(config: LogConfig, codec: Codec) -> int:
    levels = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return levels.get(codec, DEFAULT_LEVEL)
