"""One simulated broker with one replica: the real core under a minimal shell.

The comments say what the real shell must do too: a broker applies the metadata only once it
contains the broker's own registration, and keeps its broker epoch on disk when it stops cleanly.
"""

from bisect import bisect_right
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from broker.metadata.image import MetadataImage
from broker.replication.follower import FetchPosition, FollowerOutcome
from broker.replication.isr_changes import IsrChanges
from broker.replication.leader import PartitionLeader
from broker.replication.replica import Replica, ReplicationSettings
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from common.kafka.protocol.messages.fetch import EpochEndOffset, PartitionData
from tests.sim.replica_controller import TOPIC, SimulatedController
from tests.sim.replica_disk_log import DiskLog
from tests.sim.replica_log import Entry, ReplicaLog

LAG_TIME_MAX_MS = 120
BACKOFF_MS = 10
REQUEST_LIFETIME_MS = 800
ALL = -1

SimulatedLog = ReplicaLog | DiskLog
MakeLog = Callable[[bytes | None], SimulatedLog]


class FetchCall(NamedTuple):
    topic_id: bytes
    replica_id: int
    broker_epoch: int
    position: FetchPosition
    token: int


class FetchReply(NamedTuple):
    topic_id: bytes
    position: FetchPosition
    answer: PartitionData
    token: int


class OffsetsCall(NamedTuple):
    topic_id: bytes
    replica_id: int
    current_leader_epoch: int


class OffsetsReply(NamedTuple):
    topic_id: bytes
    current_leader_epoch: int
    error_code: int
    start_offset: int = -1
    end_offset: int = -1


class Produced(NamedTuple):
    """A record whose producer waits for its acknowledgement."""

    offset: int
    entry: Entry


