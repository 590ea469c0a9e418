"""The small text files of a log directory: checkpoints, `meta.properties`, the clean-shutdown file.

A checkpoint has three parts, each on its own line: the version 0, the number of entries, and the
entries. `recovery-point-offset-checkpoint`, `replication-offset-checkpoint`,
`log-start-offset-checkpoint` and `cleaner-offset-checkpoint` have `topic partition offset`;
`leader-epoch-checkpoint` in a partition's directory has `epoch start_offset`; this broker's own
`transaction-index-checkpoint` there has `base_offset crc32` of each `.txnindex`.

A damaged checkpoint is logged and treated as missing, because its content can be derived again.
"""

import json
import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from itertools import pairwise

from broker.log.storage import Storage, read_file, replace_file
from broker.model import OffsetAndEpoch, TopicPartition
from common.process.properties import parse_properties, properties_text_of

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
TRANSACTION_INDEX_CHECKPOINT = "transaction-index-checkpoint"
CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)
META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

_VERSION = "0"
_logger = logging.getLogger(__name__)


def write_offsets(storage: Storage, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Write a checkpoint with one offset per partition."""
    lines = (f"{key.topic} {key.partition} {offset}" for key, offset in offsets.items())
    replace_file(storage, path, _text(lines))


def read_offsets(storage: Storage, path: str) -> dict[TopicPartition, int]:
    """Read a checkpoint of offsets; it is empty if the file is missing or damaged."""
    offsets: dict[TopicPartition, int] = {}
    try:
        for topic, number, offset in _read(storage, path, 3):
            offsets[TopicPartition(topic, int(number))] = int(offset)
    except ValueError as error:
        _logger.warning("checkpoint ignored path=%s reason=%s", path, error)
        return {}
    return offsets


def write_epochs(
    storage: Storage, path: str, entries: Iterable[OffsetAndEpoch], *, is_durable: bool = True
) -> None:
    """Write `leader-epoch-checkpoint`; the caller syncs the directory."""
    lines = (f"{entry.leader_epoch} {entry.offset}" for entry in entries)
    replace_file(storage, path, _text(lines), is_durable=is_durable, syncs_name=False)


def read_epochs(storage: Storage, path: str) -> list[OffsetAndEpoch] | None:
    """Read `leader-epoch-checkpoint`; return None if it is damaged."""
    try:
        entries = [
            OffsetAndEpoch(int(offset), int(epoch)) for epoch, offset in _read(storage, path, 2)
        ]
        if not _ascends(entries):
            raise ValueError("epochs and offsets do not ascend")
        return entries
    except ValueError as error:
        _logger.warning("checkpoint ignored path=%s reason=%s", path, error)
        return None


def write_index_sums(storage: Storage, directory: str, sums: Mapping[int, int]) -> None:
    """Write the checksums of a partition's transaction indexes, by base offset.

    The file is not synced: without it, only the check of the indexes is lost.
    """
    lines = (f"{base_offset} {crc}" for base_offset, crc in sums.items())
    path = f"{directory}/{TRANSACTION_INDEX_CHECKPOINT}"
    replace_file(storage, path, _text(lines), is_durable=False)


def read_index_sums(storage: Storage, directory: str) -> dict[int, int]:
    """Read these checksums; the result is empty if the file is missing or damaged."""
    path = f"{directory}/{TRANSACTION_INDEX_CHECKPOINT}"
    try:
        return {int(base_offset): int(crc) for base_offset, crc in _read(storage, path, 2)}
    except ValueError as error:
        _logger.warning("checkpoint ignored path=%s reason=%s", path, error)
        return {}


def _ascends(entries: list[OffsetAndEpoch]) -> bool:
    return all(
        after.offset > before.offset and after.leader_epoch > before.leader_epoch
        for before, after in pairwise([OffsetAndEpoch(-1, -1), *entries])
    )


def _text(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "\n".join((_VERSION, str(len(entries)), *entries, "")).encode()


def _read(storage: Storage, path: str, columns: int) -> list[list[str]]:
    """Return the columns of the entries; raise ValueError for an invalid checkpoint."""
    data = read_file(storage, path)
    if not data:
        return []  # Apache Kafka writes an empty file if there are no entries.
    if not data.endswith(b"\n"):
        raise ValueError(f"{len(data)} bytes that end within a line")
    version, count, *lines = data.decode().splitlines()
    if version != _VERSION or int(count) != len(lines):
        raise ValueError(f"version {version!r}, {count!r} entries announced, {len(lines)} there")
    entries = [line.split(" ") for line in lines]
    if any(len(entry) != columns for entry in entries):
        raise ValueError(f"an entry has not {columns} columns")
    return entries


def read_properties(storage: Storage, path: str) -> dict[str, str]:
    """Read a Java properties file; empty if the file is missing. Raise ValueError for others."""
    return parse_properties(properties_text_of(read_file(storage, path) or b""))


def write_properties(storage: Storage, path: str, properties: Mapping[str, str]) -> None:
    """Write a Java properties file."""
    lines = ["#", *(f"{name}={value}" for name, value in sorted(properties.items())), ""]
    replace_file(storage, path, "\n".join(lines).encode())


def encode_uuid(uuid: bytes) -> str:
    """Encode 16 bytes as Kafka does: 22 characters of URL-safe base 64."""
    return urlsafe_b64encode(uuid).rstrip(b"=").decode()


def decode_uuid(text: str) -> bytes:
    """Decode Kafka's 22 characters; raise ValueError for any other text."""
    uuid = urlsafe_b64decode(text + "==")
    if len(uuid) != 16 or encode_uuid(uuid) != text:
        raise ValueError(f"{text!r} is not a uuid")
    return uuid


def write_partition_metadata(storage: Storage, directory: str, topic_id: bytes) -> None:
    """Write `partition.metadata`, which binds a directory to one topic id.

    The first flush of the log syncs the file, so that 50 new partitions do not cost 50 syncs. If it
    is lost before that, it is written again when the metadata names the partition.
    """
    text = f"version: 0\ntopic_id: {encode_uuid(topic_id)}"
    path = f"{directory}/{PARTITION_METADATA}"
    replace_file(storage, path, text.encode(), is_durable=False)


def sync_partition_metadata(storage: Storage, directory: str) -> None:
    """Make `partition.metadata` survive a power failure, if it exists."""
    path = f"{directory}/{PARTITION_METADATA}"
    if storage.status(path) is not None:
        storage.open(path).sync()


def read_partition_metadata(storage: Storage, directory: str) -> bytes | None:
    """Return the topic id; None if the file is missing; raise ValueError if it is damaged."""
    path = f"{directory}/{PARTITION_METADATA}"
    data = read_file(storage, path)
    if data is None:
        return None
    lines = data.decode().splitlines()
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    if fields.get("version") != _VERSION or "topic_id" not in fields:
        raise ValueError(f"{len(data)} bytes that are not a version and a topic id")
    return decode_uuid(fields["topic_id"])


def read_clean_shutdown(storage: Storage, path: str) -> int | None:
    """Return the broker epoch in the clean-shutdown file (-1 for none); None without the file.

    An unreadable file counts as missing: the log is then checked in full.
    """
    data = read_file(storage, path)
    if data is None:
        return None
    try:
        return int(json.loads(data)["brokerEpoch"])
    except (KeyError, TypeError, ValueError) as error:
        _logger.warning("clean-shutdown file ignored path=%s reason=%r", path, error)
        return None
