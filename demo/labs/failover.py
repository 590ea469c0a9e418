"""Walk: a broker is killed under load; others take over, and after its restart it catches up."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from demo.labs.programs import run_program
from demo.labs.steps import StepFailedError, Steps
from demo.labs.traffic import Traffic
from millstream.testing import LocalCluster

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


TOPIC = "lab"
BROKERS = 3
VICTIM = 1
ENOUGH_RECORDS = 20
TOOL_SECONDS = 60.0


class Failover:
    """The walk; `walk` raises StepFailedError at the first step that fails."""

    def __init__(self, steps: Steps, partition_count: int, replication_factor: int) -> None:
        self._steps = steps
        self._partition_count = partition_count
        self._replication_factor = replication_factor
        settings: dict[str, Any] = {
            "offsets.topic.replication.factor": min(replication_factor, BROKERS)
        }
        if replication_factor > 2:
            settings["min.insync.replicas"] = replication_factor // 2 + 1
        self._cluster = LocalCluster(brokers=BROKERS, has_links=False, is_testing=False, **settings)

    def walk(self) -> None:
        """Do all steps, and remove the cluster at the end."""
        try:
            with self._steps.step(f"start {BROKERS} nodes, each broker and controller"):
                self._cluster.start()
            self._create()
            with Traffic(self._cluster.bootstrap_servers, TOPIC, self._partition_count) as traffic:
                self._flow(traffic, range(self._partition_count), "every partition takes records")
                self._kill(traffic)
                self._restart(traffic)
                self._read_all(traffic)
        finally:
            self._cluster.close()

    def _create(self) -> None:
        count, factor = self._partition_count, self._replication_factor
        title = f"create topic {TOPIC}: {count} partitions, replication factor {factor}"
        with self._steps.step(title):
            numbers = ["--partitions", str(count), "--replication-factor", str(factor)]
            self._topics("--create", *numbers)
        with self._steps.step("every partition has a leader, and all replicas are in sync"):
            self._steps.wait_for(lambda: lacking_when_whole(self._states(), count))
        self._describe()

    def _kill(self, traffic: Traffic) -> None:
        states = self._states()
        led = sum(state.leader == VICTIM for state in states)
        served = served_without(states, VICTIM)
        traffic.forget_gaps()
        with self._steps.step(f"kill broker {VICTIM} (kill -9), the leader of {led} partitions"):
            self._cluster.kill(VICTIM)
        with self._steps.step(f"its partitions have new leaders, no ISR contains broker {VICTIM}"):
            self._steps.wait_for(lambda: lacking_without(self._states(), VICTIM))
        self._describe()
        title = (
            f"traffic continues: {len(served)} of {self._partition_count} partitions take records"
        )
        self._flow(traffic, served, title)
        gap = traffic.longest_gap_ms(served)
        self._steps.show(f"      longest time without an accepted record: {gap:.0f} ms")

    def _restart(self, traffic: Traffic) -> None:
        with self._steps.step(f"restart broker {VICTIM}"):
            self._cluster.start(VICTIM)
        with self._steps.step("all replicas are in sync again"):
            count = self._partition_count
            self._steps.wait_for(lambda: lacking_when_whole(self._states(), count))
        self._describe()
        self._flow(traffic, range(self._partition_count), "every partition takes records again")

    def _read_all(self, traffic: Traffic) -> None:
        traffic.stop_sending()
        with self._steps.step("every acknowledged record has been read"):
            self._steps.wait_for(traffic.unread)
        self._steps.show(f"      {traffic.count()} records, none lost")

    # The actions of the steps.

    def _flow(self, traffic: Traffic, partitions: "range | list[int]", title: str) -> None:
        before = dict(traffic.acknowledged)
        with self._steps.step(title):
            self._steps.wait_for(lambda: traffic.lacking(partitions, before, ENOUGH_RECORDS))

    def _describe(self) -> None:
        self._steps.show(self._topics("--describe"))

    def _states(self) -> list[PartitionState]:
        return read_description(self._topics("--describe"))

    def _topics(self, *arguments: str) -> str:
        """Run `millstream topics` on a running broker, and return its output."""
        living = [one for one in self._cluster.broker_ids if self._cluster.node(one).is_running]
        server = ",".join(self._cluster.address(one) for one in living)
        command = ["topics", "--bootstrap-server", server, "--topic", TOPIC, *arguments]
        done = run_program("broker", *command, timeout_seconds=TOOL_SECONDS)
        if done.returncode:
            raise StepFailedError((done.stdout + done.stderr).strip())
        return done.stdout.rstrip()
