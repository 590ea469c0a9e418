"""What `millrace topics --describe` says of a topic's partitions, and what of it is not yet so."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_PARTITION = re.compile(
    r"\tPartition: (?P<partition>\d+)\tLeader: (?P<leader>\S+)"
    r"\tReplicas: (?P<replicas>[\d,]*)\tIsr: (?P<isr>[\d,]*)"
)


class PartitionState(NamedTuple):
    """One partition; no leader is None."""

    partition: int
    leader: int | None
    replicas: frozenset[int]
    isr: frozenset[int]


def read_description(text: str) -> list[PartitionState]:
    """Read what the tool has printed."""
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
    """Say which of so many partitions have no leader, or not all replicas in sync; "" is none."""
    lacking = [
        state.partition for state in states if state.leader is None or state.isr != state.replicas
    ]
    if len(states) < count:
        return f"{count - len(states)} of {count} partitions are not there"
    return _told(lacking, "have no leader or not all replicas in sync")


def lacking_without(states: Sequence[PartitionState], dead: int) -> str:
    """Say which partitions still count on a broker that is dead; "" is none.

    Where it had the only replica there is nobody to lead, and that is to be said.
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
    return _told(lacking, f"still count on broker {dead}")


def served_without(states: Iterable[PartitionState], dead: int) -> list[int]:
    """Give the partitions that have a replica elsewhere."""
    return [state.partition for state in states if state.replicas - {dead}]


def _told(partitions: list[int], what: str) -> str:
    return f"partitions {', '.join(map(str, partitions))} {what}" if partitions else ""


def _ids(text: str) -> frozenset[int]:
    return frozenset(int(part) for part in text.split(",") if part)
