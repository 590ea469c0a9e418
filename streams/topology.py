"""The interface between a topology and its runtime: records, rows and steps.

There are two runtimes: `around_faust` (Kafka, Faust, RocksDB), and `testing` (lists, dicts and a
clock that the test moves). A topology does not depend on which one runs it.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from streams.records import Event, Origin, Row, Step


class MalformedRecordError(ValueError):
    """The record can never be handled."""


class UndeclaredTopicError(ValueError):
    """An agent reads or writes a topic that is not declared; the message names both."""


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

    def add_agent(
        self,
        reader: str,
        topic: str,
        table: TableT,
        handle: Handle,
        writes: Collection[str] = (),
    ) -> None:
        """Declare that an agent reads a topic, owns the rows of a table, and sends to `writes`."""

    async def apply(self, table: TableT, key: str, step: Step, record: Record) -> None: ...


def check_written(table: str, step: Step, declared: Collection[str]) -> None:
    """Raise UndeclaredTopicError if a step sends to a topic that no agent of its table declares."""
    for outgoing in step.outgoing:
        if outgoing.topic not in declared:
            raise UndeclaredTopicError(
                f"the topology of {table} sends to {outgoing.topic}, which its agents do not "
                "declare: name the topic in `writes` of add_agent"
            )


def check_created(agents: Mapping[str, Collection[str]], created: Collection[str]) -> None:
    """Raise UndeclaredTopicError for a topic of an agent that the program does not create.

    `agents` are the topics that each agent reads and writes, by the agent's name.
    """
    for agent, topics in agents.items():
        for topic in topics:
            if topic not in created:
                raise UndeclaredTopicError(
                    f"the agent {agent} uses the topic {topic}, which streams/topics.py does not "
                    "declare"
                )
