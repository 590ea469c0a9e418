"""The log of the simulation does what a `PartitionLog` does, as far as replication can see."""

from random import Random

import pytest

from broker.log.partition_log import PartitionLog
from broker.records.batch import RecordBatch
from broker.records.build import build_batch
from tests.lib.logs import joined, open_log
from tests.lib.simulated_storage import SimulatedStorage
from tests.sim.replica_log import RECORD, ReplicaLog


class Pair:
    """Both logs, driven by the same calls; every batch has one record."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.real: PartitionLog = open_log(SimulatedStorage(seed))
        self.model = ReplicaLog()
        self.epoch = 0

    def step(self) -> None:
        random, model, real = self.random, self.model, self.real
        choice = random.randrange(8)
        offset = random.randint(model.log_start_offset, model.log_end_offset + 2)
        if choice == 0:
            self.epoch += random.randint(0, 2)
            real.become_leader(self.epoch)
            model.become_leader(self.epoch)
        elif choice <= 2:
            real.append_as_leader(batch(), leader_epoch=self.epoch, timestamp_ms=0)
            model.become_leader(self.epoch)
            model.append_as_leader(0, self.epoch)
        elif choice == 3:
            self.epoch += random.randint(0, 2)
            self.append_as_follower()
        elif choice == 4:
            assert real.truncate_to(offset) == model.truncate_to(offset)
        elif choice == 5:
            assert real.advance_high_watermark(offset) == model.advance_high_watermark(offset)
        elif choice == 6:
            start = min(offset, model.high_watermark)
            assert real.delete_records_before(start) == model.delete_records_before(start)
        elif random.random() < 0.2:
            real.truncate_fully_and_start_at(offset)
            model.truncate_fully_and_start_at(offset)

    def append_as_follower(self) -> None:
        offset = self.model.log_end_offset
        self.model.append_as_follower(RECORD.pack(offset, self.epoch, 0))
        leader = open_log(SimulatedStorage())
        leader.truncate_fully_and_start_at(offset)
        leader.append_as_leader(batch(), leader_epoch=self.epoch, timestamp_ms=0)
        found = leader.read(offset, max_bytes=1 << 20, max_offset=offset + 1, is_replica=True)
        self.real.append_as_follower(joined(found.parts))

    def compare(self) -> None:
        for name in ("log_start_offset", "log_end_offset", "high_watermark", "leader_epoch"):
            assert getattr(self.real, name) == getattr(self.model, name), name
        for epoch in range(-1, self.epoch + 2):
            real = self.real.end_offset_for_epoch(epoch)
            assert real == self.model.end_offset_for_epoch(epoch), epoch


def batch() -> bytes:
    built = build_batch([(None, b"value", (), 0)])
    return bytes(built.buffer) if isinstance(built, RecordBatch) else built


@pytest.mark.parametrize("seed", range(15))
def test_the_model_and_the_log_agree(seed):
    pair = Pair(seed)
    for _ in range(60):
        pair.step()
        pair.compare()