class ReplicaNode:
    """A process with a disk; `replica` is None while it is down or lacks its registration."""

    def __init__(
        self, node_id: int, controller: SimulatedController, random: Random, make_log: MakeLog
    ) -> None:
        self.node_id = node_id
        self.controller = controller
        self.random = random
        self.make_log = make_log
        self.log = make_log(None)
        self.clean_shutdown_epoch = -1  # the clean-shutdown file
        self.incarnation = 0
        self.is_up = False
        self.is_paused = False
        self.is_stopping = False
        self.inbox: list = []
        # Its own clock: with an offset, and a little faster or slower.
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
        self.log.end_process()

    def stop_cleanly(self) -> None:
        self.log.close()
        epoch = self.broker_epoch
        self.die()
        self.clean_shutdown_epoch = epoch

    def wipe(self) -> int:
        """Lose the disk; return how many records are lost."""
        lost = self.log.log_end_offset
        self.log = self.make_log(None)
        return lost

    # --- metadata ---

    def catch_up(self, time_ms: int, *, in_pieces: bool = False) -> None:
        """Read the next metadata record or all of them, and apply the resulting image."""
        records = self.controller.records
        if self.applied == len(records):
            return
        end = len(records)
        if in_pieces:
            ends = self.controller.ends
            end = ends[bisect_right(ends, self.applied)]
        for record in records[self.applied : end]:
            self.image.replay(record)
        self.applied = end
        self.follow_image(time_ms)

    @property
    def knows_itself(self) -> bool:
        """True if the metadata contains this incarnation's registration."""
        own = self.image.brokers.get(self.node_id)
        return own is not None and own.epoch == self.broker_epoch

    def follow_image(self, time_ms: int) -> None:
        if not self.knows_itself:
            # It may name this broker the leader for the log of an earlier incarnation.
            return
        topic = self.image.topics.by_name.get(TOPIC)
        if topic is None or self.node_id not in topic.partitions[0].replicas:
            self._drop_log(None)
            return
        if topic.topic_id != self.log.topic_id:
            self._drop_log(topic.topic_id)
        if self.replica is None:
            self.replica = self._make_replica()
        change = self.replica.apply(topic.partitions[0], self.now_ms(time_ms))
        if change.became_follower or change.became_leader:
            self.is_fetching = False
            self.fetch_token += 1
        if self.replica.leader is not None:
            self.log.agreed_epoch = self.replica.leader_epoch
        self.after_leader_call()

    def _drop_log(self, next_topic_id: bytes | None) -> None:
        if self.log.topic_id is not None:
            self.changes.forget((self.log.topic_id, 0))
        self.replica, self.is_fetching = None, False
        if self.log.topic_id != next_topic_id:
            self.log = self.make_log(next_topic_id)

    def _make_replica(self) -> Replica[Produced]:
        return Replica(
            self.node_id,
            self.log,
            self.active_epoch,
            ReplicationSettings(LAG_TIME_MAX_MS, BACKOFF_MS),
            min_insync_replicas=self.min_insync_replicas(),
        )

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
        """Acknowledge the records below the high watermark, and submit the ISR change."""
        leader = self.leader
        if leader is None:
            return
        fulfilled = leader.take_fulfilled()
        if fulfilled and leader.append_error() == 0:
            self.acknowledged += fulfilled
        change = leader.take_isr_change()
        if change is not None:
            assert self.log.topic_id is not None
            self.changes.submit((self.log.topic_id, 0), leader, change)

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
        if leader is None or call.topic_id != self.log.topic_id:
            return FetchReply(call.topic_id, asked, PartitionData(error_code=6), call.token)
        try:
            answer = self._read(leader, call, time_ms)
        except KafkaError as error:
            answer = PartitionData(error_code=error.code)
        return FetchReply(call.topic_id, asked, answer, call.token)

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
        leader, epoch, topic_id = self.leader, call.current_leader_epoch, call.topic_id
        if leader is None or topic_id != self.log.topic_id:
            return OffsetsReply(topic_id, epoch, 6)
        try:
            leader.validate_fetch(epoch, self.log.log_end_offset, -1)
        except KafkaError as error:
            return OffsetsReply(topic_id, epoch, error.code)
        return OffsetsReply(topic_id, epoch, 0, self.log.log_start_offset, self.log.log_end_offset)

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
        now_ms, topic_id = self.now_ms(time_ms), self.log.topic_id
        assert topic_id is not None
        if follower.needs_offsets(now_ms):
            return OffsetsCall(topic_id, self.node_id, follower.leader_epoch)
        position = follower.next_fetch(now_ms)
        if position is None:
            return None
        self.fetch_token += 1
        return FetchCall(topic_id, self.node_id, self.broker_epoch, position, self.fetch_token)

    def _follower_of(self, topic_id: bytes) -> Any:
        is_same = self.replica is not None and topic_id == self.log.topic_id
        return self.replica.follower if self.replica is not None and is_same else None

    def take_fetch(self, reply: FetchReply, time_ms: int) -> None:
        follower = self._follower_of(reply.topic_id)
        if follower is None:
            return
        if reply.token == self.fetch_token:
            self.is_fetching = False
        outcome = follower.handle_fetch_answer(reply.position, reply.answer, self.now_ms(time_ms))
        if outcome in {FollowerOutcome.APPENDED, FollowerOutcome.UNCHANGED}:
            self.log.agreed_epoch = follower.leader_epoch

    def take_offsets(self, reply: OffsetsReply, time_ms: int) -> None:
        follower = self._follower_of(reply.topic_id)
        if follower is None:
            return
        self.is_fetching = False
        now_ms = self.now_ms(time_ms)
        if reply.error_code:
            follower.handle_offsets_error(reply.current_leader_epoch, reply.error_code, now_ms)
            return
        outcome = follower.handle_offsets(
            reply.current_leader_epoch, reply.start_offset, reply.end_offset, now_ms
        )
        if outcome is FollowerOutcome.RESTARTED:
            self.log.agreed_epoch = follower.leader_epoch
