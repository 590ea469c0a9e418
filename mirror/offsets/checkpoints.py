"""Decides which checkpoints of groups are new, and which offsets to commit. Pure."""

from millstream.connect.connectors import TopicPartition
from millstream.mirror.records import Checkpoint, OffsetSync
from mirror.flow import Flow
from mirror.offsets.sync_store import OffsetSyncStore
from mirror.topics import GroupInTarget, GroupOffsets


def reversed_sync(flow: Flow, sync: OffsetSync) -> OffsetSync | None:
    """Return a sync of the opposite flow with its two sides exchanged.

    With it groups return to the original: they have read the record at the copy's offset. Returns
    None where names do not tell a copy from its original.
    """
    topic, partition = sync.topic_partition
    copy = flow.policy.format_remote_topic(flow.target, topic)
    if copy == topic:
        return None
    return OffsetSync(TopicPartition(copy, partition), sync.downstream_offset, sync.upstream_offset)


class Checkpoints:
    """Owns the last checkpoint of every group and partition."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._last: dict[str, dict[TopicPartition, Checkpoint]] = {}

    def replay(self, checkpoint: Checkpoint) -> None:
        of_group = self._last.setdefault(checkpoint.consumer_group_id, {})
        of_group[checkpoint.topic_partition] = checkpoint

    def found(self, group: str, offsets: GroupOffsets, syncs: OffsetSyncStore) -> list[Checkpoint]:
        """Return the checkpoints to write for a group's source offsets; replay them afterwards."""
        made = []
        for at, (upstream_offset, metadata) in sorted(offsets.items()):
            if not self._flow.checkpoints(at.topic):
                continue
            downstream_offset = syncs.translate(at, upstream_offset)
            if downstream_offset is None:
                continue
            remote = self._flow.remote_partition(at)
            new = Checkpoint(group, remote, upstream_offset, downstream_offset, metadata)
            if self._is_news(new):
                made.append(new)
        return made

    def _is_news(self, new: Checkpoint) -> bool:
        last = self._last.get(new.consumer_group_id, {}).get(new.topic_partition)
        # As older syncs are forgotten, one offset is translated less exactly than before: back
        # goes only what went back in the source.
        return (
            last is None
            or new.upstream_offset < last.upstream_offset
            or new.downstream_offset > last.downstream_offset
        )

    def to_commit(self, group: str, in_target: GroupInTarget | None) -> dict[TopicPartition, int]:
        """Return the offsets to commit for a group in the target.

        A group with members in the target gets none: its own offsets are valid. GroupOffsets only
        move forward, so that a group does not read records again that it has read in the target.
        """
        if in_target is not None and not in_target.is_idle:
            return {}
        there = {} if in_target is None else in_target.offsets
        found = {}
        for at, checkpoint in sorted(self._last.get(group, {}).items()):
            committed = there.get(at)
            if committed is None or committed.offset < checkpoint.downstream_offset:
                found[at] = checkpoint.downstream_offset
        return found
