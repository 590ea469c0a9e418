"""The assignor `sticky` (KIP-1071): as few tasks move as balance allows.

Active tasks come first: each stays with the member that had it, goes to a member that had it as a
standby, or to the least loaded process, in this order, and no member gets more than its share.
Then the standby tasks, never in a process that already has the task: with the member that had it as
active, that had it as a standby, or in the least loaded process. What does not fit is left out.

Load is the number of tasks of a process for each of its members, which are its threads. The share
of the members that are not full yet shrinks as others fill. All choices are by order of ids, so
that equal inputs give equal outputs; Kafka's own choose among equals at random.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from broker.coordinator.streams_group.member import Target

Task = tuple[str, int]
"""A subtopology id and a partition."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member, and its target so far."""

    process_id: str
    before: Target


@dataclass(frozen=True, slots=True)
class SubtopologySpec:
    """The tasks of a subtopology."""

    task_count: int
    is_stateful: bool


@dataclass(slots=True)
class _Process:
    name: str
    counts: dict[str, int] = field(default_factory=dict)  # of tasks, by member id
    tasks: set[Task] = field(default_factory=set)
    task_count: int = 0
    _by_count: list[tuple[int, str]] = field(default_factory=list)
    """A heap of the members; entries with an old count are skipped."""

    def count_task(self, member_id: str, added: int) -> None:
        """Add to the tasks of a member; 0 adds the member."""
        self.task_count += added
        self.counts[member_id] = self.counts.get(member_id, 0) + added
        heappush(self._by_count, (self.counts[member_id], member_id))

    @property
    def load(self) -> float:
        return self.task_count / len(self.counts)

    def least_loaded_member(self) -> str:
        while self._by_count[0][0] != self.counts[self._by_count[0][1]]:
            heappop(self._by_count)
        return self._by_count[0][1]


