"""The workers' metadata and assignments in the group: Kafka Connect's protocol, v1 and v2.

The versions have the same format; v2, `sessioned`, means that internal requests are signed
(KIP-507). Metadata: version int16, url string, config offset int64, current assignment nullable
bytes. Assignment: version int16, error int16, leader string, leader url string, config offset
int64, assigned, revoked, delay in ms int32; where assigned and revoked are arrays of connector
string and tasks int32 array, in which -1 stands for the connector itself. (Source:
IncrementalCooperativeConnectProtocol.)
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from connect.herder.names import TaskId

PROTOCOL_TYPE: Final = "connect"
SESSIONED: Final = "sessioned"
COMPATIBLE: Final = "compatible"
VERSIONS: Final = {SESSIONED: 2, COMPATIBLE: 1}

NO_ERROR: Final = 0
CONFIG_MISMATCH: Final = 1
"""The leader has read less of the config topic than a member: read to the end and rejoin."""

_CONNECTOR: Final = -1
_NO_OFFSET: Final = -1


class ProtocolError(Exception):
    """The bytes are not valid metadata or a valid assignment."""


@dataclass(frozen=True, slots=True)
class Share:
    """A set of connectors and tasks, such as those that a worker runs or must start."""

    connectors: frozenset[str] = frozenset()
    tasks: frozenset[TaskId] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)

    def __or__(self, other: "Share") -> "Share":
        return Share(self.connectors | other.connectors, self.tasks | other.tasks)

    def __sub__(self, other: "Share") -> "Share":
        return Share(self.connectors - other.connectors, self.tasks - other.tasks)

    def __and__(self, other: "Share") -> "Share":
        return Share(self.connectors & other.connectors, self.tasks & other.tasks)


def union(shares: Iterable[Share]) -> Share:
    together = Share()
    for share in shares:
        together |= share
    return together


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """The leader's assignment for one worker; in metadata, the worker's present assignment."""

    leader: str = ""
    leader_url: str = ""
    config_offset: int = _NO_OFFSET
    assigned: Share = field(default_factory=Share)
    revoked: Share = field(default_factory=Share)
    delay_ms: int = 0
    error: int = NO_ERROR


@dataclass(frozen=True, slots=True)
class Metadata:
    """A worker's metadata in its JoinGroup request."""

    url: str
    config_offset: int
    current: GroupAssignment | None = None

    @property
    def share(self) -> Share:
        return Share() if self.current is None else self.current.assigned


def encode_metadata(metadata: Metadata, version: int) -> bytes:
    current = metadata.current
    is_nothing = current is None or not current.leader
    encoded = None if is_nothing or current is None else encode_assignment(current, version)
    head = struct.pack(">h", version) + _string(metadata.url)
    head += struct.pack(">q", metadata.config_offset)
    if encoded is None:
        return head + struct.pack(">i", -1)
    return head + struct.pack(">i", len(encoded)) + encoded


def encode_assignment(assignment: GroupAssignment, version: int) -> bytes:
    return b"".join(
        (
            struct.pack(">hh", version, assignment.error),
            _string(assignment.leader),
            _string(assignment.leader_url),
            struct.pack(">q", assignment.config_offset),
            _share(assignment.assigned),
            _share(assignment.revoked),
            struct.pack(">i", assignment.delay_ms),
        )
    )


def decode_metadata(data: bytes) -> Metadata:
    """Read metadata of v0 to v2. Raises ProtocolError."""
    reader = _Reader(data)
    reader.int16()
    url, config_offset = reader.string(), reader.int64()
    # v0 ends here.
    length = reader.int32() if reader.has_more else -1
    if length < 0:
        return Metadata(url, config_offset)
    return Metadata(url, config_offset, decode_assignment(reader.take(length)))


def decode_assignment(data: bytes) -> GroupAssignment:
    """Read an assignment. Raises ProtocolError."""
    reader = _Reader(data)
    reader.int16()
    error, leader, leader_url = reader.int16(), reader.string(), reader.string()
    config_offset = reader.int64()
    assigned, revoked = reader.share(), reader.share()
    delay_ms = reader.int32() if reader.has_more else 0
    return GroupAssignment(leader, leader_url, config_offset, assigned, revoked, delay_ms, error)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _share(share: Share) -> bytes:
    by_connector: dict[str, list[int]] = {}
    for name in sorted(share.connectors):
        by_connector.setdefault(name, []).append(_CONNECTOR)
    for task in sorted(share.tasks):
        by_connector.setdefault(task.connector, []).append(task.task)
    parts = [struct.pack(">i", len(by_connector))]
    for name, numbers in by_connector.items():
        parts.append(_string(name))
        parts.append(struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return b"".join(parts)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def has_more(self) -> bool:
        return self._at < len(self._data)

    def take(self, length: int) -> bytes:
        if not 0 <= length <= len(self._data) - self._at:
            raise ProtocolError(f"{length} bytes wanted at {self._at} of {len(self._data)}")
        self._at += length
        return self._data[self._at - length : self._at]

    def int16(self) -> int:
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self.take(8), "big", signed=True)

    def string(self) -> str:
        try:
            return self.take(self.int16()).decode()
        except UnicodeDecodeError as error:
            raise ProtocolError("a text is no UTF-8") from error

    def share(self) -> Share:
        """Read an array; null, and one that is missing at the end, is empty."""
        count = self.int32() if self.has_more else 0
        connectors: set[str] = set()
        tasks: set[TaskId] = set()
        for _ in range(max(0, count)):
            name = self.string()
            # Read one by one, so that a false count allocates no memory.
            for _ in range(max(0, self.int32())):
                number = self.int32()
                if number == _CONNECTOR:
                    connectors.add(name)
                else:
                    tasks.add(TaskId(name, number))
        return Share(frozenset(connectors), frozenset(tasks))
