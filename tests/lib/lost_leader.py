"""An admin client that loses the leaders during a request for offsets."""

from collections.abc import Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from confluent_kafka import OFFSET_INVALID, TopicPartition


class LostLeader:
    """Answers like librdkafka in this case; see `tests/common/kafka/test_listed_offsets.py`."""

    def list_offsets(self, asked: Iterable[TopicPartition], **_: Any) -> Any:
        futures: dict[TopicPartition, Future[Any]] = {at: Future() for at in asked}
        for future in futures.values():
            future.set_result(SimpleNamespace(offset=OFFSET_INVALID))
        return futures
