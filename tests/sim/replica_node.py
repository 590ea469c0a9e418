"""One simulated broker with one replica: the real core under a shell of a few lines.

What the real shell must do too, and why, is said where it is done: a broker acts by the metadata
only once that contains its own registration, and leaves its epoch behind when it stops cleanly.
"""

from random import Random
from typing import NamedTuple

from broker.errors import KafkaError
from broker.metadata.image import MetadataImage
from broker.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from broker.protocol.messages.fetch import EpochEndOffset, PartitionData
from broker.replication.follower import FetchPosition, FollowerOutcome
from broker.replication.isr_changes import IsrChanges
from broker.replication.leader import PartitionLeader
from broker.replication.replica import Replica, ReplicaChange, ReplicationSettings
from tests.sim.replica_controller import TOPIC, SimulatedController
from tests.sim.replica_log import Entry, ReplicaLog

LAG_TIME_MAX_MS = 120
BACKOFF_MS = 10
REQUEST_LIFETIME_MS = 800
ALL = -1


class FetchCall(NamedTuple):
    replica_id: int
    broker_epoch: int
    position: FetchPosition
    token: int


class FetchReply(NamedTuple):
    position: FetchPosition
    answer: PartitionData
    token: int


class OffsetsCall(NamedTuple):
    replica_id: int
    current_leader_epoch: int


class OffsetsReply(NamedTuple):
    current_leader_epoch: int
    error_code: int
    start_offset: int = -1
    end_offset: int = -1


class Produced(NamedTuple):
    """A record that a client waits for."""

    offset: int
    entry: Entry


