"""The names of the directories in a log directory.

`orders-0` is a partition. The other kinds are `orders-0.<32 hex digits><extension>`: `-delete`
waits for its deletion, `-future` is being filled to replace the partition (a move), and `-stray`
had the partition's name but is not the partition of the cluster's metadata.
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
    """Return `topic-0`, or `topic-0.<32 hex digits>-delete`; a long topic is cut to fit."""
    suffix = f".{unique.hex()}{extension}" if extension else ""
    number = f"-{topic_partition.partition}"
    room = MAX_NAME_BYTES - len(suffix) - len(number)
    return f"{topic_partition.topic[:room]}{number}{suffix}"


def parse_directory_name(name: str) -> tuple[TopicPartition, str] | None:
    """Return the partition and the extension ("" for none) of a directory; None for other names."""
    beside = _BESIDE.fullmatch(name)
    partition = _PARTITION.fullmatch(beside[1] if beside else name)
    if partition is None:
        return None
    return TopicPartition(partition[1], int(partition[2])), beside[2] if beside else ""
