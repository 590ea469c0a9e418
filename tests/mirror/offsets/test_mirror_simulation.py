"""A mirror that crashes, repeats and loses syncs, seeded: what a group may never miss.

One partition of a source whose log has gaps (compaction, markers of transactions) and whose start
moves (retention, of what was copied and of what was not), its copy, the task that copies and writes
syncs, the task that writes checkpoints, and a group that reads the source. After every step:
whoever failed over now, with the last checkpoint, would find at least one copy of every record that
the group had not read and that the source held when the mirror came past it last.

Those are all but one kind: a crash sets the mirror back, and before records come again retention
removes them. Their first copies lie before all that comes again, and a group that is translated to
what comes again does not find them, as it does not in the source. MirrorMaker 2 passes them by as
well. Nor is it to be told: no sync says how far the mirror had been when it crashed, and no group
goes back to copies that it was told it had behind it.
"""

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from millstream.mirror import Checkpoint, OffsetAndMetadata, OffsetSync, TopicPartition
from mirror.offsets.checkpoints import Checkpoints, reversed_sync
from mirror.offsets.sync_queue import SyncQueue
from mirror.offsets.sync_store import OffsetSyncStore
from mirror.topics import GroupInTarget
from tests.lib.seeds import seeds
from tests.mirror.test_policies import flow

AT = TopicPartition("orders", 0)
COPY = TopicPartition("a.orders", 0)
SEEDS = seeds(60, fast=20)


class Mirror:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.source: list[int] = []
        """Offsets of records that are there still."""
        self.source_end = 0
        self.target: list[int] = []
        """Which record of the source each offset is a copy of; -1 for a marker."""
        self.read_on = self.committed = 0
        self.retired: set[int] = set()
        """Offsets that were deleted from the source when they were passed last."""
        self.queue = SyncQueue(self.random.choice([0, 5, 100]))
        self.sync_log: list[OffsetSync] = []
        self.checkpoint_log: list[Checkpoint] = []
        self.group_offset = 0
        self.in_target: int | None = None
        self.start_checkpoints()

    def start_checkpoints(self) -> None:
        """Begin as the task does: older syncs count only with the checkpoints made of them."""
        self.store, self.checkpoints = OffsetSyncStore(), Checkpoints(flow())
        knows_checkpoints = self.random.random() < 0.5
        for sync in self.sync_log:
            self.store.replay(sync, forgets_older=not knows_checkpoints)
        for checkpoint in self.checkpoint_log if knows_checkpoints else ():
            self.checkpoints.replay(checkpoint)
        self.read_syncs = len(self.sync_log)

    # --- what happens ---

    def produce(self) -> None:
        for _ in range(self.random.randrange(40)):
            self.source_end += self.random.choice([1, 1, 1, 1, 2, 9])
            self.source.append(self.source_end - 1)

    def retire(self) -> None:
        """Move the start of the source's log; who reads before it goes on there."""
        del self.source[: self.random.randrange(len(self.source) + 1)]

    def copy(self) -> None:
        coming = [each for each in self.source if each >= self.read_on]
        for offset in coming[: self.random.randrange(30)]:
            if self.random.random() < 0.05:
                self.target.append(-1)
            self.target.append(offset)
            self.queue.stored(AT, offset, len(self.target) - 1)
            self.retired.update(range(self.read_on, offset))
            self.retired.discard(offset)
            self.read_on = offset + 1
            self.write_syncs()

    def write_syncs(self) -> None:
        for sync in self.queue.take():
            if self.random.random() < 0.2:
                self.queue.lost(sync)
            else:
                self.queue.written()
                self.sync_log.append(sync)

    def commit(self) -> None:
        self.committed = self.read_on
        self.queue.promote()
        self.write_syncs()

    def crash(self) -> None:
        self.read_on = self.committed
        self.queue = SyncQueue(self.random.choice([0, 5, 100]))

    def read(self) -> None:
        unread = [each for each in self.source if each >= self.group_offset]
        if unread:
            self.group_offset = self.random.choice(unread) + 1

    def rewind(self) -> None:
        self.group_offset = self.random.randrange(self.group_offset + 1)

    def checkpoint(self) -> None:
        for sync in self.sync_log[self.read_syncs :]:
            self.store.replay(sync)
        self.read_syncs = len(self.sync_log)
        offsets = {AT: OffsetAndMetadata(self.group_offset)}
        for found in self.checkpoints.found("group", offsets, self.store):
            self.checkpoints.replay(found)
            self.checkpoint_log.append(found)

    def sync_group(self) -> None:
        there = {} if self.in_target is None else {COPY: OffsetAndMetadata(self.in_target)}
        found = self.checkpoints.to_commit("group", GroupInTarget(True, there))
        if COPY in found:
            assert self.in_target is None or found[COPY] > self.in_target
            self.in_target = found[COPY]

    def steps(self) -> Iterator[None]:
        happens = [self.produce, self.copy, self.copy, self.read, self.commit, self.checkpoint]
        happens += [self.sync_group]
        rare = [self.crash, self.rewind, self.retire, self.start_checkpoints]
        for _ in range(300):
            self.random.choice(rare if self.random.random() < 0.05 else happens)()
            yield

    # --- what must hold ---

    def check(self) -> None:
        for last in self.checkpoint_log[-1:]:
            assert last.topic_partition == COPY
            assert 0 <= last.downstream_offset <= len(self.target)
            found_there = set(self.target[last.downstream_offset :])
            # In the copy is what the source has retired since, too.
            held = {*self.source, *self.target} - self.retired
            unread = {each for each in held if last.upstream_offset <= each < self.read_on}
            assert unread <= found_there, f"skipped {sorted(unread - found_there)} by {last}"


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_who_fails_over_misses_a_record(seed: int) -> None:
    mirror = Mirror(seed)
    for _ in mirror.steps():
        mirror.check()
    assert mirror.checkpoint_log, "the simulation checks nothing"


