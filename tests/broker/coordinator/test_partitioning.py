"""Group partitions agree with Kafka's; the numbers are from Apache Kafka 4.3's own classes."""

import pytest

from broker.coordinator.partitioning import java_string_hash, partition_for


@pytest.mark.parametrize(
    ("group_id", "hash_code", "partition"),
    [
        ("", 0, 0),
        ("a", 97, 47),
        ("hello", 99162322, 22),
        ("my-group", -1906497762, 12),
        ("grüße", 98768023, 23),
        ("日本", 835047, 47),
        ("😀", 1772899, 49),
        ("polygenelubricants", -(1 << 31), 0),
    ],
)
def test_the_hash_is_javas_and_its_sign_is_dropped_as_kafka_does(group_id, hash_code, partition):
    assert java_string_hash(group_id) == hash_code
    assert partition_for(group_id, 50) == partition
