"""The faults of real nodes and programs: the choice of victims, the start of a fault, its end."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Protocol

from millstream.testing.broker_control import ControlError
from millstream.testing.chaos.schedule import (
    BRIDGE,
    CALLS,
    DEAF,
    FAILING_DISK,
    FULL_DISK,
    ISOLATE,
    KILL,
    MUTE,
    PARTING,
    PAUSE,
    RING,
    ROLLING,
    SLOW_DISK,
    STORM,
    TERMINATE,
    WIPED_DISK,
    Fault,
    Target,
)
from millstream.testing.faults import Faults, Rule
from millstream.testing.local_broker import LocalBroker
from millstream.testing.local_cluster import LocalCluster
from millstream.testing.node_process import NodeProcess

SLOW_WRITE_MS = 150
STORM_KILLS = 5
ONE_ID = 1
"""The number of a broker that is alone."""

# Faults that end the processes of their victims.
ENDING = {
    *(KILL, TERMINATE),
    *(FAILING_DISK, FULL_DISK),
}
DISKS = {SLOW_DISK, FAILING_DISK, FULL_DISK}

Victim = int | str
"""A node, or a program by its name."""
End = Callable[[], None]
BreakDisk = Callable[[NodeProcess, str], End]
"""Breaks a node's disk as a fault's name says; returns what ends that."""


class NotWholeError(AssertionError):
    """A cluster did not recover from a fault."""


class Program(Protocol):
    """What a program is for a fault; one that is frozen also has `pause` and `resume`."""

    def kill(self) -> object:
        """End it as a crash does."""

    def start(self) -> object:
        """Start it again."""


class OneBroker:
    """A broker that is a whole cluster, with the actions of a cluster."""

    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker
        self.broker_ids = self.node_ids = [ONE_ID]
        self.faults: Faults = broker.faults

    def node(self, _: int) -> NodeProcess:
        return self._broker.node

    def active_controller(self) -> int:
        return ONE_ID

    def kill(self, *_: int) -> None:
        self._broker.kill()

    def stop(self, *_: int) -> None:
        self._broker.stop()

    def start(self, *_: int) -> None:
        if not self._broker.node.is_running:
            self._broker.kill()  # It may have died by itself: release what is left of it.
            self._broker.start()

    def pause(self, _: int) -> None:
        self._broker.pause()

    def resume(self, _: int) -> None:
        self._broker.resume()


def break_disk(node: NodeProcess, name: str) -> End:
    """Break a node's disk by a rule of the broker."""
    what = {SLOW_DISK: "slow", FAILING_DISK: "fail", FULL_DISK: "full"}
    ms = SLOW_WRITE_MS if name == SLOW_DISK else 0
    rule = node.faults.disk(what[name], ms=ms, allow_unused=True).always()  # type: ignore[arg-type]
    return lambda: _end(rule)


def _end(rule: Rule) -> None:
    rule.end()


