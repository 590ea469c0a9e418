"""A task of MirrorCheckpoint: translates the offsets of its groups, and optionally commits them."""

import logging
import threading
from collections.abc import Iterable
from typing import Any, Final

from common.process.clock import now_ms, timestamp_ms
from millstream.connect import SourceRecord, SourceTask
from millstream.connect.connectors import RecordMetadata, Settings, TaskMetric, TopicPartition
from millstream.connect.errors import ConnectException
from millstream.mirror.records import Checkpoint, OffsetSync
from mirror.cluster import MirrorCluster
from mirror.definitions import CHECKPOINT
from mirror.metrics import SAMPLE_MS, Gauge, checkpoint_metrics
from mirror.offsets.checkpoints import Checkpoints, reversed_sync
from mirror.offsets.followed_topic import FollowedTopic, Replay
from mirror.offsets.sync_store import OffsetSyncStore
from mirror.settings import MirrorSettings

log = logging.getLogger(__name__)

_WAIT_SECONDS: Final = 0.2


class MirrorCheckpointTask(SourceTask):
    """Owns the readers of offset syncs and of earlier checkpoints, and their state.

    The task translates nothing before it has read both to their ends: a checkpoint from old syncs
    would move groups back.
    """

    kafka_class = "org.apache.kafka.connect.mirror.MirrorCheckpointTask"

    @classmethod
    def version(cls) -> str:
        return "4.3.1"

    def start(self, settings: Settings) -> None:
        super().start(settings)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._open: list[FollowedTopic] = []
        self._mirror = made = MirrorSettings.of(CHECKPOINT, settings)
        self._groups = settings["task.assigned.groups"].split(",")
        timeout = made.timeout_seconds
        self._source = MirrorCluster(made.source, made.admin("source", "source-admin"), timeout)
        self._target = MirrorCluster(made.target, made.admin("target", "target-admin"), timeout)
        self._flow = made.flow()
        self._latencies: dict[tuple[str, TopicPartition], Gauge] = {}
        self._store, self._checkpoints = OffsetSyncStore(), Checkpoints(self._flow)
        side = made.offset_syncs_side
        self._syncs = self._followed(
            made.consumer(side, f"offset-syncs-{side}-consumer"),
            made.offset_syncs_topic,
            self._replay_sync,
        )
        self._syncs_back: FollowedTopic | None = None
        self._earlier: FollowedTopic | None = self._followed(
            made.consumer("target", "checkpoints-target-consumer"),
            made.checkpoints_topic,
            self._replay_checkpoint,
        )
        self._emit_ms = 1000 * (made.interval_seconds("emit.checkpoints") or 0)
        commit_seconds = made.interval_seconds("sync.group.offsets")
        self._commit_ms = None if commit_seconds is None else 1000 * commit_seconds
        self._next_emit_ms = self._next_commit_ms = self._next_roll_ms = now_ms()
        log.info("checkpoints flow=%s->%s groups=%s", made.source, made.target, len(self._groups))

    def _followed(self, client: dict[str, Any], topic: str, replay: Replay) -> FollowedTopic:
        followed = FollowedTopic(client, topic, replay)
        self._open.append(followed)
        return followed

    def _replay_sync(self, key: bytes | None, value: bytes | None) -> None:
        self._store.replay(OffsetSync.of_record(key, value))

    def _replay_sync_back(self, key: bytes | None, value: bytes | None) -> None:
        sync = reversed_sync(self._flow, OffsetSync.of_record(key, value))
        if sync is not None:
            self._store.replay(sync)

    def _replay_checkpoint(self, key: bytes | None, value: bytes | None) -> None:
        if value is not None:
            checkpoint = Checkpoint.of_record(key, value)
            if checkpoint.consumer_group_id in self._groups:
                self._checkpoints.replay(checkpoint)

    def poll(self) -> list[SourceRecord] | None:
        with self._lock:
            records = [] if self._stopping.is_set() else self._step()
        if not records:
            self._stopping.wait(_WAIT_SECONDS)
        return records

    def _step(self) -> list[SourceRecord]:
        if not self._is_ready():
            return []
        self._syncs.read(0)
        if self._syncs_back is not None:
            self._syncs_back.read(0)
        records: list[SourceRecord] = []
        if now_ms() >= self._next_emit_ms:
            self._next_emit_ms = now_ms() + self._emit_ms
            records = self._new_records()
        if self._commit_ms is not None and now_ms() >= self._next_commit_ms:
            self._next_commit_ms = now_ms() + self._commit_ms
            self._commit_in_target()
        return records

    def _is_ready(self) -> bool:
        """Continue to read; return whether both have been read to their ends."""
        if self._earlier is not None:
            self._earlier.read(_WAIT_SECONDS)
            if not self._earlier.is_read_to_end:
                return False
            self._earlier.close()
            self._open.remove(self._earlier)
            self._earlier = None
        if not self._syncs.is_read_to_end:
            self._syncs.read(_WAIT_SECONDS)
        return self._syncs.is_read_to_end

    def _look_for_syncs_back(self) -> None:
        """Read the syncs of the opposite flow, if it writes them to this cluster."""
        topic = self._mirror.policy.offset_syncs_topic(self._mirror.source)
        is_there = self._mirror.offset_syncs_side == "source"
        if self._syncs_back is None and is_there and topic in self._target.topic_names():
            client = self._mirror.consumer("target", "offset-syncs-target-consumer")
            self._syncs_back = self._followed(client, topic, self._replay_sync_back)
            self._syncs_back.read(_WAIT_SECONDS)

    def _new_records(self) -> list[SourceRecord]:
        found: list[Checkpoint] = []
        try:
            self._look_for_syncs_back()
        except ConnectException as error:
            log.warning("offset syncs of the opposite flow cannot be read: %s", error)
        try:
            offsets = self._source.group_offsets(self._groups)
        except ConnectException as error:
            log.warning("offsets of groups cannot be read: %s", error)
            return []
        for group, of_group in offsets.items():
            found += self._checkpoints.found(group, of_group, self._store)
        now = timestamp_ms()
        records = []
        for checkpoint in self._that_stand(found):
            self._checkpoints.replay(checkpoint)
            records.append(self._record(checkpoint, now))
        return records

    def _that_stand(self, found: list[Checkpoint]) -> list[Checkpoint]:
        """Drop checkpoints beyond the copy's end: the copy was deleted and created again."""
        if not found:
            return []
        try:
            ends = self._target.end_offsets({each.topic_partition for each in found})
        except ConnectException as error:
            log.warning("checkpoints cannot be checked: %s", error)
            return []
        return [
            each for each in found if each.downstream_offset <= ends.get(each.topic_partition, -1)
        ]

    def _record(self, checkpoint: Checkpoint, now: int) -> SourceRecord:
        topic, partition = checkpoint.topic_partition
        place: dict[str, Any] = {
            "group": checkpoint.consumer_group_id,
            "topic": topic,
            "partition": partition,
        }
        return SourceRecord(
            topic=self._mirror.checkpoints_topic,
            kafka_partition=0,
            key=checkpoint.record_key(),
            value=checkpoint.record_value(),
            timestamp_ms=now,
            source_partition=place,
            source_offset={"offset": 0},
        )

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        del metadata
        place = record.source_partition
        assert place is not None
        of = place["group"], TopicPartition(place["topic"], place["partition"])
        measured = self._latencies.setdefault(of, Gauge())
        if now_ms() >= self._next_roll_ms:
            self._next_roll_ms = now_ms() + SAMPLE_MS
            for each in self._latencies.values():
                each.roll()
        measured.add(timestamp_ms() - (record.timestamp_ms or 0))

    def metrics(self) -> Iterable[TaskMetric]:
        return checkpoint_metrics(self._flow, dict(self._latencies))

    def _commit_in_target(self) -> None:
        try:
            there = self._target.groups_here(self._groups)
        except ConnectException as error:
            log.warning("groups in the target cannot be read: %s", error)
            return
        for group, in_target in there.items():
            offsets = self._checkpoints.to_commit(group, in_target)
            try:
                if offsets:
                    self._target.commit(group, offsets)
            except ConnectException as error:
                # A member may have joined the group in the target a moment ago.
                log.warning("offsets were not committed group=%s error=%s", group, error)

    def stop(self) -> None:
        """Called in the task's thread, or from outside while a poll waits for a cluster."""
        self._stopping.set()
        with self._lock:
            while self._open:
                self._open.pop().close()
