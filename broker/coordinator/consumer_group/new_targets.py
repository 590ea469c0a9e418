"""The interruptible computation of new targets, from the group's state when it began."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Self

from broker.coordinator.consumer_group.assignors import range as range_assignor
from broker.coordinator.consumer_group.assignors import uniform
from broker.coordinator.consumer_group.assignors.spec import (
    RANGE,
    UNIFORM,
    MemberSpec,
    make_spec,
)
from broker.coordinator.consumer_group.member import Assignment
from broker.coordinator.consumer_group.records import Target
from broker.coordinator.output import CoordinatorRecord

ASSIGNORS = {UNIFORM: uniform.assign, RANGE: range_assignor.assign}

COST_AT_ONCE = 10_000
"""The members, topics and partitions touched in one `advance`: a few milliseconds."""
COST_OF_A_TOPIC = 4
"""The cost of one topic in a record, in the same unit."""


@dataclass(slots=True, kw_only=True)
class NewTargets:
    """Invariant: `records` has the records of those `targets` that differ from `before`."""

    group_id: str
    epoch: int
    assignor: str
    before: Mapping[str, Assignment]
    static_member_ids: Mapping[str, str]
    """Member ids by instance id at the start: a static member may return under another id."""
    targets: dict[str, Assignment] = field(default_factory=dict)
    records: dict[str, CoordinatorRecord] = field(default_factory=dict)
    most_partitions: int = 0
    """The largest number of partitions of one member."""
    _steps: Generator[int, None, None] | None = None

    def of(self, members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]) -> Self:
        """Begin the computation for these members and topics."""
        self._steps = self._compute(members, partition_counts)
        return self

    def advance(self) -> bool:
        """Compute for a few milliseconds; return True when done."""
        cost = 0
        for worked in self._steps or ():
            cost += worked
            if cost >= COST_AT_ONCE:
                return False
        return True

    def _compute(
        self, members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
    ) -> Generator[int, None, None]:
        spec = yield from make_spec(members, partition_counts)
        self.targets = yield from ASSIGNORS[self.assignor](spec)
        for member_id, target in self.targets.items():
            size = sum(map(len, target.values()))
            self.most_partitions = max(self.most_partitions, size)
            if self.before.get(member_id) != target:
                self.records[member_id] = Target(self.group_id, member_id, target).encoded()
            yield size + COST_OF_A_TOPIC * len(target)
