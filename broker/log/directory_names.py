"""What the folders of a log directory are called: a partition, one to be deleted, a stray, ...

`orders-0` is a partition. Beside it may lie, each as `orders-0.<32 hex digits><extension>`: one
that waits to be removed, one that is being filled to take the partition's place, and one that was
found under the partition's name and is not what the cluster's metadata means by it.
"""

import re

from broker.model import TopicPartition

DELETE_EXTENSION = "-delete"
FUTURE_EXTENSION = "-future"
STRAY_EXTENSION = "-stray"
MAX_NAME_BYTES = 255

_PARTITION = re.compile(r"([^.].*)-([0-9]{1,10})", re.ASCII)
_BESIDE = re.compile(r"([^.].*-[0-9]{1,10})\.[0-9a-f]{32}(-delete|-future|-stray)", re.ASCII)


def directory_name(
    topic_partition: TopicPartition, unique: bytes = b"", extension: str = ""
) -> str:
    """Give `topic-0`, or `topic-0.<32 hex digits>-delete`, cut to what a file name may have."""
    suffix = f".{unique.hex()}{extension}" if extension else ""
    number = f"-{topic_partition.partition}"
    room = MAX_NAME_BYTES - len(suffix) - len(number)
    return f"{topic_partition.topic[:room]}{number}{suffix}"


def parse_directory_name(name: str) -> tuple[TopicPartition, str] | None:
    """Read a folder's name and extension, which is empty for a partition; None for other names."""
    beside = _BESIDE.fullmatch(name)
    partition = _PARTITION.fullmatch(beside[1] if beside else name)
    if partition is None:
        return None
    return TopicPartition(partition[1], int(partition[2])), beside[2] if beside else ""
