"""The interface of the offset stores, which are in `connect.worker.offsets`.

Stores are called from many threads. A read sees every write that finished before it.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from millstream.connect.connectors import SourceOffset, SourcePartition

Entries = Sequence[tuple[SourcePartition, SourceOffset | None]]


class OffsetStore(Protocol):
    """Stores the offsets of all sources."""

    def offsets(self, connector: str, partitions: Sequence[SourcePartition]) -> list[Any]:
        """Return where a source is in each partition, by everything written until now."""

    def of_connector(self, connector: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return all partitions of a source with their offsets."""

    def write(self, connector: str, entries: Entries, timeout_ms: int) -> None:
        """Store offsets; None removes one. Raises ConnectException when the outcome is unknown."""


class Readable(Protocol):
    """The reading part of a store."""

    def offsets(self, connector: str, partitions: Sequence[SourcePartition]) -> list[Any]:
        """Return where a source is in each partition, by everything written until now."""


class Reader:
    """The `offset_storage_reader` of the connector and the tasks of one name."""

    def __init__(self, store: Readable, connector: str) -> None:
        self._store = store
        self._connector = connector

    def offset(self, partition: SourcePartition) -> dict[str, Any] | None:
        return self.offsets([partition])[0]

    def offsets(self, partitions: Sequence[SourcePartition]) -> list[dict[str, Any] | None]:
        return self._store.offsets(self._connector, partitions)
