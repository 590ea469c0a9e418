"""The interruptible computation of new targets, from the group's state when it began."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Self

from broker.coordinator.consumer_group.assignors.spec import Pieces
from broker.coordinator.consumer_group.member import Assignment
from broker.coordinator.group_state.modern_group import advance
from broker.coordinator.output import CoordinatorRecord

COST_OF_A_TOPIC = 4
"""The cost of one topic in a record, in the unit of `modern_group.COST_AT_ONCE`."""

RECORD_BYTES_PER_PARTITION = 8
RECORD_BYTES_FOR_TOPICS = 1 << 17


@dataclass(slots=True, kw_only=True)
class NewTargets:
    """Invariant: `records` has the records of those `targets` that differ from `before`."""

    group_id: str
    epoch: int
    assignor: str
    before: Mapping[str, Assignment]
    encode: Callable[[str, Assignment], CoordinatorRecord]
    """Encodes the target of a member."""
    static_member_ids: Mapping[str, str] = field(default_factory=dict)
    """Member ids by instance id at the start: a static member may return under another id."""
    targets: dict[str, Assignment] = field(default_factory=dict)
    records: dict[str, CoordinatorRecord] = field(default_factory=dict)
    most_partitions: int = 0
    """The largest number of partitions of one member."""
    _steps: Generator[int, None, None] | None = None

    def of(self, assign: Pieces[dict[str, Assignment]]) -> Self:
        """Begin the computation with the steps of an assignor."""
        self._steps = self._compute(assign)
        return self

    def advance(self) -> bool:
        """Compute for a few milliseconds; return True when done."""
        return advance(self._steps or iter(()))

    def _compute(self, assign: Pieces[dict[str, Assignment]]) -> Generator[int, None, None]:
        self.targets = yield from assign
        for member_id, target in self.targets.items():
            size = sum(map(len, target.values()))
            self.most_partitions = max(self.most_partitions, size)
            if self.before.get(member_id) != target:
                self.records[member_id] = self.encode(member_id, target)
            yield size + COST_OF_A_TOPIC * len(target)


def fits_records(new: NewTargets, max_batch_bytes: int) -> bool:
    """Return True if the largest target fits into a record."""
    limit_bytes = max_batch_bytes - RECORD_BYTES_FOR_TOPICS
    return new.most_partitions * RECORD_BYTES_PER_PARTITION <= max(limit_bytes, 0)
