"""The names of the directories in a log directory, and of the files in a partition's directory.

`orders-0` is a partition. The other kinds are `orders-0.<32 hex digits><extension>`: `-delete`
waits for its deletion, `-future` is being filled to replace the partition (a move), and `-stray`
had the partition's name but is not the partition of the cluster's metadata.

The name of a segment's file is the base offset in 20 digits, and a suffix for the content;
`.deleted` behind it waits for its deletion.
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


# Files of segments.

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
DELETED_EXTENSION = ".deleted"
NAME_DIGITS = 20


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    """Return the path of one of a segment's files."""
    return f"{directory}/{base_offset:020d}{suffix}"


def is_base_offset(text: str) -> bool:
    """Return True if a text is a base offset in the form of a file name."""
    return len(text) == NAME_DIGITS and text.isascii() and text.isdigit()


Endings = dict[str, list[str]]
"""The names in a directory: the parts before the first dot, by the ending from that dot on."""


def by_ending(names: list[str]) -> Endings:
    """Split names at the first dot, once for all uses: a node may have to open a million."""
    endings: Endings = {}
    for name in names:
        text, dot, ending = name.partition(".")
        try:
            endings[dot + ending].append(text)
        except KeyError:
            endings[dot + ending] = [text]
    return endings


def bases_of(endings: Endings, suffix: str) -> list[int]:
    """Return the base offsets among the names with this suffix."""
    return [int(text) for text in endings.get(suffix, ()) if is_base_offset(text)]
