"""Bugs to plant in share-partitions and share coordinators: each omits or changes one rule."""

from broker.coordinator.share_state import requests as coordinator_requests
from broker.coordinator.share_state.batches import combined
from broker.coordinator.share_state.state import SharePartition as StoredSharePartition
from broker.server.network.later import happened
from broker.server.replication.parked_fetches import ParkedFetches
from broker.server.share.led_share_partition import LedSharePartition
from broker.server.share.share_partitions import SharePartitions
from broker.share import share_partition
from broker.share.acquisition import Acquisition
from broker.share.in_flight import ACQUIRED, AVAILABLE, Run
from broker.share.share_partition import SharePartition


def what_is_being_written_may_be_acknowledged(patch):
    patch.setattr(Run, "is_acquired", property(lambda run: run.state is ACQUIRED))


def records_of_others_may_be_acknowledged(patch):
    real = SharePartition._validate

    def blind(share, member_id, each, policy):
        for run in share.runs:
            run.member_id = run.member_id and member_id
        real(share, member_id, each, policy)

    patch.setattr(SharePartition, "_validate", blind)


def a_member_is_answered_before_its_change_is_written(patch):
    real = LedSharePartition._write

    def early(led, change, share):
        real(led, change, share)
        return happened(None)

    patch.setattr(LedSharePartition, "_write", early)


def a_failed_write_counts_as_done(patch):
    real = SharePartition.complete

    def hopeful(share, change, *, is_written, now_ms):
        real(share, change, is_written=True, now_ms=now_ms)

    patch.setattr(SharePartition, "complete", hopeful)


def the_start_moves_over_available_records(patch):
    patch.setattr(share_partition, "FINAL", share_partition.FINAL | {AVAILABLE})


def the_delivery_limit_is_not_known(patch):
    patch.setattr(share_partition, "_after", lambda state, run, limit: state)


def a_released_record_keeps_its_first_count(patch):
    real = Run.acquire

    def once(run, member_id, deadline_ms):
        real(run, member_id, deadline_ms)
        run.delivery_count = 1

    patch.setattr(Run, "acquire", once)


def acquired_records_may_be_acquired(patch):
    real = Run.acquire

    def again(run, member_id, deadline_ms):
        run.state = AVAILABLE
        real(run, member_id, deadline_ms)

    patch.setattr(Run, "acquire", again)
    patch.setattr(Run, "is_available", property(lambda run: run.state in (AVAILABLE, ACQUIRED)))


def old_leaders_are_not_fenced(patch):
    patch.setattr(coordinator_requests, "validate_leader_epoch", lambda state, epoch: None)


def a_new_leader_takes_only_the_start_offset(patch):
    real = SharePartition.__init__

    def forgetful(share, start_offset, *, state_epoch=0, batches=()):
        real(share, start_offset, state_epoch=state_epoch)

    patch.setattr(SharePartition, "__init__", forgetful)


def a_late_write_moves_the_stored_start_back(patch):
    real = StoredSharePartition.updated

    def obedient(state, update):
        updated = real(state, update)
        start_offset = state.start_offset if update.start_offset < 0 else update.start_offset
        object.__setattr__(updated, "start_offset", start_offset)
        batches = combined((*state.batches, *update.batches), start_offset)
        object.__setattr__(updated, "batches", batches)
        return updated

    patch.setattr(StoredSharePartition, "updated", obedient)


def holes_of_a_read_are_available(patch):
    patch.setattr(share_partition, "undeliverable", lambda position, batches: ())


def a_throttled_read_takes_nothing(patch):
    patch.setattr(Acquisition, "_throttled", lambda acquisition, run, count: 0)


def records_that_come_back_wake_nobody(patch):
    patch.setattr(LedSharePartition, "wake", lambda led: None)


def a_lock_that_ends_wakes_nobody(patch):
    real, wake = LedSharePartition._on_timer, LedSharePartition.wake

    def silent(led):
        led_class = type(led)
        led_class.wake = lambda led: None
        try:
            real(led)
        finally:
            led_class.wake = wake

    patch.setattr(LedSharePartition, "_on_timer", silent)


def only_the_first_who_waits_is_woken(patch):
    real = ParkedFetches.wake
    patch.setattr(ParkedFetches, "wake", lambda parked, fetches: real(parked, list(fetches)[:1]))


def a_share_partition_is_read_before_its_last_write(patch):
    real = SharePartitions._forget

    def hasty(table, led):
        real(table, led)
        table._ending.clear()

    patch.setattr(SharePartitions, "_forget", hasty)


MUTATIONS = [
    what_is_being_written_may_be_acknowledged,
    records_of_others_may_be_acknowledged,
    a_member_is_answered_before_its_change_is_written,
    a_failed_write_counts_as_done,
    the_start_moves_over_available_records,
    the_delivery_limit_is_not_known,
    a_released_record_keeps_its_first_count,
    acquired_records_may_be_acquired,
    old_leaders_are_not_fenced,
    a_new_leader_takes_only_the_start_offset,
    a_late_write_moves_the_stored_start_back,
    holes_of_a_read_are_available,
    a_throttled_read_takes_nothing,
    records_that_come_back_wake_nobody,
    a_lock_that_ends_wakes_nobody,
    only_the_first_who_waits_is_woken,
    a_share_partition_is_read_before_its_last_write,
]
