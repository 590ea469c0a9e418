"""The sampled statistics of the quorum."""

import math

from broker.server.quorum.quorum_activity import SAMPLE_MS, QuorumActivity, Samples


def test_numbers_of_the_last_two_samples_count():
    samples = Samples(0)
    assert math.isnan(samples.average(10))
    assert math.isnan(samples.largest(10))
    assert samples.rate(10) == 0
    samples.add(60, 1_000)
    samples.add(30, 2_000)
    assert (samples.average(2_000), samples.largest(2_000)) == (45, 60)
    assert samples.rate(2_000) == 90 / 30
    samples.add(3, SAMPLE_MS)
    assert (samples.average(SAMPLE_MS), samples.largest(SAMPLE_MS)) == (31, 60)
    assert samples.rate(SAMPLE_MS + 15_000) == 93 / 45


def test_old_numbers_are_forgotten():
    samples = Samples(0)
    samples.add(60, 1_000)
    samples.add(3, SAMPLE_MS)
    assert samples.largest(2 * SAMPLE_MS) == 3
    assert math.isnan(samples.largest(3 * SAMPLE_MS))
    assert samples.rate(3 * SAMPLE_MS) == 0
    samples.add(1, 10 * SAMPLE_MS)
    assert (samples.largest(10 * SAMPLE_MS), samples.rate(10 * SAMPLE_MS)) == (1, 1 / 30)


def test_a_commit_is_as_late_as_its_append_is_early():
    activity = QuorumActivity(5, 0)
    activity.note_log(7, 5, 10, is_leader=True)
    activity.note_log(8, 6, 20, is_leader=True)
    assert math.isnan(activity.commit_latencies_ms.average(20))
    activity.note_log(8, 8, 40, is_leader=True)
    assert activity.commit_latencies_ms.average(40) == 25
    assert activity.commit_latencies_ms.largest(40) == 30
    assert activity.appended_records.rate(40) == 3 / 30
    assert activity.fetched_records.rate(40) == 0


def test_what_a_leader_appended_and_lost_has_no_latency():
    activity = QuorumActivity(0, 0)
    activity.note_log(4, 0, 10, is_leader=True)
    activity.note_log(2, 2, 20, is_leader=False)
    activity.note_log(6, 6, 30, is_leader=False)
    assert activity.fetched_records.rate(30) == 4 / 30
    assert math.isnan(activity.commit_latencies_ms.average(30))


def test_idle_is_what_is_not_busy():
    activity = QuorumActivity(0, 0)
    assert activity.idle_ratio(0) == 1
    activity.busy_ms.add(15_000, 20_000)
    assert activity.idle_ratio(20_000) == 0.5
    activity.busy_ms.add(90_000, 25_000)
    assert activity.idle_ratio(25_000) == 0
