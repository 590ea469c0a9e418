"""The names of a segment's files: the base offset in 20 digits, and a suffix for the content."""

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
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
