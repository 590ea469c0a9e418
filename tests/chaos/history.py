"""The history of a chaos run: every operation of every client with its times and its outcome.

A *process* is one logical client: it does one operation at a time. A client that crashes is
replaced by a new one under the same process number, without its state. A *key* is a partition;
every value is sent once.

An operation has one of three outcomes. `ok`: it happened. `fail`: it did not happen. `info`:
unknown, it may even happen later. The file has one operation a line, as JSON, in the order of their
ends.
"""

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import IO, NamedTuple

Key = str
Value = int


class Kind(StrEnum):
    """The kind of an operation; a `txn` is an atomic set of sends and polls."""

    SEND = "send"
    POLL = "poll"
    TXN = "txn"
    ASSIGN = "assign"
    SUBSCRIBE = "subscribe"
    CRASH = "crash"


class Outcome(StrEnum):
    """The outcome of an operation."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Sent(NamedTuple):
    """One value that was sent; the offset is None if it is unknown."""

    key: Key
    value: Value
    offset: int | None = None


class Read(NamedTuple):
    """One value that was polled, with its offset."""

    key: Key
    offset: int
    value: Value


class Operation(NamedTuple):
    """One operation of one process.

    `keys` are those assigned after an `assign` or `subscribe`; `rebalanced` those whose position
    was reset by it, or by a rebalance during a poll.
    """

    process: int
    kind: Kind
    outcome: Outcome
    start_ms: float
    end_ms: float
    sends: tuple[Sent, ...] = ()
    reads: tuple[Read, ...] = ()
    keys: tuple[Key, ...] = ()
    rebalanced: tuple[Key, ...] = ()
    error: str = ""


def write(operation: Operation, file: IO[str]) -> None:
    """Append one operation to a history file."""
    fields = {name: value for name, value in operation._asdict().items() if value not in ((), "")}
    file.write(json.dumps(fields) + "\n")


def read(lines: Iterable[str]) -> Iterator[Operation]:
    """Read a history file."""
    for line in lines:
        fields = json.loads(line)
        yield Operation(
            fields["process"],
            Kind(fields["kind"]),
            Outcome(fields["outcome"]),
            fields["start_ms"],
            fields["end_ms"],
            tuple(Sent(*sent) for sent in fields.get("sends", ())),
            tuple(Read(*found) for found in fields.get("reads", ())),
            tuple(fields.get("keys", ())),
            tuple(fields.get("rebalanced", ())),
            fields.get("error", ""),
        )
