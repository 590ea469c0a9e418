"""A shard is loaded in steps of limited size, for every form of its log."""

from random import Random

import pytest

from broker.coordinator.classic_group.classic_group import ClassicGroup, GroupState
from broker.coordinator.classic_group.member import Member, MemberProtocol
from broker.coordinator.classic_group.records import group_record, offset_record
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group_state.config import GroupConfig
from broker.coordinator.group_state.pending_offsets import OffsetAndMetadata
from broker.coordinator.output import Instant
from broker.model import TopicPartition
from broker.records.build import build_batch
from broker.server.coordinators import shard_loading
from broker.server.coordinators.shard_loading import (
    load,
    load_in_order,
    load_with_transactions,
)
from tests.lib.logs import open_log
from tests.lib.simulated_storage import SimulatedStorage


class Shard:
    """Counts what is replayed."""

    def __init__(self):
        self.values = []

    def start_at(self, log_start_offset):
        assert log_start_offset == 0

    def replay(self, key, value, producer_id_or_offset=-1):
        self.values.append(value)


def log_of(records, per_batch):
    log = open_log(SimulatedStorage())
    keyed = [(b"key-%d" % number, each, (), 0) for number, each in enumerate(records)]
    for start in range(0, len(keyed), per_batch):
        batch = build_batch(keyed[start : start + per_batch])
        log.append_as_leader(batch, leader_epoch=0, timestamp_ms=0)
    return log


def steps_of(load_shard, records, per_batch):
    """Give what each step replays."""
    shard, steps, before = Shard(), [], 0
    for _ in load_shard(shard, log_of(records, per_batch)):
        steps.append(shard.values[before:])
        before = len(shard.values)
    steps.append(shard.values[before:])
    assert shard.values == records
    return steps


@pytest.mark.parametrize("load_shard", [load, load_in_order, load_with_transactions])
@pytest.mark.parametrize("per_batch", [1, 1_000])
def test_a_step_ends_after_so_many_records_be_it_within_a_batch(load_shard, per_batch):
    steps = steps_of(load_shard, [b"v"] * 1_000, per_batch)
    most = 1 + shard_loading.COST_AT_ONCE // shard_loading.COST_OF_A_RECORD
    assert len(steps) > 3
    assert max(map(len, steps)) <= most


@pytest.mark.parametrize("load_shard", [load, load_in_order, load_with_transactions])
def test_a_step_ends_after_so_many_bytes(load_shard):
    steps = steps_of(load_shard, [bytes(10_000)] * 20, 10)
    assert max(map(len, steps)) <= 4


def test_of_each_key_the_last_record_counts_in_the_order_of_those():
    log, shard = open_log(SimulatedStorage()), Shard()
    records = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", None), (None, b"4")]
    for key, value in records:
        batch = build_batch([(key, value, (), 0)])
        log.append_as_leader(batch, leader_epoch=0, timestamp_ms=0)
    assert list(load(shard, log)) == []
    assert shard.values == [b"2", b"3", None]


def test_a_small_shard_is_one_step():
    assert len(steps_of(load, [b"v"] * 100, 10)) == 1


def stable_group(group_id):
    protocols = (MemberProtocol("range", b""),)
    member = Member("member", None, "client", "/127.0.0.1", 60_000, 45_000, protocols)
    group = ClassicGroup(group_id, GroupState.STABLE, protocol_name="range")
    group.add(member, "consumer")
    return group_record(group, [member])


def test_the_sessions_of_very_many_members_begin_in_steps(monkeypatch):
    monkeypatch.setattr("broker.coordinator.group.shard.KEYS_AT_ONCE", 10)
    shard = GroupShard(GroupConfig(), Random(7))
    for number in range(25):
        shard.replay(*stable_group(f"group-{number}"))
    counts = [len(shard.state.timers) for _ in shard.loaded(Instant(0, 0))]
    assert (counts, len(shard.state.timers)) == ([10, 20], 25)


def test_very_many_groups_without_a_member_are_taken_over_in_steps(monkeypatch):
    monkeypatch.setattr("broker.coordinator.group.shard.KEYS_AT_ONCE", 10)
    shard = GroupShard(GroupConfig(), Random(7))
    for number in range(25):
        committed = OffsetAndMetadata(offset=1, commit_timestamp_ms=0)
        partition = TopicPartition("topic", 0)
        shard.replay(*offset_record(f"simple-{number}", partition, committed))
    counts = [len(shard.state.of(ClassicGroup)) for _ in shard.loaded(Instant(0, 0))]
    # The last two are steps over the groups that were made: for each, once more.
    assert counts == [10, 20, 25, 25, 25]
