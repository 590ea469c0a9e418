"""The faults of a real cluster: the choice of victims, the start of a fault, and its end."""

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from millstream.testing import LocalCluster
from tests.chaos import schedule
from tests.chaos.history import Key
from tests.chaos.schedule import Fault, Target

SHIM = Path(__file__).with_name("disk_faults.c")
# Relative to a node's data folder, where the shim looks for it.
SWITCH = Path("../disk-fault")
SLOW_WRITE_MS = 150
EIO, ENOSPC = 5, 28
STORM_KILLS = 5
DISK_ORDERS = {
    schedule.SLOW_DISK: f"slow {SLOW_WRITE_MS}",
    schedule.FAILING_DISK: f"fail {EIO}",
    schedule.FULL_DISK: f"fail {ENOSPC}",
}

# Faults that need a cluster with links.
PARTING = {schedule.ISOLATE, schedule.MUTE, schedule.DEAF, schedule.BRIDGE, schedule.RING}
# Faults that end the processes of their victims.
ENDING = {schedule.KILL, schedule.TERMINATE, schedule.FAILING_DISK, schedule.FULL_DISK}


def build_shim(folder: Path) -> Path | None:
    """Compile the library preloaded into the nodes; return None if there is no compiler."""
    if shutil.which("gcc") is None:
        return None
    built = folder / "disk_faults.so"
    command = ["gcc", "-O1", "-shared", "-fPIC", "-o", str(built), str(SHIM), "-ldl"]
    subprocess.run(command, check=True)
    return built


class Faults:
    """Starts and ends faults. `settle` waits until all partitions are fully replicated."""

    def __init__(
        self,
        cluster: LocalCluster,
        source: random.Random,
        settle: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._source = source
        self._settle = settle
        self._begin: dict[str, Callable[[list[int]], None]] = {
            schedule.KILL: lambda victims: cluster.kill(*victims),
            schedule.TERMINATE: lambda victims: cluster.stop(*victims),
            schedule.PAUSE: self._pause,
            schedule.ISOLATE: self._isolate,
            schedule.MUTE: self._mute,
            schedule.DEAF: self._deafen,
            schedule.BRIDGE: lambda victims: cluster.partition(*victims[:2]),
            schedule.RING: lambda _: cluster.partition_ring(),
            schedule.WIPED_DISK: self._wipe,
            schedule.ROLLING: self._restart_in_turn,
            schedule.STORM: self._restart_at_random,
            **{name: self._order_disk(order) for name, order in DISK_ORDERS.items()},
        }

    def choose(self, fault: Fault, leader_of: dict[Key, int]) -> list[int]:
        """Choose the victims from the current leaders."""
        ids = self._cluster.broker_ids
        leader = leader_of[self._source.choice(sorted(leader_of))]
        others = [one for one in ids if one != leader]
        if fault.name == schedule.BRIDGE:
            return [leader, self._source.choice(others)]
        match fault.target:
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

    def begin(self, fault: Fault, victims: list[int]) -> None:
        """Start a fault; some faults end before this returns."""
        self._begin[fault.name](victims)

    def end(self, fault: Fault, victims: list[int]) -> list[int]:
        """End a fault on all nodes; return the nodes that died although the fault spares them."""
        died = [
            node_id
            for node_id in self._cluster.node_ids
            if not self._cluster.node(node_id).is_running
            and (node_id not in victims or fault.name not in ENDING)
        ]
        if fault.name in PARTING:
            self._cluster.heal()
        for node_id in self._cluster.node_ids:
            node = self._cluster.node(node_id)
            (node.data_folder / SWITCH).unlink(missing_ok=True)
            if node.is_paused:
                node.resume()
        if fault.name in DISK_ORDERS and fault.name != schedule.SLOW_DISK:
            # A failed log directory stays offline until the next start.
            self._cluster.kill(*victims)
        self._cluster.start()
        return died

    # The start of each fault.

    def _pause(self, victims: list[int]) -> None:
        for victim in victims:
            self._cluster.pause(victim)

    def _isolate(self, victims: list[int]) -> None:
        for victim in victims:
            self._cluster.isolate(victim)

    def _mute(self, victims: list[int]) -> None:
        for victim in victims:
            for other in self._cluster.peers(victim):
                self._cluster.partition_one_way(victim, other)

    def _deafen(self, victims: list[int]) -> None:
        for victim in victims:
            for other in self._cluster.peers(victim):
                self._cluster.partition_one_way(other, victim)

    def _wipe(self, victims: list[int]) -> None:
        self._cluster.kill(*victims)
        for victim in victims:
            self._cluster.wipe(victim)
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

    def _order_disk(self, order: str) -> Callable[[list[int]], None]:
        def begin(victims: list[int]) -> None:
            for victim in victims:
                (self._cluster.node(victim).data_folder / SWITCH).write_text(order)

        return begin
