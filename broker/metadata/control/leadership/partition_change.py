"""From a partition's wanted state to the record of the change (Kafka's PartitionChangeBuilder).

The order matters. A reassignment that can be completed is completed; the eligible leader replicas
(KIP-966) follow from the wanted in-sync set; then a leader is elected; the differences go into the
record. A record that names a leader, even the current one, starts a new leader epoch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from broker.metadata.parts.topics import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERING,
    PartitionImage,
)
from common.kafka.protocol.records.metadata import PartitionChangeRecord


class Election(Enum):
    """The kind of election."""

    ONLINE = "online"  # the current leader if it is eligible, else another in-sync replica
    PREFERRED = "preferred"  # the first replica if it is eligible
    UNCLEAN = "unclean"  # as ONLINE, else any active replica, which may lose committed records


@dataclass(slots=True)
class PartitionChange:
    """The wanted state of one partition; `None` keeps the current value."""

    partition: PartitionImage
    topic_id: bytes
    is_acceptable_leader: Callable[[int], bool]
    default_directory: Callable[[int], bytes]
    min_isr: int
    is_elr_enabled: bool
    election: Election = Election.ONLINE
    isr: Sequence[int] | None = None
    replicas: Sequence[int] | None = None
    removing: Sequence[int] | None = None
    adding: Sequence[int] | None = None
    recovery_state: int | None = None
    directories: dict[int, bytes] = field(default_factory=dict)
    unclean_shutdown: frozenset[int] = frozenset()  # replicas that may have lost durable records

    def record(self) -> PartitionChangeRecord | None:
        """Return the record of the change, None if nothing changes."""
        return _Target(self).record()


class _Target:
    """The state after the change, under construction."""

    def __init__(self, change: PartitionChange) -> None:
        partition = change.partition
        self._change = change
        self._partition = partition
        self._isr = _wanted(change.isr, partition.isr)
        self._replicas = _wanted(change.replicas, partition.replicas)
        self._removing = _wanted(change.removing, partition.removing_replicas)
        self._adding = _wanted(change.adding, partition.adding_replicas)
        self._elr = list(partition.elr)
        self._record = PartitionChangeRecord(
            topic_id=change.topic_id, partition_id=partition.partition
        )

    def record(self) -> PartitionChangeRecord | None:
        record, partition = self._record, self._partition
        self._complete_reassignment()
        self._populate_elr()
        self._elect()
        self._bump_epoch_for_reassignment()
        if record.isr is not None or not self._change.is_elr_enabled:
            # An unclean election sets the in-sync set, and no other replica is eligible then.
            self._elr = []
        record.eligible_leader_replicas = _changed(self._elr, partition.elr)
        if record.isr is None and (self._isr or self._change.is_elr_enabled):
            # The in-sync set may become empty only with eligible leader replicas.
            record.isr = _changed(self._isr, partition.isr)
        self._remember_last_leader()
        self._assign()
        return None if _is_no_op(record) else record

    def _complete_reassignment(self) -> None:
        """Complete a reassignment once all remaining and new replicas are in sync (KIP-455)."""
        if not self._removing and not self._adding:
            return
        isr = [replica for replica in self._isr if replica not in self._removing]
        replicas = [replica for replica in self._replicas if replica not in self._removing]
        if not isr or not replicas or not set(replicas) <= set(isr):
            return
        self._isr, self._replicas = isr, replicas
        self._removing, self._adding = [], []

    def _populate_elr(self) -> None:
        """Make replicas that leave a small in-sync set eligible: they lack no committed record."""
        if not self._change.is_elr_enabled:
            return
        if len(self._isr) >= self._change.min_isr:
            self._elr = []
            return
        candidates = dict.fromkeys([*self._elr, *self._partition.isr])
        self._elr = [
            replica
            for replica in candidates
            if replica in self._replicas
            and replica not in self._isr
            and replica not in self._change.unclean_shutdown
        ]

    # --- election ---

    def _elect(self) -> None:
        leader, is_unclean = self._choose_leader()
        if leader == self._partition.leader:
            return
        if leader in self._elr:
            self._isr = [leader]
            self._elr.remove(leader)
        self._record.leader = leader
        if is_unclean:
            self._record.isr = [leader]
            if self._partition.leader_recovery_state != RECOVERING:
                self._record.leader_recovery_state = RECOVERING

    def _choose_leader(self) -> tuple[int, bool]:
        """Return the leader, and True if it may lack committed records."""
        current = self._partition.leader
        candidates = [current, *self._replicas]
        if self._change.election is Election.PREFERRED:
            candidates = [self._replicas[0], *candidates]
        for candidate in candidates:
            if self._can_lead(candidate):
                return candidate, False
        if self._can_elect_last_known_leader():
            return self._partition.last_known_elr[0], True
        if self._change.election is Election.UNCLEAN:
            for candidate in self._replicas:
                if self._change.is_acceptable_leader(candidate):
                    return candidate, True
        return NO_LEADER, False

    def _can_lead(self, replica: int) -> bool:
        is_in_sync = replica in self._isr or (not self._isr and replica in self._elr)
        return is_in_sync and self._change.is_acceptable_leader(replica)

    def _can_elect_last_known_leader(self) -> bool:
        last_known = self._partition.last_known_elr
        return (
            self._change.is_elr_enabled
            and not self._elr
            and not self._isr
            and len(last_known) == 1
            and self._change.is_acceptable_leader(last_known[0])
        )

    def _bump_epoch_for_reassignment(self) -> None:
        is_leader_named = self._record.leader != NO_LEADER_CHANGE
        if not is_leader_named and not set(self._partition.replicas) <= set(self._replicas):
            # A new leader epoch fences the removed replica, which would otherwise continue to
            # fetch.
            self._record.leader = self._partition.leader

    # --- the rest of the record ---

    def _remember_last_leader(self) -> None:
        record, partition = self._record, self._partition
        if not self._change.is_elr_enabled:
            record.last_known_elr = _changed([], partition.last_known_elr)
            return
        has_leader = record.leader >= 0 or (
            partition.leader != NO_LEADER and record.leader != NO_LEADER
        )
        if record.isr == [] and partition.leader in self._replicas:
            record.last_known_elr = _changed([partition.leader], partition.last_known_elr)
        elif has_leader:
            record.last_known_elr = _changed([], partition.last_known_elr)

    def _assign(self) -> None:
        record, partition, change = self._record, self._partition, self._change
        current = dict(zip(partition.replicas, partition.directories, strict=False))
        directories = current | change.directories
        wanted = [
            directories[replica] if replica in directories else change.default_directory(replica)
            for replica in self._replicas
        ]
        record.directories = _changed(wanted, partition.directories)
        record.replicas = _changed(self._replicas, partition.replicas)
        record.removing_replicas = _changed(self._removing, partition.removing_replicas)
        record.adding_replicas = _changed(self._adding, partition.adding_replicas)
        if change.recovery_state not in {None, partition.leader_recovery_state}:
            assert change.recovery_state is not None
            record.leader_recovery_state = change.recovery_state


def _wanted(wanted: Sequence[int] | None, current: Sequence[int]) -> list[int]:
    return list(current if wanted is None else wanted)


def _changed(wanted: list, current: Sequence) -> list | None:  # type: ignore[type-arg]
    return None if tuple(wanted) == tuple(current) else wanted


def _is_no_op(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == NO_LEADER_CHANGE
        and record.leader_recovery_state == NO_RECOVERY_CHANGE
        and record.isr is None
        and record.replicas is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.directories is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
    )
