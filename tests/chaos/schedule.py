"""Which faults there are, and in which order a run has them: pure, the same for a seed.

A fault is a name, a target, and what may be expected meanwhile. Nobody expects anything of a fault
that leaves no majority. Otherwise every partition goes on: all of them when they have replicas
elsewhere, and without replication those that the fault does not touch.
"""

import random
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple


class Target(StrEnum):
    """Who suffers; chosen anew each time, for a partition chosen anew."""

    LEADER = "leader"
    FOLLOWER = "follower"
    CONTROLLER = "controller"
    TWO = "two of three"
    ALL = "all"


class Fault(NamedTuple):
    """One fault. Held for so long; a majority that is left must not be silent for so long."""

    name: str
    target: Target
    leaves_majority: bool
    hold_ms: int
    limit_ms: int

    def __str__(self) -> str:
        return f"{self.name}, {self.target}"


# A process that is gone is seen at once. What falls silent costs the session, the clients' wait for
# an answer, and an election, on a machine where all of this shares two cores.
SEEN_MS, SILENT_MS, TOGETHER_MS = 6_000, 14_000, 4_000
ONE = (Target.LEADER, Target.FOLLOWER, Target.CONTROLLER)
KILL, TERMINATE, PAUSE = "kill -9", "SIGTERM", "SIGSTOP"
ISOLATE, MUTE, DEAF = "isolated", "heard by nobody", "hears nobody"
BRIDGE, RING = "two nodes parted", "ring, one way"
SLOW_DISK, FAILING_DISK, FULL_DISK = "slow disk", "failing disk", "full disk"
WIPED_DISK = "wiped disk"
ROLLING, STORM = "rolling restart", "restart storm"


def _faults() -> Iterator[Fault]:
    for target in ONE:
        yield Fault(KILL, target, True, SEEN_MS, SEEN_MS)
        yield Fault(TERMINATE, target, True, SEEN_MS, SEEN_MS)
        for name in (PAUSE, ISOLATE, MUTE, DEAF, SLOW_DISK, FAILING_DISK):
            yield Fault(name, target, True, SILENT_MS, SILENT_MS)
        yield Fault(WIPED_DISK, target, True, SEEN_MS, SEEN_MS)
    yield Fault(FULL_DISK, Target.LEADER, True, SILENT_MS, SILENT_MS)
    yield Fault(BRIDGE, Target.LEADER, True, SILENT_MS, SILENT_MS)
    for target in (Target.TWO, Target.ALL):
        yield Fault(KILL, target, False, TOGETHER_MS, 0)
        yield Fault(TERMINATE, target, False, TOGETHER_MS, 0)
        yield Fault(PAUSE, target, False, TOGETHER_MS, 0)
    yield Fault(RING, Target.ALL, False, TOGETHER_MS, 0)
    yield Fault(STORM, Target.ALL, False, TOGETHER_MS, 0)
    yield Fault(ROLLING, Target.ALL, True, 0, SEEN_MS)


ALL_FAULTS = tuple(_faults())
# Without another replica what is wiped is gone.
NEED_REPLICAS = {WIPED_DISK}
NEED_A_SHIM = {SLOW_DISK, FAILING_DISK, FULL_DISK}


def possible_faults(
    replication_factor: int, *, has_disk_faults: bool, only: Sequence[str] = ()
) -> list[Fault]:
    """Give the faults a cluster can stand, with what this machine has.

    `only` names some by a part of their names, then even one that the cluster cannot stand.
    """
    left_out = set() if has_disk_faults else set(NEED_A_SHIM)
    if only:
        named = [fault for fault in ALL_FAULTS if any(part in str(fault) for part in only)]
    else:
        named = list(ALL_FAULTS)
        left_out |= NEED_REPLICAS if replication_factor < 3 else set()
    return [fault for fault in named if fault.name not in left_out]


def shuffled(faults: list[Fault], source: random.Random) -> Iterator[Fault]:
    """Give faults for ever: each comes once before any comes again."""
    while True:
        yield from source.sample(faults, len(faults))


def expected_keys(
    fault: Fault, leader_of: dict[str, int], victims: list[int], replication_factor: int
) -> list[str]:
    """Give the partitions that must go on: `leader_of` is as it was when the fault began."""
    if not fault.leaves_majority:
        return []
    return [
        key
        for key, leader in sorted(leader_of.items())
        if replication_factor >= 3 or leader not in victims
    ]
