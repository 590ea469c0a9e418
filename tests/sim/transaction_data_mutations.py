"""Mutations of the data side of transactions: each breaks one rule."""

import pytest

from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group_state import pending_offsets
from broker.coordinator.group_state.last_offsets import LastOffsets
from broker.coordinator.group_state.offset_store import OffsetStore
from broker.log.partition_log import PartitionLog
from broker.log.producers import entry as entry_module
from broker.log.producers.entry import ProducerEntry
from broker.log.producers.state import ProducerState
from broker.log.producers.verification import NO_GUARD

add_marker = ProducerState.add_marker
take_over = ProducerState._take_over
end_transaction = OffsetStore.end_transaction


def append_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Append the first batch of a transaction without verification (before KIP-890)."""
    monkeypatch.setattr(ProducerState, "begin_verification", lambda *_, **__: NO_GUARD)
    monkeypatch.setattr(ProducerState, "_validate_verified", lambda *_: None)


def keep_the_guard_after_a_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the verification of a former transaction count for the next one."""

    def keeping(state, header, marker, offset, timestamp_ms):
        kept = dict(state._verifications)
        aborted = add_marker(state, header, marker, offset, timestamp_ms)
        state._verifications = kept
        return aborted

    monkeypatch.setattr(ProducerState, "add_marker", keeping)


def take_late_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a duplicate marker end the producer's next transaction (before KIP-1228)."""
    monkeypatch.setattr(entry_module, "MARKERS_RAISE_EPOCHS", 99)


def read_to_the_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `read_committed` consumers read open transactions."""
    stable = property(lambda log: log.high_watermark)
    monkeypatch.setattr(PartitionLog, "last_stable_offset", stable)


def read_what_may_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `read_committed` consumers read beyond the high watermark."""

    def stable(log):
        unstable = log.producers.first_unstable_offset
        return log.log_end_offset if unstable is None else max(unstable, log.log_start_offset)

    monkeypatch.setattr(PartitionLog, "last_stable_offset", property(stable))


def note_no_aborted_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the transaction index empty."""

    def forgetting(state, header, marker, offset, timestamp_ms):
        add_marker(state, header, marker, offset, timestamp_ms)

    monkeypatch.setattr(ProducerState, "add_marker", forgetting)


def forget_open_transactions_at_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load a snapshot without its open transactions."""

    def taking(state, entries, timestamp_ms):
        take_over(state, entries, timestamp_ms)
        state.ongoing = {}
        for each in state.producers.values():
            each.transaction_first_offset = -1

    monkeypatch.setattr(ProducerState, "_take_over", taking)


def validate_only_the_epoch(entry, header) -> None:
    entry.validate_epoch(header.producer_epoch)


def remember_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Append a duplicate batch again."""
    monkeypatch.setattr(ProducerEntry, "find_duplicate", lambda *_: None)
    monkeypatch.setattr(ProducerEntry, "validate_data", validate_only_the_epoch)


def let_aborted_offsets_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit a group's offsets also for an abort marker."""
    monkeypatch.setattr(
        OffsetStore,
        "end_transaction",
        lambda store, producer_id, is_commit: end_transaction(store, producer_id, is_commit=True),
    )


def load_offsets_as_if_outside_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a new group coordinator load pending offsets as committed ones."""
    replay = GroupShard.replay
    monkeypatch.setattr(
        GroupShard, "replay", lambda shard, key, value, producer_id: replay(shard, key, value)
    )


def load_without_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a new group coordinator ignore the markers in the log."""
    monkeypatch.setattr(LastOffsets, "end", lambda *_, **__: None)


def commit_by_the_order_of_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the order of markers decide a group's offset, not the order of commits."""
    monkeypatch.setattr(pending_offsets, "overtake_earlier", lambda waiting, producer_id: None)


MUTATIONS = [
    append_without_a_word,
    keep_the_guard_after_a_marker,
    take_late_markers,
    read_to_the_high_watermark,
    read_what_may_be_lost,
    note_no_aborted_transaction,
    forget_open_transactions_at_a_restart,
    remember_no_batch,
    let_aborted_offsets_count,
    load_offsets_as_if_outside_transactions,
    load_without_markers,
    commit_by_the_order_of_markers,
]
