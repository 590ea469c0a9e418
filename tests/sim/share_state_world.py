"""Seeded requests to a share-state shard, held against a model that knows each offset by itself.

Requests are lost with the records that they wrote, or arrive twice, and late; the coordinator is
killed at any time, before or after the commit of its records; leaders of several epochs write.

After every request a new shard is loaded from the log and must have the same state
(`ShareStateScenario.check_replay`), also when records were deleted and when share-partitions were
cold. The model is of offsets, not of batches: it shares no code with what it judges.
"""

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from broker.coordinator.share_state.state import SharePartitionKey
from common.kafka.errors import ErrorCode
from tests.lib.share_state_scenario import OTHER_TOPIC, TOPIC, ShareStateScenario

EVENT_COUNT = 120
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


class ShareStateWorld:
    """One shard and its model, with the requests of one seed."""

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
        self.known: dict[SharePartitionKey, Known] = {}
        self.sent: list[Callable[[], None]] = []
        """Requests that may arrive once more."""

    def run(self, event_count: int) -> None:
        events = [
            (self.request, 85), (self.repeat, 10), (self.lose, 10), (self.wait, 10),
            (self.reload, 5), (self.delete_topic, 1),
        ]  # fmt: skip
        choices, weights = zip(*events, strict=True)
        for _ in range(event_count):
            self.random.choices(choices, weights)[0]()

    # Faults.

    def repeat(self) -> None:
        """Let a request arrive once more, or late."""
        if self.sent:
            self.random.choice(self.sent)()

    def lose(self) -> None:
        """Crash the coordinator in a request, before the commit of its records."""
        known, count = deepcopy(self.known), len(self.world.log)
        self.request()
        del self.world.log[count:]
        self.known = known
        self.reload()

    def wait(self) -> None:
        self.world.wait(self.random.choice([1_000, HOUR_MS // 2, 2 * HOUR_MS]))

    def reload(self) -> None:
        self.world.shard = self.world.load()

    def delete_topic(self) -> None:
        topics = frozenset({self.random.choice(self.keys).topic_id})
        self.world.take(self.world.shard.on_topics_deleted(topics, self.world.now))
        self.world.wait(1)
        self.known = {one: known for one, known in self.known.items() if one.topic_id not in topics}

    # Requests.

    def request(self) -> None:
        key = self.random.choice(self.keys)
        choices = [self.initialize, self.write, self.read, self.delete, self.summarize]
        request = self.random.choices(choices, [10, 50, 15, 4, 8])[0](key)
        self.sent.append(request)
        request()

    def initialize(self, key: SharePartitionKey) -> Callable[[], None]:
        start_offset = self.random.choice([-1, self.random.randrange(OFFSETS)])
        return partial(self.send_initialize, key, self.random.randint(0, 3), start_offset)

    def send_initialize(self, key: SharePartitionKey, epoch: int, start_offset: int) -> None:
        known = self.known.get(key)
        result = self.world.initialize(key, epoch, start_offset)
        if known is not None and epoch < known.state_epoch:
            assert result.error_code == ErrorCode.FENCED_STATE_EPOCH
            return
        assert result.error_code == ErrorCode.NONE
        if known is None or start_offset != -1 or epoch != known.state_epoch:
            leader_epoch = 0 if known is None else known.leader_epoch
            self.known[key] = Known(epoch, leader_epoch, start_offset)

    def write(self, key: SharePartitionKey) -> Callable[[], None]:
        epochs = self.random.randint(0, 3), self.random.randint(0, 3)
        start_offset = self.random.choice([-1, self.random.randrange(OFFSETS)])
        written = []
        offset = max(0, start_offset)
        while offset < OFFSETS and self.random.random() < 0.7:
            last = self.random.randint(offset, min(offset + 5, OFFSETS))
            what = self.random.choice([AVAILABLE, ACKNOWLEDGED, ARCHIVED])
            written.append((offset, last, what, self.random.randint(1, 3)))
            offset = last + self.random.randint(1, 3)
        return partial(self.send_write, key, epochs, start_offset, written)

    def send_write(
        self,
        key: SharePartitionKey,
        epochs: tuple[int, int],
        start_offset: int,
        written: list[tuple[int, int, int, int]],
    ) -> None:
        known = self.known.get(key)
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

    def read(self, key: SharePartitionKey) -> Callable[[], None]:
        return partial(self.send_read, key, self.random.randint(0, 3))

    def send_read(self, key: SharePartitionKey, epoch: int) -> None:
        known = self.known.get(key)
        result = self.world.read(key, epoch)
        if known is None:
            assert result.error_code == ErrorCode.INVALID_REQUEST
        elif epoch < known.leader_epoch:
            assert result.error_code == ErrorCode.FENCED_LEADER_EPOCH
        else:
            known.leader_epoch = epoch
            self.check(known, result)

    def check(self, known: Known, result: Any) -> None:
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

    def summarize(self, key: SharePartitionKey) -> Callable[[], None]:
        return partial(self.send_summary, key)

    def send_summary(self, key: SharePartitionKey) -> None:
        known = self.known.get(key)
        result = self.world.summary(key)
        assert result.error_code == ErrorCode.NONE
        assert result.start_offset == (-1 if known is None else known.start_offset)

    def delete(self, key: SharePartitionKey) -> Callable[[], None]:
        return partial(self.send_delete, key)

    def send_delete(self, key: SharePartitionKey) -> None:
        result = self.world.delete(key)
        assert result.error_code == ErrorCode.NONE
        self.known.pop(key, None)
