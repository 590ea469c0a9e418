"""Offset syncs: which are written, which are kept, and what they are translated to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.mirror import OffsetSync, TopicPartition
from mirror.offsets.sync_queue import MAX_DUE, MAX_IN_FLIGHT, SyncQueue
from mirror.offsets.sync_store import OffsetSyncStore

AT = TopicPartition("orders", 0)


def stored(*syncs: tuple[int, int]) -> OffsetSyncStore:
    store = OffsetSyncStore()
    for upstream, downstream in syncs:
        store.replay(OffsetSync(AT, upstream, downstream))
    return store


@pytest.mark.parametrize(
    ("offset", "expected"), [(99, None), (100, 200), (101, 201), (150, 201), (200, 250), (999, 251)]
)
def test_only_what_was_read_is_left_behind(offset: int, expected: int | None) -> None:
    """KAFKA-12468: between two syncs nobody knows how many records were mirrored."""
    assert stored((100, 200), (200, 250)).translate(AT, offset) == expected


def test_negative_lag_cannot_be() -> None:
    """KAFKA-12468: a group far ahead of the syncs was translated past the target's end."""
    assert stored((0, 0)).translate(AT, 1_000_000) == 1


def test_a_source_made_again_forgets_the_old_one() -> None:
    store = stored((1_000, 1_000), (0, 1_001))
    assert store.translate(AT, 1_000) == 1_002
    assert store.kept(AT) == (OffsetSync(AT, 0, 1_001),)


def test_a_target_made_again_forgets_the_old_one() -> None:
    store = stored((1_000, 1_000), (1_001, 0))
    assert store.translate(AT, 1_000) is None
    assert store.translate(AT, 1_001) == 0


def test_what_was_copied_before_a_crash_is_still_translated() -> None:
    """MirrorMaker 2 forgets everything then, and a group that was slow gets no checkpoints."""
    store = stored((0, 0), (50, 50), (100, 100), (90, 120))
    assert store.translate(AT, 60) == 51
    assert store.translate(AT, 95) == 121


def test_a_record_copied_twice_counts_by_its_last_copy() -> None:
    store = stored((90, 90), (100, 100), (100, 107))
    assert store.translate(AT, 100) == 107
    assert store.translate(AT, 95) == 91


def test_history_that_may_have_been_used_is_not_used_otherwise() -> None:
    store = OffsetSyncStore()
    for offset in range(0, 1_000, 100):
        store.replay(OffsetSync(AT, offset, offset), forgets_older=True)
    assert store.translate(AT, 500) is None
    assert store.translate(AT, 900) == 900


STEPS = st.lists(st.tuples(st.integers(1, 300), st.integers(0, 50)), min_size=1, max_size=600)


@given(STEPS)
def test_who_is_behind_reads_no_more_again_than_that(steps: list[tuple[int, int]]) -> None:
    store, all_syncs = OffsetSyncStore(), []
    upstream = downstream = 0
    for gap, left_out in steps:
        upstream += gap
        downstream += max(1, gap - left_out)
        sync = OffsetSync(AT, upstream, downstream)
        all_syncs.append(sync)
        store.replay(sync)
    kept = store.kept(AT)
    assert kept[0] == all_syncs[0]
    assert kept[-1] == all_syncs[-1]
    assert len(kept) <= 65
    newest, kept_set = all_syncs[-1].upstream_offset, set(kept)
    for place, sync in enumerate(all_syncs):
        if sync in kept_set:
            continue
        # What stands for it is at most as far before it as it is before the newest.
        stands = max(
            each.upstream_offset for each in kept if each.upstream_offset < sync.upstream_offset
        )
        behind = newest - sync.upstream_offset
        assert sync.upstream_offset - stands <= behind, place


@given(STEPS, st.lists(st.integers(0, 200_000), min_size=2, max_size=20))
def test_further_in_the_source_is_never_further_back_in_the_target(
    steps: list[tuple[int, int]], offsets: list[int]
) -> None:
    store = OffsetSyncStore()
    upstream = downstream = 0
    for gap, left_out in steps:
        upstream += gap
        downstream += max(1, gap - left_out)
        store.replay(OffsetSync(AT, upstream, downstream))
    found = [-1 if (at := store.translate(AT, each)) is None else at for each in sorted(offsets)]
    assert found == sorted(found)


def written(queue: SyncQueue) -> list[tuple[int, int]]:
    taken = queue.take()
    for _ in taken:
        queue.written()
    return [(each.upstream_offset, each.downstream_offset) for each in taken]


def test_the_first_every_so_often_and_the_last_when_offsets_are_kept() -> None:
    queue, told = SyncQueue(100), []
    for offset in range(250):
        queue.stored(AT, offset, offset)
        told += written(queue)
    assert told == [(0, 0), (101, 101), (202, 202)]
    assert not queue.is_idle
    queue.promote()
    assert written(queue) == [(249, 249)]
    assert queue.is_idle


def test_gaps_and_a_target_that_went_back_are_told_at_once() -> None:
    queue, told = SyncQueue(100), []
    for upstream, downstream in [(0, 0), (1, 1), (3, 2), (4, 3), (5, 0), (6, 1)]:
        queue.stored(AT, upstream, downstream)
        told += written(queue)
    assert told == [(0, 0), (3, 2), (5, 0)]


def test_what_copying_outruns_is_kept_in_its_order() -> None:
    """A group in the middle would be led back to the beginning otherwise."""
    queue = SyncQueue(5)
    for offset in range(20):
        queue.stored(AT, offset, offset)
    queue.promote()
    assert written(queue) == [(0, 0), (6, 6), (12, 12), (18, 18), (19, 19)]


def test_of_very_much_the_newest_stands_for_the_rest() -> None:
    queue, told = SyncQueue(0), []
    for offset in range(MAX_DUE + 40):
        queue.stored(AT, offset, offset)
    while found := written(queue):
        told += found
    assert told[:2] == [(0, 0), (1, 1)]
    assert told[-2:] == [(MAX_DUE - 2, MAX_DUE - 2), (MAX_DUE + 39, MAX_DUE + 39)]


def test_few_are_in_flight_and_partitions_take_turns() -> None:
    queue = SyncQueue(0)
    places = [TopicPartition("orders", number) for number in range(MAX_IN_FLIGHT + 5)]
    for at in places:
        queue.stored(at, 0, 0)
    first = queue.take()
    assert len(first) == MAX_IN_FLIGHT
    assert queue.take() == []
    queue.stored(places[0], 7, 1)
    queue.stored(places[0], 9, 2)
    for _ in first:
        queue.written()
    assert queue.take() == [
        *(OffsetSync(at, 0, 0) for at in places[MAX_IN_FLIGHT:]),
        OffsetSync(places[0], 7, 1),
        OffsetSync(places[0], 9, 2),
    ]


def test_what_was_lost_is_not_written_behind_a_later_one() -> None:
    queue = SyncQueue(0)
    queue.stored(AT, 0, 0)
    queue.stored(AT, 1, 1)
    first, second = queue.take()
    queue.lost(first)
    queue.written()
    queue.promote()
    assert queue.take() == []
    assert queue.is_idle
    assert second == OffsetSync(AT, 1, 1)


def test_what_was_lost_is_written_later_unless_it_is_old_by_then() -> None:
    queue = SyncQueue(100)
    queue.stored(AT, 0, 0)
    (sync,) = queue.take()
    queue.lost(sync)
    queue.promote()
    (again,) = queue.take()
    assert again == sync
    queue.stored(AT, 1, 1)
    queue.lost(again)
    queue.promote()
    assert queue.take() == [OffsetSync(AT, 1, 1)]
