"""Bugs to plant in a share-state shard: each omits or changes one rule."""

from dataclasses import replace

from broker.coordinator.share_state import requests, state, table


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
