"""Offsets listed by an admin client of librdkafka, whose answers may be wrong."""

from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

_NOT_TOLD: Final = "the leader was lost before it told the offset"


def listed_offset(answer: Future[Any], timeout_seconds: float | None = None) -> int:
    """Return the offset of one partition that `AdminClient.list_offsets` was asked for.

    Raises KafkaException, with LEADER_NOT_AVAILABLE too where the leader went away while it was
    asked: librdkafka calls that a success, at the offset -1001 (its
    `rd_kafka_ListOffsets_response_merge` takes no error of a request over). A caller that took it
    for the end of a partition would believe that it had read all of it. Raises TimeoutError after
    `timeout_seconds`.
    """
    offset: int = answer.result(timeout_seconds).offset
    if offset == OFFSET_INVALID:
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, _NOT_TOLD))
    return offset