class ReplicaNode:
    """A process on a disk; `replica` is None while it is down or does not know itself yet."""

    def __init__(self, node_id: int, controller: SimulatedController, random: Random) -> None:
        self.node_id = node_id
        self.controller = controller
        self.random = random
        self.log = ReplicaLog()
        self.clean_shutdown_epoch = -1  # the file that a clean stop leaves behind
        self.incarnation = 0
        self.is_up = False
        self.is_paused = False
        self.is_stopping = False
        self.inbox: list = []
        # A clock of its own: somewhere else, and a little faster or slower.
        self._clock_offset_ms = random.randint(-5_000, 5_000)
        self._clock_rate = random.uniform(0.9, 1.1)
        self.fetch_max_records = random.choice([1, 4, 50])
        self.acknowledged: list[Produced] = []
        self._forget_process()

    def _forget_process(self) -> None:
        self.image = MetadataImage()
        self.applied = 0
        self.broker_epoch = -1
        self.replica: Replica[Produced] | None = None
        self.changes: IsrChanges[PartitionLeader[Produced]] = IsrChanges(REQUEST_LIFETIME_MS)
        self.fetch_token = 0
        self.is_fetching = False

    def now_ms(self, time_ms: int) -> int:
        return int(time_ms * self._clock_rate) + self._clock_offset_ms

    # --- the process ---

    def start(self) -> None:
        assert not self.is_up
        self.is_up, self.is_paused, self.is_stopping = True, False, False
        self.incarnation += 1
        self._forget_process()
        self.log.reopen()
        self.previous_epoch, self.clean_shutdown_epoch = self.clean_shutdown_epoch, -1

    def die(self) -> None:
        self.is_up = False
        self.inbox.clear()
        self._forget_process()

    def stop_cleanly(self) -> None:
        self.log.flush()
        self.log.checkpoint()
        epoch = self.broker_epoch
        self.die()
        self.clean_shutdown_epoch = epoch

    # --- metadata ---

    def catch_up(self, time_ms: int) -> None:
        """Read all metadata there is, and act by where it ends: what was between is not seen."""
        records = self.controller.records
        if self.applied == len(records):
            return
        for record in records[self.applied :]:
            self.image.replay(record)
        self.applied = len(records)
        self.follow_image(time_ms)

    def follow_image(self, time_ms: int) -> None:
        own = self.image.brokers.get(self.node_id)
        if own is None or own.epoch != self.broker_epoch or TOPIC not in self.image.topics.by_name:
            # It may name this broker the leader for what an earlier incarnation had.
            return
        if self.replica is None:
            settings = ReplicationSettings(LAG_TIME_MAX_MS, BACKOFF_MS)
            self.replica = Replica(
                self.node_id,
                self.log,
                self.active_epoch,
                settings,
                min_insync_replicas=self.min_insync_replicas(),
            )
        partition = self.image.topics.by_name[TOPIC].partitions[0]
        change: ReplicaChange[Produced] = self.replica.apply(partition, self.now_ms(time_ms))
        if change.became_follower or change.became_leader:
            self.is_fetching = False
            self.fetch_token += 1
        self.after_leader_call()

    def min_insync_replicas(self) -> int:
        return int(self.image.configs.settings_of(2, TOPIC)["min.insync.replicas"])

    def active_epoch(self, broker_id: int) -> int | None:
        broker = self.image.brokers.get(broker_id)
        return broker.epoch if broker is not None and broker.is_active else None

    @property
    def leader(self) -> PartitionLeader[Produced] | None:
        return None if self.replica is None else self.replica.leader

    # --- as leader ---

    def after_leader_call(self) -> None:
        """Answer who waited for the high watermark, and send what is to be asked."""
        leader = self.leader
        if leader is None:
            return
        fulfilled = leader.take_fulfilled()
        if fulfilled and leader.append_error() == 0:
            self.acknowledged += fulfilled
        change = leader.take_isr_change()
        if change is not None:
            key = (self.image.topics.by_name[TOPIC].topic_id, 0)
            self.changes.submit(key, leader, change)

    def produce(self, value: int, acks: int, time_ms: int) -> None:
        leader = self.leader
        if leader is None:
            return
        try:
            leader.validate_append(acks)
        except KafkaError:
            return
        offset = self.log.log_end_offset
        self.log.append_as_leader(value, leader.leader_epoch)
        if acks == ALL:
            leader.waits.add(offset + 1, Produced(offset, self.log.entry(offset)))
        leader.note_append(self.now_ms(time_ms))
        self.after_leader_call()

    def serve_fetch(self, call: FetchCall, time_ms: int) -> FetchReply:
        asked, leader = call.position, self.leader
        if leader is None:
            return FetchReply(asked, PartitionData(error_code=6), call.token)
        try:
            answer = self._read(leader, call, time_ms)
        except KafkaError as error:
            answer = PartitionData(error_code=error.code)
        return FetchReply(asked, answer, call.token)

    def _read(
        self, leader: PartitionLeader[Produced], call: FetchCall, time_ms: int
    ) -> PartitionData:
        asked, log = call.position, self.log
        diverging = leader.validate_fetch(
            asked.current_leader_epoch, asked.fetch_offset, asked.last_fetched_epoch
        )
        leader.validate_follower(call.replica_id, call.broker_epoch)
        if diverging is not None:
            end = EpochEndOffset(epoch=diverging.leader_epoch, end_offset=diverging.offset)
            return PartitionData(diverging_epoch=end, high_watermark=log.high_watermark)
        if not log.log_start_offset <= asked.fetch_offset <= log.log_end_offset:
            return PartitionData(error_code=1)
        leader.note_fetch(
            call.replica_id,
            call.broker_epoch,
            asked.fetch_offset,
            asked.log_start_offset,
            self.now_ms(time_ms),
        )
        self.after_leader_call()
        return PartitionData(
            high_watermark=log.high_watermark,
            log_start_offset=log.log_start_offset,
            records=log.read(asked.fetch_offset, self.fetch_max_records),
        )

    def serve_offsets(self, call: OffsetsCall) -> OffsetsReply:
        leader, epoch = self.leader, call.current_leader_epoch
        if leader is None:
            return OffsetsReply(epoch, 6)
        try:
            leader.validate_fetch(epoch, self.log.log_end_offset, -1)
        except KafkaError as error:
            return OffsetsReply(epoch, error.code)
        return OffsetsReply(epoch, 0, self.log.log_start_offset, self.log.log_end_offset)

    def check_isr(self, time_ms: int) -> None:
        if self.leader is not None:
            self.leader.maybe_shrink_isr(self.now_ms(time_ms))
            self.after_leader_call()

    def next_alter_partition(self, time_ms: int) -> AlterPartitionRequest | None:
        if self.replica is None:
            return None
        return self.changes.next_request(self.node_id, self.broker_epoch, self.now_ms(time_ms))

    def take_alter_partition(self, response: AlterPartitionResponse, time_ms: int) -> None:
        now_ms = self.now_ms(time_ms)
        for leader, change, result in self.changes.handle_response(response, now_ms):
            leader.handle_isr_answer(change, result, now_ms)
        self.after_leader_call()

    def delete_records(self, time_ms: int) -> None:
        if self.leader is not None:
            self.log.delete_records_before(self.log.high_watermark)

    # --- as follower ---

    def next_fetch(self, time_ms: int) -> FetchCall | OffsetsCall | None:
        follower = self.replica.follower if self.replica is not None else None
        if follower is None or self.is_fetching:
            return None
        now_ms = self.now_ms(time_ms)
        if follower.needs_offsets(now_ms):
            return OffsetsCall(self.node_id, follower.leader_epoch)
        position = follower.next_fetch(now_ms)
        if position is None:
            return None
        self.fetch_token += 1
        return FetchCall(self.node_id, self.broker_epoch, position, self.fetch_token)

    def take_fetch(self, reply: FetchReply, time_ms: int) -> FollowerOutcome | None:
        follower = self.replica.follower if self.replica is not None else None
        if follower is None:
            return None
        if reply.token == self.fetch_token:
            self.is_fetching = False
        now_ms = self.now_ms(time_ms)
        return follower.handle_fetch_answer(reply.position, reply.answer, now_ms)

    def take_offsets(self, reply: OffsetsReply, time_ms: int) -> None:
        follower = self.replica.follower if self.replica is not None else None
        if follower is None:
            return
        self.is_fetching = False
        now_ms = self.now_ms(time_ms)
        if reply.error_code:
            follower.handle_offsets_error(reply.current_leader_epoch, reply.error_code, now_ms)
            return
        follower.handle_offsets(
            reply.current_leader_epoch, reply.start_offset, reply.end_offset, now_ms
        )
