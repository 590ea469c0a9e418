"""The partition of a group or a transactional id in its internal topic, by Java's String.hashCode.

Clients never compute it, but Kafka's tools and brokers do, so the result must be the same.
"""

from functools import lru_cache

INT32_MIN = -(1 << 31)
REMEMBERED_KEYS = 4096


def java_string_hash(text: str) -> int:
    """Return Java's `String.hashCode`: a signed 32-bit polynomial over UTF-16 code units."""
    code_units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    hash_code = 0
    for code_unit in code_units:
        hash_code = (31 * hash_code + code_unit) & 0xFFFFFFFF
    return hash_code - (1 << 32) if hash_code >= 1 << 31 else hash_code


@lru_cache(maxsize=REMEMBERED_KEYS)
def partition_for(coordinator_key: str, partition_count: int) -> int:
    """Return the key's partition, as Kafka's `Utils.abs(hashCode) % partitions` does."""
    hash_code = java_string_hash(coordinator_key)
    # Java's own abs(INT32_MIN) is negative; Kafka defines it as zero.
    return (0 if hash_code == INT32_MIN else abs(hash_code)) % partition_count
