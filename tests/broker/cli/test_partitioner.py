"""The partitions that lines go to, as Kafka's console producer spreads them."""

import random
from collections import Counter

import pytest

from broker.cli.arguments import ToolFailed
from broker.cli.clients.partitioner import PACKAGE, Partitioner, take_partitioner

LINE = 93
"""With what a record takes besides, 100 bytes."""


def chosen(settings: dict[str, str], keys: list[bytes | None]) -> list[int | None]:
    partitioner: Partitioner = take_partitioner(settings, random.Random(1))
    return [partitioner.partition(key, LINE, 4) for key in keys]


def test_few_lines_without_keys_go_to_one_partition():
    assert len(set(chosen({}, [None] * 10))) == 1


def test_many_lines_go_to_a_partition_for_each_batch():
    partitions = chosen({"batch.size": "1000"}, [None] * 4000)
    runs = [partitions[start : start + 10] for start in range(0, 4000, 10)]
    assert all(len(set(run)) == 1 for run in runs)
    counts = Counter(partitions)
    assert set(counts) == {0, 1, 2, 3}
    assert min(counts.values()) > 700


def test_a_line_with_a_key_goes_by_its_hash_unless_keys_are_ignored():
    assert chosen({}, [b"k", b"l"]) == [None, None]
    assert None not in chosen({"partitioner.ignore.keys": "true"}, [b"k", b"l"])


def test_round_robin_goes_from_partition_to_partition_whatever_the_key():
    settings = {"partitioner.class": f"{PACKAGE}.RoundRobinPartitioner"}
    assert chosen(settings, [None, b"k", None, b"k", b"k"]) == [0, 1, 2, 3, 0]


def test_a_partitioner_of_the_library_chooses_each_record_anew():
    settings = {"partitioner": "random"}
    assert chosen(settings, [None]) == [None]
    assert settings == {"partitioner": "random", "sticky.partitioning.linger.ms": "0"}


def test_settings_of_the_choice_are_not_left_for_the_library():
    settings = {"partitioner.class": "RoundRobinPartitioner", "partitioner.ignore.keys": "true"}
    take_partitioner(settings, random.Random(1))
    assert settings == {}


def test_a_partitioner_that_is_not_known_is_refused():
    with pytest.raises(ToolFailed, match=r"no partitioner org\.example\.Mine; there is"):
        take_partitioner({"partitioner.class": "org.example.Mine"}, random.Random(1))