@dataclass(slots=True)
class _Share:
    """The most tasks of a member, from those that are left and the members that are not full."""

    left: int
    member_count: int

    @property
    def limit(self) -> int:
        return -(-self.left // self.member_count) if self.member_count else 0

    def note(self, task_count: int) -> None:
        """Take out a member that has just reached its share."""
        if task_count == self.limit:
            self.member_count -= 1
            self.left -= task_count


class Sticky:
    """One computation; `targets` is complete at the end of `steps`."""

    def __init__(
        self,
        members: Mapping[str, MemberSpec],
        subtopologies: Mapping[str, SubtopologySpec],
        standby_count: int,
    ) -> None:
        self.targets: dict[str, Target] = {}
        self.unassigned_standby_count = 0
        self._members = members
        self._subtopologies = subtopologies
        self._standby_count = standby_count
        self._processes: dict[str, _Process] = {}
        self._active_before: dict[Task, str] = {}
        self._standby_before: dict[Task, list[str]] = {}
        self._active: dict[Task, str] = {}
        self._standby: dict[Task, list[str]] = {}
        for member_id, spec in sorted(members.items()):
            process = self._processes.setdefault(spec.process_id, _Process(spec.process_id))
            process.count_task(member_id, 0)
        active = sum(each.task_count for each in subtopologies.values())
        stateful = sum(each.task_count for each in subtopologies.values() if each.is_stateful)
        self._active_share = _Share(active, len(members))
        self._share = _Share(active + standby_count * stateful, len(members))

    def steps(self) -> Generator[int, None, None]:
        """Compute; yield the cost of each piece, about one for each task."""
        for member_id, spec in sorted(self._members.items()):
            cost = 1
            for task in _tasks_in(spec.before.active):
                self._active_before[task] = member_id
                cost += 1
            for task in _tasks_in(spec.before.standby):
                self._standby_before.setdefault(task, []).append(member_id)
                cost += 1
            yield cost
        if self._members:
            yield from self._assign_active()
            yield from self._assign_standbys()
        yield from self._collect()

    def _tasks(self, *, only_stateful: bool = False) -> list[Task]:
        return [
            (subtopology_id, partition)
            for subtopology_id, each in sorted(self._subtopologies.items())
            if each.is_stateful or not only_stateful
            for partition in range(each.task_count)
        ]

    def _assign_active(self) -> Generator[int, None, None]:
        left: list[Task] = []
        by_partition = sorted(self._tasks(), key=lambda task: (task[1], task[0]))
        for task in by_partition:
            if not self._keep_active(task, self._active_before.get(task)):
                left.append(task)
            yield 1
        still_left: list[Task] = []
        for task in left:
            if not self._keep_active(task, self._least_loaded(self._standby_before.get(task, ()))):
                still_left.append(task)
            yield 1
        by_load = self._by_load()
        for task in sorted(still_left):
            process = heappop(by_load)[2]
            self._add_active(task, process.least_loaded_member())
            heappush(by_load, self._entry(process))
            yield 1

    def _keep_active(self, task: Task, member_id: str | None) -> bool:
        if member_id is None:
            return False
        process = self._process_of(member_id)
        if process.counts[member_id] >= self._active_share.limit:
            return False
        self._add_active(task, member_id)
        return True

    def _assign_standbys(self) -> Generator[int, None, None]:
        if not self._standby_count:
            return
        left: list[tuple[Task, int]] = []
        tasks = self._tasks(only_stateful=True)
        for task in sorted(tasks, key=lambda task: (task[1], task[0]), reverse=True):
            for number in range(self._standby_count):
                if not self._keep_standby(task):
                    left.append((task, self._standby_count - number))
                    break
            yield self._standby_count
        by_load = self._by_load()
        for task, count in sorted(left, reverse=True):
            cost = self._add_standbys(task, count, by_load)
            yield cost

    def _keep_standby(self, task: Task) -> bool:
        before = self._active_before.get(task)
        for member_id in (before, self._least_loaded(self._standby_before.get(task, ()), task)):
            if member_id is None or task in self._process_of(member_id).tasks:
                continue
            if self._process_of(member_id).counts[member_id] < self._share.limit:
                self._add_standby(task, member_id)
                return True
        return False

    def _add_standbys(
        self, task: Task, count: int, by_load: list[tuple[float, str, _Process]]
    ) -> int:
        """Add standby tasks in the least loaded processes without the task; return the cost."""
        passed_over: list[tuple[float, str, _Process]] = []
        cost = 0
        while count and by_load:
            entry = heappop(by_load)
            process = entry[2]
            cost += 1
            if task not in process.tasks:
                self._add_standby(task, process.least_loaded_member())
                count -= 1
            passed_over.append(entry)
        for _, _, process in passed_over:
            heappush(by_load, self._entry(process))
        self.unassigned_standby_count += count
        return cost

    def _least_loaded(
        self, member_ids: "list[str] | tuple[()]", task: Task | None = None
    ) -> str | None:
        """Return the member in the least loaded process, of those that do not have the task."""
        free = [each for each in member_ids if task not in self._process_of(each).tasks]

        def load(member_id: str) -> tuple[float, int, str]:
            process = self._process_of(member_id)
            return process.load, process.counts[member_id], member_id

        return min(free, key=load, default=None)

    def _process_of(self, member_id: str) -> _Process:
        return self._processes[self._members[member_id].process_id]

    def _by_load(self) -> list[tuple[float, str, _Process]]:
        heap = [self._entry(process) for process in self._processes.values()]
        heapify(heap)
        return heap

    @staticmethod
    def _entry(process: _Process) -> tuple[float, str, _Process]:
        return process.load, process.name, process

    def _add_active(self, task: Task, member_id: str) -> None:
        self._active[task] = member_id
        self._active_share.note(self._add(task, member_id))

    def _add_standby(self, task: Task, member_id: str) -> None:
        self._standby.setdefault(task, []).append(member_id)
        self._add(task, member_id)

    def _add(self, task: Task, member_id: str) -> int:
        process = self._process_of(member_id)
        process.tasks.add(task)
        process.count_task(member_id, 1)
        self._share.note(process.counts[member_id])
        return process.counts[member_id]

    def _collect(self) -> Generator[int, None, None]:
        active: dict[str, dict[str, set[int]]] = {}
        standby: dict[str, dict[str, set[int]]] = {}
        for (subtopology_id, partition), member_id in self._active.items():
            active.setdefault(member_id, {}).setdefault(subtopology_id, set()).add(partition)
        yield len(self._active)
        for (subtopology_id, partition), member_ids in self._standby.items():
            for member_id in member_ids:
                standby.setdefault(member_id, {}).setdefault(subtopology_id, set()).add(partition)
        yield len(self._standby)
        for member_id in self._members:
            self.targets[member_id] = Target(
                _frozen(active.get(member_id, {})), _frozen(standby.get(member_id, {}))
            )
        yield len(self._members)


def _tasks_in(tasks: Mapping[str, frozenset[int]]) -> list[Task]:
    return [(name, partition) for name, each in tasks.items() for partition in sorted(each)]


def _frozen(tasks: Mapping[str, set[int]]) -> dict[str, frozenset[int]]:
    return {name: frozenset(partitions) for name, partitions in sorted(tasks.items())}
