"""The interface between a topology and its runtime: records, rows and steps.

There are two runtimes: `around_faust` (Kafka, Faust, RocksDB), and `testing` (lists, dicts and a
clock that the test moves). A topology does not depend on which one runs it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from streams.records import Event, Origin, Row, Step


class MalformedRecordError(ValueError):
    """The record can never be handled."""


@dataclass(frozen=True)
class Record:
    """A delivered record, and the generation of the assignment at its delivery."""

    topic: str
    partition: int
    offset: int
    key: str
    value: bytes
    timestamp_ms: int
    origin: Origin
    headers: list[tuple[str, bytes]]
    generation: int = 0


Handle = Callable[[Record], Awaitable[None]]


class Table(Protocol):
    """Rows by key; in a handler, the rows of the record's partition."""

    @property
    def name(self) -> str: ...

    def row(self, key: str) -> Row | None: ...


TableT = TypeVar("TableT", bound=Table, contravariant=True)


class Events(Protocol):
    async def decode(self, name: str, value: bytes | None) -> Event: ...


class Runtime(Protocol[TableT]):
    """Calls handlers with records, one at a time for each reader and partition."""

    @property
    def codec(self) -> Events: ...

    def add_agent(self, reader: str, topic: str, table: TableT, handle: Handle) -> None: ...

    async def apply(self, table: TableT, key: str, step: Step, record: Record) -> None: ...
