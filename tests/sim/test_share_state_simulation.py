"""Seeded requests to a share-state shard, held against a model that knows each offset by itself.

After every request a new shard is loaded from the log and must have the same state
(`ShareStateScenario.check_replay`), also when records were deleted and when share-partitions were
cold. The model is of offsets, not of batches: it shares no code with what it judges.
"""

import os
import random
from dataclasses import dataclass, field, replace

import pytest

from broker.coordinator.share_state import requests, state, table
from broker.errors import ErrorCode
from tests.lib.seeds import seeds
from tests.lib.share_state_scenario import OTHER_TOPIC, TOPIC, ShareStateScenario

FIRST_SEED = int(os.environ.get("MILLRACE_SIM_FIRST_SEED", "0"))
SEED_COUNT = int(os.environ.get("MILLRACE_SIM_SEEDS", "30"))
EVENT_COUNT = 120
SEED_LIMIT = 40
OFFSETS = 24
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
HOUR_MS = 3_600_000


@dataclass
class Known:
    """What the model knows of a share-partition."""

    state_epoch: int
    leader_epoch: int = 0
    start_offset: int = -1
    states: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By offset: its delivery state and count."""


class Model:
    """The answers that are expected."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = ShareStateScenario(
            updates_per_snapshot=self.random.choice([0, 1, 3]),
            cold_snapshot_interval_ms=HOUR_MS,
            prune_interval_ms=HOUR_MS // 4,
        )
        self.keys = [
            self.world.key(partition, topic=topic)
            for topic in (TOPIC, OTHER_TOPIC)
            for partition in range(2)
        ]
        self.known = {}

    def run(self, event_count: int) -> None:
        events = [
            (self.initialize, 10), (self.write, 50), (self.read, 15), (self.delete, 4),
            (self.summarize, 8), (self.wait, 10), (self.reload, 5), (self.delete_topic, 1),
        ]  # fmt: skip
        choices, weights = zip(*events, strict=True)
        for _ in range(event_count):
            key = self.random.choice(self.keys)
            self.random.choices(choices, weights)[0](key)

    def initialize(self, key) -> None:
        known = self.known.get(key)
        epoch = self.random.randint(0, 3)
        start_offset = self.random.choice([-1, self.random.randrange(OFFSETS)])
        result = self.world.initialize(key, epoch, start_offset)
        if known is not None and epoch < known.state_epoch:
            assert result.error_code == ErrorCode.FENCED_STATE_EPOCH
            return
        assert result.error_code == ErrorCode.NONE
        if known is None or start_offset != -1 or epoch != known.state_epoch:
            leader_epoch = 0 if known is None else known.leader_epoch
            self.known[key] = Known(epoch, leader_epoch, start_offset)

    def write(self, key) -> None:
        known = self.known.get(key)
        epochs = self.random.randint(0, 3), self.random.randint(0, 3)
        start_offset = self.random.choice([-1, self.random.randrange(OFFSETS)])
        written = []
        offset = max(0, start_offset)
        while offset < OFFSETS and self.random.random() < 0.7:
            last = self.random.randint(offset, min(offset + 5, OFFSETS))
            what = self.random.choice([AVAILABLE, ACKNOWLEDGED, ARCHIVED])
            written.append((offset, last, what, self.random.randint(1, 3)))
            offset = last + self.random.randint(1, 3)
        result = self.world.write(key, *written, epochs=epochs, start_offset=start_offset)
        if known is None:
            assert result.error_code == ErrorCode.INVALID_REQUEST
        elif epochs[1] < known.leader_epoch:
            assert result.error_code == ErrorCode.FENCED_LEADER_EPOCH
        elif epochs[0] < known.state_epoch:
            assert result.error_code == ErrorCode.FENCED_STATE_EPOCH
        else:
            assert result.error_code == ErrorCode.NONE, result
            known.start_offset = max(known.start_offset, start_offset)
            for first, last, what, count in written:
                for offset in range(first, last + 1):
                    new = count, what
                    before = known.states.get(offset)
                    if before is None or new >= (before[1], before[0]):
                        known.states[offset] = what, count
            self.forget_old(known)

    def forget_old(self, known: Known) -> None:
        for offset in [offset for offset in known.states if offset < known.start_offset]:
            del known.states[offset]

    def read(self, key) -> None:
        known = self.known.get(key)
        epoch = self.random.randint(0, 3)
        result = self.world.read(key, epoch)
        if known is None:
            assert result.error_code == ErrorCode.INVALID_REQUEST
        elif epoch < known.leader_epoch:
            assert result.error_code == ErrorCode.FENCED_LEADER_EPOCH
        else:
            known.leader_epoch = epoch
            self.check(known, result)

    def check(self, known: Known, result) -> None:
        assert result.error_code == ErrorCode.NONE, result
        assert (result.state_epoch, result.start_offset) == (known.state_epoch, known.start_offset)
        spread = {}
        last_of_all = -1
        for batch in result.state_batches:
            assert batch.first_offset > last_of_all, "batches overlap"
            last_of_all = batch.last_offset
            for offset in range(batch.first_offset, batch.last_offset + 1):
                spread[offset] = batch.delivery_state, batch.delivery_count
        assert spread == known.states

    def summarize(self, key) -> None:
        known = self.known.get(key)
        result = self.world.summary(key)
        assert result.error_code == ErrorCode.NONE
        assert result.start_offset == (-1 if known is None else known.start_offset)

    def delete(self, key) -> None:
        result = self.world.delete(key)
        assert result.error_code == ErrorCode.NONE
        self.known.pop(key, None)

    def delete_topic(self, key) -> None:
        topics = frozenset({key.topic_id})
        self.world.take(self.world.shard.on_topics_deleted(topics, self.world.now))
        self.world.wait(1)
        self.known = {one: known for one, known in self.known.items() if one.topic_id not in topics}

    def wait(self, key) -> None:
        self.world.wait(self.random.choice([1_000, HOUR_MS // 2, 2 * HOUR_MS]))

    def reload(self, key) -> None:
        self.world.shard = self.world.load()


@pytest.mark.parametrize("seed", seeds(SEED_COUNT, fast=10, first=FIRST_SEED))
def test_the_shard_answers_what_a_model_of_single_offsets_does(seed):
    Model(seed).run(EVENT_COUNT)


def nothing_is_cut_off(patch):
    real = state.combined
    patch.setattr(state, "combined", lambda batches, start_offset: real(batches, -1))


def the_newest_batch_wins(patch):
    def newest(batches, start_offset):
        by_offset = {
            offset: (batch.delivery_state, batch.delivery_count)
            for batch in batches
            for offset in range(max(batch.first_offset, start_offset), batch.last_offset + 1)
        }
        return tuple(
            state.StateBatch(offset, offset, *by_offset[offset]) for offset in sorted(by_offset)
        )

    patch.setattr(state, "combined", newest)


def one_record_too_many_is_deleted(patch):
    real = table.SharePartitions.oldest_snapshot_offset
    patch.setattr(table.SharePartitions, "oldest_snapshot_offset", lambda one: real(one) + 1)


def old_leaders_are_not_fenced(patch):
    patch.setattr(requests, "validate_leader_epoch", lambda *arguments: None)


def old_states_are_not_fenced(patch):
    patch.setattr(requests, "validate_state_epoch", lambda *arguments: None)


def a_snapshot_leaves_batches_out(patch):
    real = state.SharePartition.snapshot
    patch.setattr(
        state.SharePartition,
        "snapshot",
        lambda one, timestamp_ms: replace(real(one, timestamp_ms), batches=()),
    )


def a_deleted_topic_is_kept(patch):
    patch.setattr(table.SharePartitions, "of_topics", lambda *arguments: iter(()))


MUTATIONS = [
    nothing_is_cut_off,
    the_newest_batch_wins,
    one_record_too_many_is_deleted,
    old_leaders_are_not_fenced,
    old_states_are_not_fenced,
    a_snapshot_leaves_batches_out,
    a_deleted_topic_is_kept,
]


@pytest.mark.slow
@pytest.mark.parametrize("plant", MUTATIONS)
def test_a_planted_bug_is_found(plant, monkeypatch):
    plant(monkeypatch)
    for seed in range(SEED_LIMIT):
        try:
            Model(seed).run(EVENT_COUNT)
        except AssertionError:
            return
    pytest.fail(f"{SEED_LIMIT} histories found nothing")