class Breaking:
    """Starts and ends faults. `settle` waits until all partitions are fully replicated."""

    def __init__(
        self,
        cluster: LocalCluster | OneBroker,
        source: random.Random,
        settle: Callable[[], None],
        *,
        programs: Mapping[str, Program] = MappingProxyType({}),
        break_disk: BreakDisk = break_disk,
    ) -> None:
        self._cluster = cluster
        self._source = source
        self._settle = settle
        self._programs = programs
        self._break_disk = break_disk
        self._ends: list[End] = []
        self._begin: dict[str, Callable[[list[int]], None]] = {
            KILL: lambda victims: cluster.kill(*victims),
            TERMINATE: lambda victims: cluster.stop(*victims),
            PAUSE: self._pause,
            WIPED_DISK: self._wipe,
            ROLLING: self._restart_in_turn,
            STORM: self._restart_at_random,
            ISOLATE: self._isolate,
            MUTE: self._mute,
            DEAF: self._deafen,
            BRIDGE: lambda victims: self._linked.partition(*victims[:2]),
            RING: lambda _: self._linked.partition_ring(),
            **{name: partial(self._break_disks, name) for name in DISKS},
        }

    @property
    def _linked(self) -> LocalCluster:
        assert isinstance(self._cluster, LocalCluster), "one broker has no links"
        return self._cluster

    def choose(self, fault: Fault, leader_of: Mapping[str, int]) -> list[Victim]:
        """Choose the victims from the current leaders; a fault of calls has none."""
        if (fault.name, fault.target) in CALLS:
            return []
        if fault.target in self._programs:
            return [fault.target]
        ids = self._cluster.broker_ids
        leaders = sorted(leader_of)
        leader = leader_of[self._source.choice(leaders)] if leaders else self._source.choice(ids)
        others = [one for one in ids if one != leader]
        if fault.name == BRIDGE:
            return [leader, self._source.choice(others)]
        match Target(fault.target):
            case Target.LEADER:
                return [leader]
            case Target.FOLLOWER:
                return [self._source.choice(others)]
            case Target.CONTROLLER:
                return [self._cluster.active_controller()]
            case Target.TWO:
                return sorted(self._source.sample(ids, 2))
            case Target.ALL:
                return list(ids)

    def begin(self, fault: Fault, victims: Sequence[Victim]) -> Rule | None:
        """Start a fault; some faults end before this returns. Return the rule of a fault of calls.

        Such a rule hits the next call of its API at each broker.
        """
        if (fault.name, fault.target) in CALLS:
            rule = self._arm(fault)
            self._ends.append(partial(_end, rule))
            return rule
        if fault.target in self._programs:
            program = self._programs[fault.target]
            # Only what is frozen needs these two.
            (program.kill if fault.name == KILL else program.pause)()  # type: ignore[attr-defined]
        else:
            if fault.name in PARTING:
                self._ends.append(self._linked.heal)
            self._begin[fault.name]([each for each in victims if isinstance(each, int)])
        return None

    def end(self, fault: Fault, victims: Sequence[Victim]) -> list[int]:
        """End a fault; return the nodes that died although the fault spares them."""
        if fault.target in self._programs:
            program = self._programs[fault.target]
            (program.start if fault.name == KILL else program.resume)()  # type: ignore[attr-defined]
            return []
        spared = [
            node_id
            for node_id in self._cluster.node_ids
            if node_id not in victims or fault.name not in ENDING
        ]
        pids = {node_id: self._pid(node_id) for node_id in spared}
        try:
            self.heal()
        except ControlError:  # A node that dies just now cannot say what the fault has hit.
            if pids == {node_id: self._pid(node_id) for node_id in spared}:
                raise
        restarted: list[int] = []
        if fault.name in DISKS and fault.name != SLOW_DISK:
            # A failed log directory stays offline until the next start.
            restarted = [each for each in victims if isinstance(each, int)]
            self._cluster.kill(*restarted)
        self._cluster.start()
        # One that dies just now is started, too, as another process.
        return [
            node_id
            for node_id, pid in pids.items()
            if pid is None or (node_id not in restarted and self._pid(node_id) != pid)
        ]

    def _pid(self, node_id: int) -> int | None:
        node = self._cluster.node(node_id)
        return node.pid if node.is_running else None

    def heal(self) -> None:
        """End every fault of links, disks and calls, and let frozen nodes go on."""
        ends, self._ends = self._ends, []
        for end in ends:
            end()
        for node_id in self._cluster.node_ids:
            if self._cluster.node(node_id).is_paused:
                self._cluster.resume(node_id)

    # The start of each fault.

    def _arm(self, fault: Fault) -> Rule:
        kind, options = CALLS[fault.name, fault.target]
        describe = getattr(self._cluster.faults, kind)
        rule: Rule = describe(fault.target, **options, allow_unused=True).once()
        return rule

    def _pause(self, victims: list[int]) -> None:
        for victim in victims:
            self._cluster.pause(victim)

    def _isolate(self, victims: list[int]) -> None:
        for victim in victims:
            self._linked.isolate(victim)

    def _mute(self, victims: list[int]) -> None:
        for victim in victims:
            for other in self._linked.peers(victim):
                self._linked.partition_one_way(victim, other)

    def _deafen(self, victims: list[int]) -> None:
        for victim in victims:
            for other in self._linked.peers(victim):
                self._linked.partition_one_way(other, victim)

    def _wipe(self, victims: list[int]) -> None:
        self._cluster.kill(*victims)
        for victim in victims:
            self._linked.wipe(victim)
        self._cluster.start(*victims)

    def _restart_in_turn(self, victims: list[int]) -> None:
        for victim in victims:
            self._cluster.stop(victim)
            self._cluster.start(victim)
            self._settle()

    def _restart_at_random(self, victims: list[int]) -> None:
        for _ in range(STORM_KILLS):
            some = self._source.sample(victims, self._source.randint(1, len(victims)))
            self._cluster.kill(*some)
            self._cluster.start(*some)

    def _break_disks(self, name: str, victims: list[int]) -> None:
        for victim in victims:
            self._ends.append(self._break_disk(self._cluster.node(victim), name))