@pytest.mark.parametrize("seed", SEEDS)
def test_checkpoints_go_back_only_with_the_group(seed: int) -> None:
    mirror = Mirror(seed)
    for _ in mirror.steps():
        pass
    for before, after in pairwise(mirror.checkpoint_log):
        went_back = after.upstream_offset < before.upstream_offset
        assert went_back or after.downstream_offset >= before.downstream_offset


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_who_goes_back_misses_a_record(seed: int) -> None:
    """By the same syncs, seen from the copy: all that was not read there comes in the source."""
    mirror, store, back = Mirror(seed), OffsetSyncStore(), flow("b", "a")
    replayed = 0
    for _ in mirror.steps():
        for sync in mirror.sync_log[replayed:]:
            seen = reversed_sync(back, sync)
            assert seen is not None
            store.replay(seen)
        replayed = len(mirror.sync_log)
        read_to = mirror.random.randrange(len(mirror.target) + 1)
        offset = store.translate(COPY, read_to)
        if offset is not None:
            read = set(mirror.target[:read_to])
            assert all(each >= offset for each in mirror.source if each not in read)
    assert replayed, "the simulation checks nothing"


def test_at_the_end_of_a_quiet_topic_nothing_is_read_again() -> None:
    mirror = Mirror(0)
    mirror.queue = SyncQueue(100)
    mirror.source, mirror.source_end = list(range(50)), 50
    while mirror.read_on < 50:
        mirror.copy()
    while not mirror.queue.is_idle:
        mirror.commit()
    mirror.group_offset = 50
    mirror.checkpoint()
    assert mirror.checkpoint_log[-1].downstream_offset == len(mirror.target)


def test_a_group_that_reads_in_the_target_keeps_its_offsets() -> None:
    checkpoints = Checkpoints(flow())
    checkpoints.replay(Checkpoint("group", COPY, 10, 10))
    assert checkpoints.to_commit("group", None) == {COPY: 10}
    ahead = GroupInTarget(True, {COPY: OffsetAndMetadata(11)})
    assert checkpoints.to_commit("group", ahead) == {}
    assert checkpoints.to_commit("group", GroupInTarget(False, {})) == {}
    behind = GroupInTarget(True, {COPY: OffsetAndMetadata(9)})
    assert checkpoints.to_commit("group", behind) == {COPY: 10}
