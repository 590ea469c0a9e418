"""The mutator stays within bounds: the guided fuzzer mutates its own mutations."""

from random import Random

from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.fuzz.mutations import MAX_VALUES, _count, mutate_message


def test_a_message_that_is_mutated_again_and_again_stays_small() -> None:
    largest = 0
    for seed in range(2):
        random = Random(seed)
        message = MetadataRequest(topics=[MetadataRequestTopic(name="orders")] * 40)
        for _ in range(60):
            mutate_message(message, 9, random)
            largest = max(largest, _count(message))
    assert 1_000 < largest < 2 * MAX_VALUES
