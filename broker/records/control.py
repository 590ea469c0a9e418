"""Control records: transaction markers (KIP-98), and those of the Raft log (KIP-595).

The key of a control record has a version and a type, two int16. The value of an end marker has a
version (int16) and the epoch of the transaction coordinator that wrote it (int32).
"""

from enum import IntEnum
from struct import Struct, error
from typing import NamedTuple

from broker.records.build import build_batch
from broker.records.errors import CorruptBatch
from broker.records.record import Record

_KEY = Struct(">hh")
_END_MARKER_VALUE = Struct(">hi")


class ControlType(IntEnum):
    """The types of control records."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndMarker(NamedTuple):
    """The content of a transaction marker."""

    is_commit: bool
    coordinator_epoch: int


def control_type(key: bytes | None) -> int:
    """Return the type in a control record's key; raise CorruptBatch."""
    try:
        version, number = _KEY.unpack_from(key or b"")
    except error:
        raise CorruptBatch(f"a control record's key has {len(key or b'')} bytes") from None
    if version < 0:
        raise CorruptBatch(f"a control record of version {version}")
    return int(number)


def end_marker(record: Record) -> EndMarker | None:
    """Return the transaction marker, None for other types; raise CorruptBatch."""
    number = control_type(record.key)
    if number not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    try:
        _, coordinator_epoch = _END_MARKER_VALUE.unpack_from(record.value or b"")
    except error:
        raise CorruptBatch("a transaction marker's value is cut off") from None
    return EndMarker(number == ControlType.COMMIT, coordinator_epoch)


def build_end_marker(
    producer_id: int, producer_epoch: int, marker: EndMarker, timestamp_ms: int
) -> bytes:
    """Build the batch that commits or aborts a producer's open transaction in a partition."""
    number = ControlType.COMMIT if marker.is_commit else ControlType.ABORT
    value = _END_MARKER_VALUE.pack(0, marker.coordinator_epoch)
    return build_batch(
        [(_KEY.pack(0, number), value, (), timestamp_ms)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
