"""What was in a message is freed a few entries at a time, and what somebody keeps stays whole."""

import weakref

import pytest

from broker.protocol.framing import DecodeError, begin_request, encode_request, finish
from broker.protocol.message import Message
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.server.network.letting_go import let_go, let_go_of_begun
from broker.server.network.walks import QUICK_ITEMS_PER_STEP

MANY = 4 * QUICK_ITEMS_PER_STEP


class Watched(str):
    """A name that tells of its end: an entry of a message tells nobody of its own."""

    __slots__ = ("__weakref__",)


def topic(partition_count: int) -> ListOffsetsTopic:
    partitions = [ListOffsetsPartition() for _ in range(partition_count)]
    for partition in partitions:
        partition.timestamp = Watched()  # type: ignore[assignment]
    return ListOffsetsTopic(name=Watched(), partitions=partitions)


@pytest.mark.parametrize(("topic_count", "partition_count"), [(MANY, 0), (1, MANY), (64, 64)])
def test_no_step_frees_very_many(topic_count: int, partition_count: int) -> None:
    request = ListOffsetsRequest(topics=[topic(partition_count) for _ in range(topic_count)])
    names = [
        weakref.ref(name)
        for entry in request.topics
        for name in (entry.name, *(partition.timestamp for partition in entry.partitions))
    ]
    steps = let_go(request)
    left = [len(names), *(sum(name() is not None for name in names) for _ in steps)]
    assert request.topics == []
    assert left[-1] == 0
    assert max(left[step - 1] - left[step] for step in range(1, len(left))) <= QUICK_ITEMS_PER_STEP


def test_what_somebody_keeps_is_not_touched() -> None:
    topics = [topic(MANY)]
    request = ListOffsetsRequest(topics=topics)
    for _ in let_go(request):
        pass
    assert request.topics == []
    assert len(topics) == 1
    assert len(topics[0].partitions) == MANY


def test_what_was_decoded_of_no_message_is_let_go_of_in_steps() -> None:
    topics = [ListOffsetsTopic(name=f"{number:040}") for number in range(MANY)]
    frame = encode_request(2, 11, 1, None, ListOffsetsRequest(topics=topics))[4:]
    _, pieces = begin_request(frame[:-20])
    assert not isinstance(pieces, Message)
    with pytest.raises(DecodeError) as refused:
        finish(pieces)
    assert sum(1 for _ in let_go_of_begun(refused.value)) > MANY / QUICK_ITEMS_PER_STEP
