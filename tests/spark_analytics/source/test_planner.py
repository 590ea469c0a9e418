"""What a query reads next, against a Kafka that is a dict."""

import pytest

from spark_analytics.source.edges import UnknownTopicError, end_offsets, start_offsets
from spark_analytics.source.offsets import OffsetRange
from spark_analytics.source.options import OptionError, parse_source_options
from spark_analytics.source.planner import DataLossError, Planner

A, B, C = ("t", 0), ("t", 1), ("t", 2)


class FakeKafka:
    """Logs as (first, end) offsets; the record at offset n has the time 10 * n."""

    def __init__(self, logs):
        self.logs = dict(logs)
        self.lagging = []  # answers of a broker that is behind, given first

    def partitions(self):
        return sorted(self.logs)

    def earliest(self, keys):
        return {key: self.logs[key][0] for key in keys}

    def latest(self, keys):
        if self.lagging:
            return self.lagging.pop(0)
        return {key: self.logs[key][1] for key in keys}

    def at_times(self, timestamps_ms):
        found = {}
        for key, time_ms in timestamps_ms.items():
            first, end = self.logs[key]
            offset = max(first, -(-time_ms // 10))
            found[key] = offset if offset < end else -1
        return found


def options(is_stream=True, /, **more):
    needed = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}
    return parse_source_options({**needed, **more}, is_stream=is_stream)


def planner(kafka, is_stream=True, /, **more):
    return Planner(options(is_stream, **more), kafka)


@pytest.fixture
def kafka():
    return FakeKafka({A: (5, 100), B: (0, 10)})


def test_a_stream_starts_where_it_is_told(kafka):
    assert planner(kafka).first_offsets() == {A: 100, B: 10}
    assert planner(kafka, startingOffsets="earliest").first_offsets() == {A: 5, B: 0}
    named = '{"t": {"0": -2, "1": 7}}'
    assert planner(kafka, startingOffsets=named).first_offsets() == {A: 5, B: 7}


def test_named_offsets_must_be_complete(kafka):
    for named in ('{"t": {"0": 1}}', '{"t": {"0": 1, "1": 1, "2": 1}}'):
        with pytest.raises(OptionError, match="every partition"):
            planner(kafka, startingOffsets=named).first_offsets()


def test_a_topic_that_is_not_there_is_named(kafka):
    with pytest.raises(UnknownTopicError, match="ghost"):
        planner(kafka, subscribe="t,ghost").first_offsets()


def test_a_start_by_time(kafka):
    start = options(startingTimestamp="85", startingOffsetsByTimestampStrategy="latest")
    assert start_offsets(start, kafka) == {A: 9, B: 9}
    late = options(startingTimestamp="95", startingOffsetsByTimestampStrategy="latest")
    assert start_offsets(late, kafka) == {A: 10, B: 10}
    with pytest.raises(OptionError, match="t-1"):
        start_offsets(options(startingTimestamp="95"), kafka)


def test_an_end_by_time_is_the_end_where_nothing_is_that_young(kafka):
    end = options(False, endingOffsetsByTimestamp='{"t": {"0": 500, "1": 500}}')
    assert end_offsets(end, kafka) == {A: 50, B: 10}


def test_a_batch_is_everything_there_is(kafka):
    assert planner(kafka, False).batch_ranges() == [
        OffsetRange("t", 0, 5, 100),
        OffsetRange("t", 1, 0, 10),
    ]


def test_a_batch_that_would_end_before_it_starts_has_lost_data(kafka):
    named = '{"t": {"0": 5, "1": 50}}'
    with pytest.raises(DataLossError):
        planner(kafka, False, startingOffsets=named).batch_ranges()
    some = planner(kafka, False, startingOffsets=named, failOnDataLoss="false")
    assert some.batch_ranges() == [OffsetRange("t", 0, 5, 100)]


def test_a_micro_batch_is_limited(kafka):
    plan = planner(kafka)
    assert plan.next_offsets({A: 50, B: 0}, 12) == {A: 60, B: 2}
    assert plan.next_offsets({A: 50, B: 0}, None) == {A: 100, B: 10}
    assert plan.latest == {A: 100, B: 10}


def test_with_nothing_new_the_start_is_the_answer(kafka):
    assert planner(kafka).next_offsets({A: 100, B: 10}, 5) == {A: 100, B: 10}


def test_available_now_ends_where_the_logs_ended(kafka):
    plan = planner(kafka)
    plan.end_at_latest()
    kafka.logs |= {A: (5, 500), C: (0, 3)}
    assert plan.next_offsets({A: 99, B: 10}, None) == {A: 100, B: 10}
    assert plan.next_offsets({A: 100, B: 10}, None) == {A: 100, B: 10}


def test_a_new_partition_is_read_from_its_first_record(kafka):
    plan = planner(kafka)
    kafka.logs[C] = (0, 30)
    end = plan.next_offsets({A: 100, B: 10}, 20)
    assert end == {A: 100, B: 10, C: 20}
    assert plan.stream_ranges({A: 100, B: 10}, end) == [OffsetRange("t", 2, 0, 20)]


def test_a_new_partition_whose_first_records_are_gone_is_data_loss(kafka):
    kafka.logs[C] = (4, 30)
    with pytest.raises(DataLossError, match="new partitions"):
        planner(kafka).stream_ranges({A: 100, B: 10}, {A: 100, B: 10, C: 30})
    going_on = planner(kafka, failOnDataLoss="false")
    assert going_on.stream_ranges({A: 100, B: 10}, {A: 100, B: 10, C: 30}) == [
        OffsetRange("t", 2, 4, 30)
    ]


def test_a_topic_made_anew_is_data_loss(kafka):
    kafka.logs[A] = (0, 7)
    with pytest.raises(DataLossError, match="before what was read"):
        planner(kafka).next_offsets({A: 100, B: 10}, None)
    going_on = planner(kafka, failOnDataLoss="false")
    assert going_on.next_offsets({A: 100, B: 10}, None) == {A: 7, B: 10}
    assert going_on.stream_ranges({A: 100, B: 10}, {A: 7, B: 10}) == []
    assert going_on.stream_ranges({A: 7, B: 10}, {A: 9, B: 10}) == [OffsetRange("t", 0, 7, 9)]


def test_a_partition_that_is_gone_is_data_loss(kafka):
    del kafka.logs[B]
    with pytest.raises(DataLossError, match="gone"):
        planner(kafka).next_offsets({A: 100, B: 10}, None)
    going_on = planner(kafka, failOnDataLoss="false")
    assert going_on.next_offsets({A: 100, B: 10}, None) == {A: 100}


def test_a_leader_that_lags_behind_is_asked_again(kafka):
    kafka.lagging = [{A: 90, B: 10}]
    assert planner(kafka).next_offsets({A: 100, B: 10}, None) == {A: 100, B: 10}


def test_a_broker_that_does_not_know_its_partitions_yet_is_asked_again(kafka):
    kafka.lagging = [{}, {B: 10}]
    pauses = []
    plan = Planner(options(failOnDataLoss="false"), kafka, pause=lambda: pauses.append(1))
    assert plan.next_offsets({A: 99, B: 10}, None) == {A: 100, B: 10}
    assert len(pauses) == 2
