"""Read `millstream topics --describe`, and find partitions that are not as expected."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_PARTITION = re.compile(
    r"\tPartition: (?P<partition>\d+)\tLeader: (?P<leader>\S+)"
    r"\tReplicas: (?P<replicas>[\d,]*)\tIsr: (?P<isr>[\d,]*)"
)


class PartitionState(NamedTuple):
    """One partition; `leader` is None if it has no leader."""

    partition: int
    leader: int | None
    replicas: frozenset[int]
    isr: frozenset[int]


def read_description(text: str) -> list[PartitionState]:
    """Return the partitions in the output of the tool."""
    return [
        PartitionState(
            int(found["partition"]),
            None if found["leader"] == "none" else int(found["leader"]),
            _ids(found["replicas"]),
            _ids(found["isr"]),
        )
        for found in _PARTITION.finditer(text)
    ]


def lacking_when_whole(states: Sequence[PartitionState], count: int) -> str:
    """Return a text about partitions without a leader or with replicas out of sync; "" if none."""
    lacking = [
        state.partition for state in states if state.leader is None or state.isr != state.replicas
    ]
    if len(states) < count:
        return f"{count - len(states)} of {count} partitions do not exist"
    return _told(lacking, "have no leader or not all replicas in sync")


def lacking_without(states: Sequence[PartitionState], dead: int) -> str:
    """Return a text about partitions that still use a dead broker; "" if none.

    A partition whose only replica is on the dead broker must be described without a leader.
    """
    lacking = [
        state.partition
        for state in states
        if (
            state.leader not in state.replicas - {dead} or dead in state.isr
            if state.replicas - {dead}
            else state.leader is not None
        )
    ]
    return _told(lacking, f"still use broker {dead}")


def served_without(states: Iterable[PartitionState], dead: int) -> list[int]:
    """Return the partitions that have a replica on another broker."""
    return [state.partition for state in states if state.replicas - {dead}]


def _told(partitions: list[int], what: str) -> str:
    return f"partitions {', '.join(map(str, partitions))} {what}" if partitions else ""


def _ids(text: str) -> frozenset[int]:
    return frozenset(int(part) for part in text.split(",") if part)
