"""The interruptible computation of new targets, from the group's state when it began."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

from broker.coordinator.group_state.modern_group import advance
from broker.coordinator.output import CoordinatorRecord
from broker.coordinator.streams_group.member import Target
from broker.coordinator.streams_group.records import TargetAssignment
from broker.coordinator.streams_group.sticky import MemberSpec, Sticky, SubtopologySpec


@dataclass(slots=True, kw_only=True)
class NewTargets:
    """Invariant: `records` has the records of those `targets` that differ from before."""

    group_id: str
    epoch: int
    members: Mapping[str, MemberSpec]
    subtopologies: Mapping[str, SubtopologySpec]
    """Empty if the topology is not ready: then every member gets an empty target."""
    standby_count: int
    targets: Mapping[str, Target] = field(default_factory=dict)
    records: dict[str, CoordinatorRecord] = field(default_factory=dict)
    unassigned_standby_count: int = 0
    _steps: Generator[int, None, None] | None = None

    def advance(self) -> bool:
        """Compute for a few milliseconds; return True when done."""
        if self._steps is None:
            self._steps = self._compute()
        return advance(self._steps)

    def _compute(self) -> Generator[int, None, None]:
        sticky = Sticky(self.members, self.subtopologies, self.standby_count)
        yield from sticky.steps()
        self.targets = sticky.targets
        self.unassigned_standby_count = sticky.unassigned_standby_count
        for member_id, target in self.targets.items():
            if self.members[member_id].before != target:
                record = TargetAssignment(self.group_id, member_id, target)
                self.records[member_id] = record.encoded()
            yield 1 + sum(map(len, target.active.values())) + sum(map(len, target.standby.values()))
