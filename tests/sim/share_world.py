"""A seeded history of a share group: members, leaders of partitions, and share coordinators.

The share-partitions are those of the shell (`LedSharePartition`, `StatePersister`, and the table
`SharePartitions`), on virtual time and a network that loses, repeats and delays. Members fetch from
the node that they take for the leader, acknowledge some of what they got in all ways, renew locks,
forget records until their lock ends, wait for records, lose their connections, and leave a node.
Leaders change: the old one goes on until it hears of it. Share coordinators crash. Partitions grow,
with aborted transactions and holes, and records are deleted.

Checked after every event:

- No record is with two members of one leader at once.
- A record that was accepted, with success, is not delivered by that leader or a later one.
- What is below a start offset was finished: accepted or rejected by somebody, deleted, without a
  record, or delivered as often as allowed. So no record is lost.
- The delivery count of a record grows by one with each delivery of one leader, up to the limit.
- Nothing without a record is delivered.
- A start offset and an end offset never fall, and the ranges in flight lie side by side.
- No fetch waits while there are records for it (`WaitingMembers`).

At the end the faults stop, the members accept everything, and every record must be finished.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

from broker.coordinator.share_state.state import SharePartitionKey
from broker.model import TopicPartition
from broker.server.network.later import Later
from broker.server.peers import Peers
from broker.server.share.led_share_partition import LedParts, LedSharePartition, LedState
from broker.server.share.share_metrics import ShareMetrics
from broker.server.share.share_partitions import SharePartitions
from broker.server.share.state_persister import StatePersister
from broker.share.acknowledgement import Acknowledgement, AcknowledgeType
from broker.share.acquisition import Acquired, Demand, LogBatch, SharePolicy
from broker.share.group_settings import Reset, ShareGroupSettings
from broker.share.session_cache import ShareSessionCache
from common.kafka.errors import KafkaError
from tests.sim.replica_cluster import NoProgress
from tests.sim.scheduler import Scheduler
from tests.sim.share_coordinators import LISTENER, ShareCoordinators, Weather
from tests.sim.share_loop import VirtualClock, VirtualLoop
from tests.sim.share_waiting import WaitingMembers

STEP_COUNT = 300
NODES = [1, 2, 3]
MEMBERS = ["ann", "ben", "cem", "dee"]
GROUP = "packers"
TOPIC_ID = bytes(range(16))
PARTITION_COUNT = 2
POLICY = SharePolicy(delivery_count_limit=4, record_lock_duration_ms=400, max_record_locks=60)
RETRY_MS = 400
FINISHING_MS = 120_000
FINAL_TYPES = {AcknowledgeType.GAP, AcknowledgeType.ACCEPT, AcknowledgeType.REJECT}


@dataclass
class Log:
    """One partition: its batches, its leader, and what has become of its records."""

    number: int
    leader: int
    leader_epoch: int = 1
    start_offset: int = 0
    end_offset: int = 0
    batches: list[LogBatch] = field(default_factory=list)
    without_record: set[int] = field(default_factory=set)
    finished: set[int] = field(default_factory=set)
    """Offsets that somebody had and wanted to finish, or that had their last delivery."""
    accepted: dict[int, int] = field(default_factory=dict)
    """The epoch of the leader that has answered that it is accepted, by offset."""

    def read(self, offset: int) -> list[LogBatch]:
        return [batch for batch in self.batches if batch.end_offset > offset][:4]


@dataclass
class Leader:
    """A share-partition at a node, and what its members have."""

    led: LedSharePartition
    holders: dict[int, tuple[str, int]] = field(default_factory=dict)
    """The member and the end of its lock, by offset."""
    counts: dict[int, int] = field(default_factory=dict)
    start_offset: int = 0
    end_offset: int = 0

    def held_by(self, member_id: str, start: int, end: int) -> list[int]:
        """Return the offsets of [start, end) that a member has."""
        return [
            offset
            for offset in range(start, end)
            if self.holders.get(offset, ("",))[0] == member_id
        ]


class ShareWorld:
    """All parts of one history, and its checks after every event."""

    def __init__(self, seed: int) -> None:
        self.scheduler = Scheduler(seed)
        self.random = self.scheduler.random
        self.coordinators = ShareCoordinators(self.scheduler, NODES, {TOPIC_ID: PARTITION_COUNT})
        self.logs = [Log(number, self.random.choice(NODES)) for number in range(PARTITION_COUNT)]
        self.policy = POLICY
        self.waiting = WaitingMembers(self.scheduler)
        self.tables = {
            node_id: SharePartitions(
                self._make_parts(), cast(Any, _PartitionsOf(self, node_id)), ShareSessionCache(0)
            )
            for node_id in NODES
        }
        self.leaders: dict[tuple[int, int], Leader] = {}
        """By node and partition."""
        for log in self.logs:
            self.coordinators.initialize(self.key_of(log))
            self.produce(log)

    def _make_parts(self) -> LedParts:
        loop = cast(Any, VirtualLoop(self.scheduler))
        clock = VirtualClock(self.scheduler)
        persister = StatePersister(
            clock,
            Peers(
                loop,
                cast(Any, SimpleNamespace(image=self.coordinators.image)),
                self.coordinators.connect,
                LISTENER,
            ),
            RETRY_MS,
        )
        return LedParts(
            clock,
            persister,
            self.waiting.parked,
            cast(Any, None),
            ShareMetrics(),
            settings_of=lambda group_id: ShareGroupSettings(self.policy, Reset.EARLIEST),
        )

    def key_of(self, log: Log) -> SharePartitionKey:
        return SharePartitionKey(GROUP, TOPIC_ID, log.number)

    # --- the history ---

    def run(self, step_count: int) -> None:
        for _ in range(step_count):
            self.step()
            self.scheduler.run_until(self.scheduler.now_ms + self.random.randint(0, 30))
            self.check()
        self.finish()

    def step(self) -> None:
        roll, log = self.random.random(), self.random.choice(self.logs)
        member_id = self.random.choice(MEMBERS)
        if roll < 0.32:
            self.fetch(log, member_id)
        elif roll < 0.40:
            self.wait(log, member_id)
        elif roll < 0.75:
            self.acknowledge(log, member_id)
        elif roll < 0.80:
            self.produce(log)
        elif roll < 0.84:
            leave = partial(self.disconnect, member_id) if roll < 0.83 else self.leave_node
            leave()
        elif roll < 0.88:
            self.move_leader(log)
        elif roll < 0.91:
            self.coordinators.crash(self.random.randrange(2), keeps=self.random.random() < 0.5)
        elif roll < 0.94:
            self.coordinators.weather = self.random.choice(
                [Weather(), Weather(0.2, 0.2, 40), Weather(0.05, 0.3, 200)]
            )
        elif roll < 0.96:
            self.delete_records(log)
        else:
            self.scheduler.run_until(self.scheduler.now_ms + self.random.randint(1, 600))

    def produce(self, log: Log) -> None:
        for _ in range(self.random.randint(1, 3)):
            if self.random.random() < 0.1:  # Compaction has removed some records.
                size = self.random.randint(1, 10)
                log.without_record.update(range(log.end_offset, log.end_offset + size))
                log.end_offset += size
            size = self.random.randint(1, 20)
            is_aborted = self.random.random() < 0.1
            end_offset = log.end_offset + size
            if is_aborted:
                log.without_record.update(range(log.end_offset, end_offset))
            log.batches.append(LogBatch(log.end_offset, end_offset, is_aborted))
            log.end_offset = end_offset
        self.waiting.on_produced(log.number)

    def delete_records(self, log: Log) -> None:
        last = max(log.batches[-1].base_offset, log.start_offset)
        log.start_offset = self.random.randint(log.start_offset, last)
        log.batches = [batch for batch in log.batches if batch.end_offset > log.start_offset]

    def move_leader(self, log: Log) -> None:
        """Let another node lead; the old one hears of it later."""
        before = log.leader
        if self.random.random() < 0.8:
            log.leader = self.random.choice(NODES)
        log.leader_epoch += 1
        delay_ms = self.random.randint(0, 500)
        self.scheduler.after(
            delay_ms, lambda: self.tables[before].on_role(self.partition_at(before, log))
        )

    def partition_at(self, node_id: int, log: Log) -> Any:
        """Return a partition as a node has it; the log is one for all nodes."""
        leads = node_id == log.leader
        return SimpleNamespace(
            leader=SimpleNamespace(leader_epoch=log.leader_epoch) if leads else None,
            key=(TOPIC_ID, log.number),
            log=_LogOf(log),
            parked={},
            topic_partition=TopicPartition("jobs", log.number),
        )

    def leave_node(self) -> None:
        """Let every member leave a node, whose share-partitions end while they may still write."""
        table = self.tables[self.random.choice(NODES)]
        for led in list(table):
            for member_id in MEMBERS:
                led.release(member_id)
        table.end_if_unused(GROUP)

    # --- members ---

    def leader_of(self, log: Log) -> Leader | None:
        """Return a share-partition that a member reaches: mostly the one of the leader."""
        node_id = log.leader if self.random.random() < 0.8 else self.random.choice(NODES)
        table, key = self.tables[node_id], (TOPIC_ID, log.number)
        led = table.find(GROUP, key)
        if led is None:
            if node_id != log.leader:
                return None
            led = table.get(GROUP, key)
        found = self.leaders.get((node_id, log.number))
        if found is None or found.led is not led:
            found = self.leaders[node_id, log.number] = Leader(led)
        return found

    def _active(self) -> list[tuple[Log, Leader]]:
        """Return the share-partitions that have not ended."""
        return [
            (self.logs[number], leader)
            for (_, number), leader in self.leaders.items()
            if leader.led.state is not LedState.ENDED
        ]

    def fetch(self, log: Log, member_id: str) -> int:
        leader = self.leader_of(log)
        return 0 if leader is None else self.fetch_from(leader, log, member_id)

    def wait(self, log: Log, member_id: str) -> None:
        """Let a member wait, if there is nothing for it at once."""
        leader = self.leader_of(log)
        if leader is not None and not self.fetch_from(leader, log, member_id):
            self.waiting.wait(leader.led, partial(self.fetch_from, leader, log, member_id))

    def fetch_from(self, leader: Leader, log: Log, member_id: str) -> int:
        if leader.led.share is None:
            return 0
        led, share = leader.led, leader.led.share
        led.follow_log_start()
        position = share.next_fetch_offset()
        if not share.can_acquire(self.policy) or position >= log.end_offset:
            return 0
        demand = Demand(
            member_id,
            self.random.choice([1, 5, 50]),
            self.random.choice([1, 10]),
            is_record_limit=self.random.random() < 0.3,
        )
        acquired = led.acquire(demand, log.read(position))
        while not acquired and share.next_fetch_offset() > position and led.has_records():
            position = share.next_fetch_offset()  # All of the read was aborted.
            acquired = led.acquire(demand, log.read(position))
        for piece in acquired:
            self._note_acquired(log, leader, member_id, piece)
        return len(acquired)

    def _note_acquired(self, log: Log, leader: Leader, member_id: str, piece: Acquired) -> None:
        epoch, now_ms = leader.led.leader_epoch, self.scheduler.now_ms
        deadline_ms = now_ms + self.policy.record_lock_duration_ms
        for offset in range(piece.start_offset, piece.end_offset):
            holder = leader.holders.get(offset)
            assert holder is None or holder[1] <= now_ms, ("two have it", offset, holder, member_id)
            accepted = log.accepted.get(offset)
            assert accepted is None or accepted > epoch, ("delivered again", log.number, offset)
            assert offset not in log.without_record, ("there is no record", log.number, offset)
            count = leader.counts.get(offset)
            assert count is None or piece.delivery_count == count + 1, (offset, count, piece)
            assert piece.delivery_count <= self.policy.delivery_count_limit, piece
            leader.counts[offset] = piece.delivery_count
            leader.holders[offset] = member_id, deadline_ms
            if piece.delivery_count == self.policy.delivery_count_limit:
                log.finished.add(offset)

    def acknowledge(self, log: Log, member_id: str, *, only_accepts: bool = False) -> None:
        leader = self.leader_of(log)
        if leader is None:
            return
        mine = {offset for offset, (holder, _) in leader.holders.items() if holder == member_id}
        if self.random.random() < 0.05:
            mine.add(self.random.randint(0, log.end_offset + 3))  # It is not its own.
        wanted = self._choose(sorted(mine), only_accepts)
        if not wanted:
            return
        for start, end, kind in wanted:
            if kind in FINAL_TYPES:
                log.finished.update(leader.held_by(member_id, start, end))
        with suppress(KafkaError):
            written = leader.led.acknowledge(member_id, wanted)
            self._note_renewed(leader, member_id, wanted)
            on_written = partial(self._note_acknowledged, log, leader, member_id, wanted, written)
            if written.is_done:
                on_written()
            else:
                written.when_done(on_written)

    def _note_renewed(self, leader: Leader, member_id: str, wanted: list[Acknowledgement]) -> None:
        deadline_ms = self.scheduler.now_ms + self.policy.record_lock_duration_ms
        for start, end, kind in wanted:
            if kind == AcknowledgeType.RENEW:
                renewed = dict.fromkeys(range(start, end), (member_id, deadline_ms))
                leader.holders.update(renewed)

    def _choose(self, mine: list[int], only_accepts: bool) -> list[Acknowledgement]:
        """Choose ranges of what a member has, and what it says about each."""
        wanted: list[Acknowledgement] = []
        index = 0
        while index < len(mine):
            start = end = mine[index]
            size = self.random.choice([1, 3, 100])
            while index < len(mine) and mine[index] == end and end - start < size:
                end, index = end + 1, index + 1
            if only_accepts:
                wanted.append(Acknowledgement(start, end, AcknowledgeType.ACCEPT))
            elif self.random.random() < 0.7:
                kind = self.random.choice([0, 1, 1, 1, 1, 2, 2, 3, 4])
                wanted.append(Acknowledgement(start, end, kind))
        return wanted

    def _note_acknowledged(
        self,
        log: Log,
        leader: Leader,
        member_id: str,
        wanted: list[Acknowledgement],
        written: Later,
    ) -> None:
        if written.value is not None:
            return  # It is refused, or not stored.
        epoch = leader.led.leader_epoch
        for start, end, kind in wanted:
            if kind == AcknowledgeType.RENEW:
                continue
            for offset in leader.held_by(member_id, start, end):
                del leader.holders[offset]
                if kind == AcknowledgeType.ACCEPT:
                    log.accepted[offset] = max(epoch, log.accepted.get(offset, 0))

    def disconnect(self, member_id: str) -> None:
        for _, leader in self._active():
            held = {
                offset: holder
                for offset, holder in leader.holders.items()
                if holder[0] == member_id
            }
            released = leader.led.release(member_id)

            def on_released(
                leader: Leader = leader, held: Any = held, released: Any = released
            ) -> None:
                if released.value is None:
                    for offset, holder in held.items():
                        # The member may be there again, and have the record again.
                        if leader.holders.get(offset) == holder:
                            del leader.holders[offset]

            if released.is_done:
                continue  # It has nothing that is not on its way already.
            released.when_done(on_released)

    # --- checks ---

    def check(self) -> None:
        self.waiting.check()
        for log, leader in self._active():
            share, number = leader.led.share, log.number
            if share is None:
                continue
            for offset in range(leader.start_offset, share.start_offset):
                assert (
                    offset < log.start_offset
                    or offset in log.finished
                    or offset in log.without_record
                ), ("lost", number, offset, share.runs)
            assert share.start_offset >= leader.start_offset, "the start fell"
            assert share.end_offset >= leader.end_offset, "the end fell"
            leader.start_offset, leader.end_offset = share.start_offset, share.end_offset
            runs = share.runs
            if runs:
                assert runs[0].start_offset == share.start_offset, runs
                assert runs[-1].end_offset == share.end_offset, runs
                assert all(one.end_offset == two.start_offset for one, two in pairwise(runs))
                assert all(run.record_count > 0 for run in runs), runs
            else:
                assert share.start_offset == share.end_offset
            assert 0 <= share.delivery_complete_count() <= share.record_count

    def finish(self) -> None:
        """End the faults, let the members accept everything, and see that nothing is left."""
        self.coordinators.weather = Weather()
        ends_ms = self.scheduler.now_ms + FINISHING_MS
        while not self._is_finished():
            if self.scheduler.now_ms > ends_ms:
                runs = [leader.led.share and leader.led.share.runs for _, leader in self._active()]
                raise NoProgress(f"not finished: {runs}")
            for log in self.logs:
                member_id = self.random.choice(MEMBERS)
                self.fetch(log, member_id)
                for each in MEMBERS:
                    self.acknowledge(log, each, only_accepts=True)
            self.scheduler.run_until(self.scheduler.now_ms + self.random.randint(1, 100))
            self.check()

    def _is_finished(self) -> bool:
        ends = {
            leader.led.key.partition: leader.led.share.start_offset
            for log, leader in self._active()
            if leader.led.share is not None and leader.led.leader_epoch == log.leader_epoch
        }
        return all(ends.get(log.number, -1) >= log.end_offset for log in self.logs)


class _PartitionsOf:
    """The partitions of a node, as a table of share-partitions sees them."""

    def __init__(self, world: ShareWorld, node_id: int) -> None:
        self._world = world
        self._node_id = node_id

    def name_of(self, topic_id: bytes) -> str:
        return "jobs"

    def get(self, topic: str, number: int) -> Any:
        return self._world.partition_at(self._node_id, self._world.logs[number])


class _LogOf:
    """A log as a share-partition sees it."""

    def __init__(self, log: Log) -> None:
        self._log = log

    topic_id = TOPIC_ID

    @property
    def log_start_offset(self) -> int:
        return self._log.start_offset

    @property
    def high_watermark(self) -> int:
        return self._log.end_offset
