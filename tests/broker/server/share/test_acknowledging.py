"""The acknowledgements that a request has for each partition."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from broker.server.share import acknowledging
from broker.server.share.acknowledging import TYPES_PER_STEP, Acknowledging, batches_in
from broker.share.session import SessionKey
from common.kafka.protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
)

TOPIC_ID = bytes(range(16))


def partition(index: int, *firsts: int) -> AcknowledgePartition:
    batches = [
        AcknowledgementBatch(first_offset=first, last_offset=first, acknowledge_types=[1])
        for first in firsts
    ]
    return AcknowledgePartition(partition_index=index, acknowledgement_batches=batches)


def test_no_acknowledgement_of_a_partition_that_is_named_twice_is_lost() -> None:
    named = [[partition(0, 3, 5), partition(1)], [partition(0, 7)]]
    topics = [AcknowledgeTopic(topic_id=TOPIC_ID, partitions=partitions) for partitions in named]
    found = {
        key: [batch.first_offset for batch in batches]
        for key, batches in batches_in(topics).items()
    }
    assert found == {(TOPIC_ID, 0): [3, 5, 7], (TOPIC_ID, 1): []}


def test_a_step_ends_after_a_number_of_acknowledgements(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    original = acknowledging.validate_batches

    def counted(batches: Any, *, may_renew: bool) -> None:
        begun.append(sum(len(batch.acknowledge_types) for batch in batches))
        original(batches, may_renew=may_renew)

    monkeypatch.setattr(acknowledging, "validate_batches", counted)
    metrics = SimpleNamespace(total_acknowledgements=Counter(), failed_acknowledgements=Counter())
    shares: Any = SimpleNamespace(
        name_of=lambda key: "orders", metrics=metrics, find=lambda group_id, key: None
    )
    batch = AcknowledgementBatch(first_offset=0, last_offset=599, acknowledge_types=[1, 2] * 300)
    batches = {(TOPIC_ID, index): [batch] for index in range(10)}
    member = SessionKey("g", "m")
    of_step = []
    for _ in Acknowledging(shares, member, batches, may_renew=False).begin(frozenset()):
        of_step.append(sum(begun))
        begun.clear()
    assert of_step == [1_200] * 5
    assert max(of_step) < 2 * TYPES_PER_STEP
