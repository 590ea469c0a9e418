"""A seeded history of a streams group: threads of processes, coordinator crashes, lost answers.

A thread runs the tasks that it has: it commits an offset of a source partition of an active task.
Answers are lost. Threads crash, stop sending heartbeats, leave, and come with the same process as
others or with a new one; the topic gets partitions and its internal topics too; the number of
standby tasks changes; the coordinator is killed at any time, before or after the commit of its
records, and another one is loaded from the log.

Checked after every event, by what the *threads* have and not by the coordinator's state:

- Two threads that are members never have the same task as active, and no process has a task twice.
- The epochs of the group never decrease.
- An accepted commit comes from a member that has the task.
- The group's own invariants hold (`StreamsGroup.check`), and the log equals the shard's state.

At the end the faults stop, every task must be active in exactly one thread, and have its standbys.
"""

import random
from dataclasses import dataclass, field

from broker.coordinator.group.shard import GroupShard
from broker.coordinator.streams_group.streams_group import StreamsGroup
from common.kafka.errors import ErrorCode
from tests.lib.group_scenario import GROUP
from tests.lib.streams_group_scenario import StreamsScenario, Task, Thread, tasks_of
from tests.sim.consumer_group_world import BEGIN_ANEW, CoordinatorLostError

MOST_THREADS = 6
PROCESSES = 4
MOST_PARTITIONS = 6
SOURCES = {"0": "orders", "1": "by-key"}


@dataclass
class SimulatedThread(Thread):
    """A thread that gives tasks up before it takes new ones."""

    wanted: tuple[frozenset[Task], frozenset[Task]] | None = None
    is_alive: bool = True

    def begin_anew(self) -> None:
        self.member_epoch, self.wanted = 0, None
        self.active = self.standby = frozenset()

    def live(self, *, is_answer_lost: bool) -> None:
        """Send one heartbeat and, if the answer arrives, act on it."""
        world = self.scenario
        request = self.request()
        if request.member_epoch > 0 and world.random.random() < 0.1:
            world.late_heartbeats.append((self, request))
        answer = self.ask(request)
        if world.random.random() < 0.7:
            world.create(answer)
        if is_answer_lost:
            return
        response = answer.response
        code = ErrorCode(response.error_code)
        if code in BEGIN_ANEW:
            self.begin_anew()
            return
        assert code is ErrorCode.NONE, (code, response.error_message)
        assert self.member_epoch <= response.member_epoch, "a member's epoch goes back"
        self.member_epoch = response.member_epoch
        if response.active_tasks is not None:
            self.wanted = tasks_of(response.active_tasks), tasks_of(response.standby_tasks)
        if self.wanted is not None:
            kept = self.active & self.wanted[0], self.standby & self.wanted[1]
            has_to_give_up = kept != (self.active, self.standby)
            self.active, self.standby = kept if has_to_give_up else self.wanted


