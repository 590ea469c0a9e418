"""The kinds of faults and their order in a run: pure, the same for a seed.

A fault has a name, a target, and expectations. A fault that leaves no majority has none. Otherwise
progress is expected: of all partitions if they have replicas elsewhere, and without replication of
the partitions that the fault does not touch. The target of a fault is some of the nodes, an API
whose calls it hits, or a program by its name.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple


class Target(StrEnum):
    """The victims, chosen for each fault from the replicas of a random partition."""

    LEADER = "leader"
    FOLLOWER = "follower"
    CONTROLLER = "controller"
    TWO = "two of three"
    ALL = "all"


class Fault(NamedTuple):
    """One fault, of `hold_ms`; with a majority left no key may lack progress for `limit_ms`."""

    name: str
    target: str
    leaves_majority: bool
    hold_ms: int
    limit_ms: int

    def __str__(self) -> str:
        return f"{self.name}, {self.target}"


# The end of a process is noticed at once. Silence takes the session timeout, the clients' request
# timeout, and an election, on a machine with two cores for all processes.
SEEN_MS, SILENT_MS, TOGETHER_MS = 6_000, 14_000, 4_000
ONE = (Target.LEADER, Target.FOLLOWER, Target.CONTROLLER)
KILL, TERMINATE, PAUSE = "kill -9", "SIGTERM", "SIGSTOP"
ISOLATE, MUTE, DEAF = "isolated", "heard by nobody", "hears nobody"
BRIDGE, RING = "two nodes parted", "ring, one way"
SLOW_DISK, FAILING_DISK, FULL_DISK = "slow disk", "failing disk", "full disk"
WIPED_DISK = "wiped disk"
ROLLING, STORM = "rolling restart", "restart storm"
CLOSED, LOST, LATE = "connection closed after the work", "answer lost", "answer late"

_Rule = tuple[str, Mapping[str, Any]]


def _closed(**chosen: object) -> _Rule:
    return "close", {"after": True, **chosen}


def _error(error: str, **more: object) -> tuple[str, _Rule]:
    return error + (" after the work" if more else ""), ("error", {"error": error, **more})


LATE_MS = 500
CALLS: Mapping[tuple[str, str], _Rule] = MappingProxyType(
    {
        (name, api): rule
        for api, rules in {
            "Produce": (
                (CLOSED, _closed()),
                (LOST, ("lose_answer", {})),
                (LATE, ("delay", {"ms": LATE_MS, "after": True})),
                ("throttled", ("throttle", {"ms": LATE_MS})),
                _error("NOT_LEADER_OR_FOLLOWER"),
                _error("REQUEST_TIMED_OUT", after=True),
            ),
            "Fetch": (
                (CLOSED, _closed()),
                (LATE, ("delay", {"ms": LATE_MS, "after": True})),
                _error("NOT_LEADER_OR_FOLLOWER"),
            ),
            "OffsetCommit": (
                (CLOSED, _closed()),
                (LOST, ("lose_answer", {})),
                _error("NOT_COORDINATOR"),
            ),
            "Heartbeat": (_error("REBALANCE_IN_PROGRESS"),),
            "FindCoordinator": (_error("COORDINATOR_NOT_AVAILABLE"),),
            "InitProducerId": ((CLOSED, _closed()),),
            "AddPartitionsToTxn": (_error("CONCURRENT_TRANSACTIONS"),),
            "EndTxn": ((CLOSED, _closed()), _error("COORDINATOR_LOAD_IN_PROGRESS")),
        }.items()
        for name, rule in rules
    }
)
"""The faults of calls, by name and API: the rule's kind and its other fields. Each is one that a
client meets in a cluster whose brokers restart, and that a correct client bears."""


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
CALL_FAULTS = tuple(Fault(name, api, True, SEEN_MS, SILENT_MS) for name, api in CALLS)
# The faults of one broker, which is a whole cluster.
ALONE_FAULTS = tuple(
    Fault(name, Target.ALL, False, TOGETHER_MS, 0) for name in (KILL, TERMINATE, PAUSE)
)
# A client of librdkafka or Java waits for a lost answer for half a minute, unless it is told less.
NEED_PATIENCE = {LOST}
# Faults that need a cluster with links.
PARTING = {ISOLATE, MUTE, DEAF, BRIDGE, RING}
# Without another replica a wiped disk loses records.
NEED_REPLICAS = {WIPED_DISK}
NEED_A_SHIM = {SLOW_DISK, FAILING_DISK, FULL_DISK}


def possible_faults(
    replication_factor: int, *, has_disk_faults: bool, only: Sequence[str] = ()
) -> list[Fault]:
    """Return the faults that a cluster tolerates and this machine supports.

    `only` selects faults by a part of their names, also those that the cluster does not tolerate.
    """
    left_out = set() if has_disk_faults else set(NEED_A_SHIM)
    if only:
        named = [fault for fault in ALL_FAULTS if any(part in str(fault) for part in only)]
    else:
        named = list(ALL_FAULTS)
        left_out |= NEED_REPLICAS if replication_factor < 3 else set()
    return [fault for fault in named if fault.name not in left_out]


def faults_for_a_test(
    broker_count: int,
    replication_factor: int,
    *,
    has_links: bool,
    programs: Sequence[str] = (),
    only: Sequence[str] = (),
) -> list[Fault]:
    """Return the faults of a user's test, the simplest first.

    Raise ValueError if `only` names none of them.
    """
    if broker_count == 1:
        nodes = list(ALONE_FAULTS)
    else:
        nodes = possible_faults(replication_factor, has_disk_faults=True, only=only)
    left_out = set() if has_links else {*PARTING}
    left_out |= set() if only else {*NEED_PATIENCE, STORM, ROLLING, FAILING_DISK, FULL_DISK}
    killed = [Fault(KILL, name, True, SEEN_MS, SILENT_MS) for name in programs]
    found = [
        fault
        for fault in (*CALL_FAULTS, *killed, *nodes)
        if fault.name not in left_out and (not only or any(part in str(fault) for part in only))
    ]
    if not found:
        raise ValueError(f"no fault has {' or '.join(map(repr, only))} in its name")
    return found


def shuffled(faults: list[Fault], source: random.Random) -> Iterator[Fault]:
    """Yield faults without end: each once, in random order, before any is repeated."""
    while True:
        yield from source.sample(faults, len(faults))


def expected_keys(
    fault: Fault, leader_of: dict[str, int], victims: list[int], replication_factor: int
) -> list[str]:
    """Return the partitions that must make progress; `leader_of` is from before the fault."""
    if not fault.leaves_majority:
        return []
    return [
        key
        for key, leader in sorted(leader_of.items())
        if replication_factor >= 3 or leader not in victims
    ]
