"""The history of a chaos run: what every client did, when, and what came of it.

A *process* is one logical client: it does one operation at a time. A client that crashes goes on
as another one under the same process number, which remembers nothing. A *key* is a partition; every
value that is ever sent is sent once.

An operation ends in one of three ways. `ok`: it happened. `fail`: it certainly did not. `info`:
nobody knows, it may even happen later. The file has one operation a line, as JSON, in the order in
which they ended.
"""

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import IO, NamedTuple

Key = str
Value = int


class Kind(StrEnum):
    """What a process did; a `txn` is sends and polls that happen together or not at all."""

    SEND = "send"
    POLL = "poll"
    TXN = "txn"
    ASSIGN = "assign"
    SUBSCRIBE = "subscribe"
    CRASH = "crash"


class Outcome(StrEnum):
    """Whether it happened."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Sent(NamedTuple):
    """One value that was sent; the offset is None where it was not told."""

    key: Key
    value: Value
    offset: int | None = None


class Read(NamedTuple):
    """One value that was polled, and where it stood."""

    key: Key
    offset: int
    value: Value


class Operation(NamedTuple):
    """One operation of one process.

    `keys` are those an `assign` or `subscribe` leaves assigned; `rebalanced` those whose position
    was set anew by it, or by a rebalance in the course of a poll.
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
