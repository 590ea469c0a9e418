"""Damages the records of a Fetch answer, as a failing network card or disk does."""

from copy import copy
from typing import Any

from broker.faults.asked import NameOf
from broker.faults.rule import Rule
from broker.log.storage import FileRegion
from common.kafka.protocol.messages.fetch import FetchResponse

_MIN_BATCH_BYTES = 61
_LENGTH_AT, _LENGTH_ENDS = 8, 12


def damaged(answer: FetchResponse, rule: Rule, name_of: NameOf) -> FetchResponse:
    """Return an answer with one changed byte in the first batch of each partition of a rule.

    The byte is the last of the batch, so that only the checksum (CRC-32C) shows the damage.
    """
    answer = copy(answer)
    answer.responses = [copy(each) for each in answer.responses]
    for topic in answer.responses:
        name = topic.topic or name_of(topic.topic_id)
        if rule.topic in (None, name):
            topic.partitions = [copy(each) for each in topic.partitions]
            for partition in topic.partitions:
                if rule.partition in (None, partition.partition_index):
                    partition.records = _damaged(partition.records)
    return answer


def _damaged(records: Any) -> bytes:
    data = bytearray(_bytes(records))
    if len(data) >= _MIN_BATCH_BYTES:
        size = int.from_bytes(data[_LENGTH_AT:_LENGTH_ENDS], "big")
        data[min(_LENGTH_ENDS + size, len(data)) - 1] ^= 0xFF
    return bytes(data)


def _bytes(blob: Any) -> bytes:
    if blob is None:
        return b""
    if isinstance(blob, list | tuple):
        return b"".join(map(_bytes, blob))
    return blob.read() if isinstance(blob, FileRegion) else bytes(blob)