@dataclass
class StreamsGroupWorld(StreamsScenario):
    """A group, its threads, and the faults."""

    group_epoch: int = 0
    next_name: int = 0
    late_heartbeats: list = field(default_factory=list)
    is_doomed: bool = False
    read_count: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.random = random.Random(self.seed)
        self.shard = self.new_shard()
        self.standby_shard = self.new_shard()
        self.topics(orders=self.random.randint(1, 3))
        for _ in range(self.random.randint(1, 4)):
            self.come()

    def take(self, output):
        if self.is_doomed:
            self.is_doomed = False
            self.reload()
            raise CoordinatorLostError
        return super().take(output)

    @property
    def living(self) -> list[SimulatedThread]:
        return [thread for thread in self.threads if thread.is_alive]

    def members_now(self) -> list[SimulatedThread]:
        """The living threads whose member epoch the coordinator accepts."""
        group = self.streams_group
        if group is None:
            return []
        return [
            each
            for each in self.living
            if each.member_id in group.members
            and each.member_epoch
            in (
                group.members[each.member_id].member_epoch,
                group.members[each.member_id].current.previous_member_epoch,
            )
        ]

    # Events.

    def run(self, event_count: int) -> None:
        events = [
            (self.beat_one, 45), (self.commit_one, 20), (self.pass_time, 12), (self.reload, 5),
            (self.lose_coordinator, 6), (self.crash_one, 3), (self.leave_one, 3), (self.grow, 3),
            (self.heartbeat_late, 4), (self.come, 4), (self.restart_one, 3), (self.change, 2),
        ]  # fmt: skip
        choices, weights = zip(*events, strict=True)
        for _ in range(event_count):
            try:
                self.random.choices(choices, weights)[0]()
            except CoordinatorLostError:
                pass
            self.check()
        self.come_to_rest()
        self.grow()
        self.come_to_rest()

    def beat_one(self) -> None:
        if self.living:
            self.random.choice(self.living).live(is_answer_lost=self.random.random() < 0.15)

    def commit_one(self) -> None:
        running = [thread for thread in self.living if thread.active and thread.member_epoch > 0]
        if not running:
            return
        thread = self.random.choice(running)
        task = self.random.choice(sorted(thread.active))
        code = thread.commit(SOURCES[task[0]], task[1])
        if code is ErrorCode.NONE:
            holders = [each for each in self.members_now() if task in each.active]
            assert holders in ([], [thread]), "a commit of one that does not have the task"
        else:
            assert code in {ErrorCode.STALE_MEMBER_EPOCH, *BEGIN_ANEW}, code

    def pass_time(self) -> None:
        self.advance(self.random.choice([10, 500, 1_000, 3_000, 5_000, 20_000, 46_000]))

    def lose_coordinator(self) -> None:
        """Crash the coordinator in the next request, before commit and answer."""
        self.is_doomed = True
        try:
            self.random.choice([self.beat_one, self.commit_one, self.leave_one])()
        finally:
            self.is_doomed = False

    def crash_one(self) -> None:
        if len(self.living) > 1:
            thread = self.random.choice(self.living)
            thread.is_alive = False
            thread.begin_anew()

    def leave_one(self) -> None:
        if len(self.living) > 1:
            thread = self.random.choice(self.living)
            thread.is_alive = False
            thread.leave()

    def come(self) -> None:
        if len(self.living) < MOST_THREADS:
            self.next_name += 1
            process = f"p{self.random.randrange(PROCESSES)}"
            self.threads.append(SimulatedThread(self, f"t{self.next_name}", process))

    def restart_one(self) -> None:
        """Restart a thread as a member of the same name in another process."""
        if self.living:
            thread = self.random.choice(self.living)
            thread.begin_anew()
            thread.process_id = f"p{self.random.randrange(PROCESSES)}"

    def heartbeat_late(self) -> None:
        """Deliver a duplicate of a heartbeat with an old member epoch."""
        for thread, request in self.late_heartbeats:
            if request.member_epoch < thread.member_epoch:
                self.late_heartbeats.remove((thread, request))
                thread.ask(request)
                return

    def grow(self) -> None:
        """Add a partition to the source, and to the internal topics that exist."""
        by_name = self.image.topics.by_name
        count = len(by_name["orders"].partitions) + 1
        if count <= MOST_PARTITIONS:
            internal = [name for name in ("by-key", "counts") if name in by_name]
            self.topics(orders=count, **dict.fromkeys(internal, count))

    def change(self) -> None:
        self.set_group(num_standby_replicas=str(self.random.randint(0, 2)))

    # Invariants.

    def check(self) -> None:
        group = self.streams_group
        if group is not None:
            assert group.group_epoch >= self.group_epoch, "the group's epoch goes back"
            self.group_epoch = group.group_epoch
            known = self.read_along().state.of(StreamsGroup)[GROUP]
            assert (known.members, known.targets) == (group.members, group.targets)
            assert (known.topology, known.group_epoch) == (group.topology, group.group_epoch)
        active: dict[Task, SimulatedThread] = {}
        in_process: dict[tuple[str, Task], SimulatedThread] = {}
        for thread in self.members_now():
            for task in thread.active:
                assert task not in active, (task, active[task], thread)
                active[task] = thread
            for task in (*thread.active, *thread.standby):
                place = thread.process_id, task
                assert place not in in_process, (place, in_process[place], thread)
                in_process[place] = thread

    def read_along(self) -> GroupShard:
        """Return a standby shard that has replayed the whole log."""
        for key, value in self.log[self.read_count :]:
            self.standby_shard.replay(key, value)
        self.read_count = len(self.log)
        return self.standby_shard

    def come_to_rest(self) -> None:
        """Check that the group becomes stable without faults."""
        for _ in range(120):
            for thread in self.living:
                thread.live(is_answer_lost=False)
            self.check()
            self.advance(1_000)
            if self.is_at_rest():
                return
        raise AssertionError(f"no rest: {self.streams_group} {self.living}")

    def is_at_rest(self) -> bool:
        group = self.streams_group
        if group is None or group.state.value != "Stable":
            return False
        count = len(self.image.topics.by_name["orders"].partitions)
        active = [task for thread in self.living for task in thread.active]
        standby = [task for thread in self.living for task in thread.standby]
        process_count = len({thread.process_id for thread in self.living})
        wanted = int(group.assignment_configs["num.standby.replicas"])
        return (
            len(group.members) == len(self.living)
            and sorted(active) == [(name, n) for name in ("0", "1") for n in range(count)]
            and len(standby) == count * min(wanted, process_count - 1)
        )
