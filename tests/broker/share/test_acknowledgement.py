"""The batches of acknowledgements that a request may have."""

import pytest

from broker.share.acknowledgement import (
    MAX_ACKNOWLEDGE_TYPES,
    Acknowledgement,
    acknowledgements,
    validate_batches,
)
from broker.share.acquisition import Demand, LogBatch, SharePolicy
from broker.share.share_partition import SharePartition
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.share_fetch import AcknowledgementBatch


def batch(first: int, last: int, *types: int) -> AcknowledgementBatch:
    return AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))


@pytest.mark.parametrize(
    "batches",
    [
        [batch(5, 4, 1)],
        [batch(0, 9, 1), batch(8, 12, 1)],
        [batch(10, 12, 1), batch(0, 5, 1)],
        [batch(0, 9)],
        [batch(0, 9, 1, 1)],
        [batch(0, 1, 1, 5)],
        [batch(0, 1, -1)],
        [batch(0, 1, 4)],
        [batch(-5, -2, 1)],
        [batch(0, 2**63 - 1, 1, 1)],
        [batch(0, MAX_ACKNOWLEDGE_TYPES, *[1, 2] * (MAX_ACKNOWLEDGE_TYPES // 2), 1)],
        [batch(number, number, 1) for number in range(MAX_ACKNOWLEDGE_TYPES + 1)],
    ],
)
def test_invalid_batches_are_refused(batches: list[AcknowledgementBatch]):
    with pytest.raises(KafkaError) as caught:
        validate_batches(batches, may_renew=False)
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_a_record_in_two_batches_is_refused_as_kafka_does():
    with pytest.raises(KafkaError) as caught:
        validate_batches([batch(0, 9, 1), batch(9, 12, 1)], may_renew=False)
    assert caught.value.code == ErrorCode.INVALID_RECORD_STATE


@pytest.mark.parametrize("after_it", [1, 4])
def test_a_record_may_be_renewed_and_then_acknowledged_in_one_request(after_it: int) -> None:
    batches = [batch(0, 4, 1, 1, 1, 1, 4), batch(4, 6, after_it)]
    validate_batches(batches, may_renew=True)
    share = SharePartition(0)
    share.acquire(Demand("m", 7, 7), [LogBatch(0, 7)], SharePolicy(), 0)
    change = share.acknowledge("m", list(acknowledgements(batches)), SharePolicy(), 1)
    assert change is not None
    share.complete(change, is_written=True, now_ms=2)
    assert share.start_offset == (7 if after_it == 1 else 4)


def test_what_lies_before_the_first_record_is_ignored_as_kafka_does() -> None:
    validate_batches([batch(-1, 3, 1)], may_renew=False)


def test_valid_batches_are_divided_into_ranges_of_one_type():
    batches = [batch(0, 9, 1), batch(20, 24, 1, 1, 2, 4, 4), batch(30, 30, 0)]
    validate_batches(batches, may_renew=True)
    assert list(acknowledgements(batches)) == [
        Acknowledgement(0, 10, 1),
        Acknowledgement(20, 22, 1),
        Acknowledgement(22, 23, 2),
        Acknowledgement(23, 25, 4),
        Acknowledgement(30, 31, 0),
    ]
