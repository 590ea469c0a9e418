"""What a leader may call committed."""

import pytest

from broker.raft.config import NEVER_MS
from broker.raft.progress import (
    ReplicaProgress,
    compute_high_watermark,
    majority_end_offset,
    majority_heard_ms,
)


@pytest.mark.parametrize(
    ("end_offsets", "reached"),
    [
        ([9], 9),
        ([9, 4], 4),
        ([9, 4, -1], 4),
        ([9, 4, 7], 7),
        ([9, 9, 1, 1], 1),
        ([9, 8, 7, 1, 1], 7),
    ],
)
def test_the_high_watermark_is_what_a_majority_has(end_offsets, reached):
    assert majority_end_offset(end_offsets) == reached


def test_figure_8_an_entry_of_an_older_term_is_not_committed_by_counting():
    # "To eliminate problems like the one in Figure 8, Raft never commits log entries from previous
    # terms by counting replicas." (section 5.4.2) The leader's term begins at offset 5.
    assert compute_high_watermark([7, 5, 5], epoch_start_offset=5, high_watermark=2) == 2
    # "once an entry from the current term has been committed in this way, then all prior entries
    # are committed indirectly"
    assert compute_high_watermark([7, 6, 5], epoch_start_offset=5, high_watermark=2) == 6


def test_the_high_watermark_never_goes_back():
    assert compute_high_watermark([9, 6, 6], epoch_start_offset=0, high_watermark=8) == 8


def test_progress_never_goes_back():
    replica = ReplicaProgress(last_fetch_ms=10)
    replica.note_fetch(5)
    replica.note_position(7, leader_end_offset=7, now_ms=20)
    replica.note_position(3, leader_end_offset=9, now_ms=30)
    assert (replica.last_fetch_ms, replica.end_offset) == (10, 7)
    assert replica.last_caught_up_ms == 20


def test_a_leader_counts_itself_when_it_looks_for_its_majority():
    progress = {voter: ReplicaProgress(last_fetch_ms=100 * voter) for voter in (1, 2, 3)}
    assert majority_heard_ms(progress, 1, (1, 2, 3)) == 300
    assert majority_heard_ms({1: progress[1]}, 1, (1,)) == NEVER_MS
