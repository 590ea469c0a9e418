"""What a member says about records that it has: the batches of a ShareFetch or ShareAcknowledge.

type        meaning                                   state afterwards
0 GAP       the log has no record at this offset      ARCHIVED
1 ACCEPT    processed                                 ACKNOWLEDGED
2 RELEASE   not processed, somebody else may try      AVAILABLE, or ARCHIVED at the limit
3 REJECT    cannot be processed by anybody            ARCHIVED
4 RENEW     still being processed (KIP-1222)          ACQUIRED, with a new lock
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import groupby
from typing import NamedTuple, Protocol

from broker.share.in_flight import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE, RecordState
from common.kafka.errors import ErrorCode, KafkaError

MAX_ACKNOWLEDGE_TYPES = 10_000
"""Of one partition in a request. A group locks at most 4,000 records of a partition unless
`group.share.max.partition.max.record.locks` says more; each type takes some microseconds."""


class AcknowledgeType(IntEnum):
    """What a member says about one record, by its number in requests."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


STATE_AFTER: dict[int, RecordState] = {
    AcknowledgeType.GAP: ARCHIVED,
    AcknowledgeType.ACCEPT: ACKNOWLEDGED,
    AcknowledgeType.RELEASE: AVAILABLE,
    AcknowledgeType.REJECT: ARCHIVED,
    AcknowledgeType.RENEW: ACQUIRED,
}


class Batch(Protocol):
    """A batch of a request; both offsets are inclusive."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Acknowledgement(NamedTuple):
    """One acknowledgement of the records in [start, end)."""

    start_offset: int
    end_offset: int
    type: int


def validate_batches(batches: Sequence[Batch], *, may_renew: bool) -> None:
    """Raise INVALID_REQUEST unless the batches of one partition ascend and have valid types.

    As in Kafka, a batch may begin with the last record of the one before it only if that one
    renews it; else the record has just been acknowledged: INVALID_RECORD_STATE.
    """
    _validate_count(batches)
    previous, is_renewed = -1, True
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first > last:
            raise _invalid(f"The first offset {first} is above the last one, {last}")
        if first == previous and not is_renewed:
            raise KafkaError(
                ErrorCode.INVALID_RECORD_STATE, f"The record at {first} is acknowledged twice"
            )
        if first < previous:
            raise _invalid(f"The batch at {first} begins within the one before it")
        if not types:
            raise _invalid(f"The batch at {first} has no acknowledge type")
        if len(types) > 1 and len(types) != last - first + 1:
            raise _invalid(f"{len(types)} acknowledge types for the batch {first} to {last}")
        for kind in set(types):
            if kind not in STATE_AFTER:
                raise _invalid(f"The acknowledge type {kind} is unknown")
            if kind == AcknowledgeType.RENEW and not may_renew:
                raise _invalid("A renewal in a request that is not marked as such")
        previous, is_renewed = last, types[-1] == AcknowledgeType.RENEW


def _validate_count(batches: Sequence[Batch]) -> None:
    if sum(len(batch.acknowledge_types) for batch in batches) > MAX_ACKNOWLEDGE_TYPES:
        raise _invalid(f"More than {MAX_ACKNOWLEDGE_TYPES} acknowledge types for a partition")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def acknowledgements(batches: Sequence[Batch]) -> Iterator[Acknowledgement]:
    """Divide valid batches into ranges with one type each."""
    for batch in batches:
        start, types = batch.first_offset, batch.acknowledge_types
        if len(types) == 1:
            yield Acknowledgement(start, batch.last_offset + 1, types[0])
            continue
        for kind, equal in groupby(types):
            end = start + sum(1 for _ in equal)
            yield Acknowledgement(start, end, kind)
            start = end
