"""What the files of a segment are called: the base offset in 20 digits, and what is in them."""

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
NAME_DIGITS = 20


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    """Give the path of one of a segment's files."""
    return f"{directory}/{base_offset:020d}{suffix}"


def is_base_offset(text: str) -> bool:
    """Tell whether a text is a base offset as it stands in the names of a segment's files."""
    return len(text) == NAME_DIGITS and text.isascii() and text.isdigit()


Endings = dict[str, list[str]]
"""Names in a partition's directory: what stands before the first dot, by what stands from it on."""


def by_ending(names: list[str]) -> Endings:
    """Take names apart, once for all who look for theirs: a node may have to open a million."""
    endings: Endings = {}
    for name in names:
        text, dot, ending = name.partition(".")
        try:
            endings[dot + ending].append(text)
        except KeyError:
            endings[dot + ending] = [text]
    return endings


def bases_of(endings: Endings, suffix: str) -> list[int]:
    """Give the base offsets in the names of segments' files; other names are nobody's."""
    return [int(text) for text in endings.get(suffix, ()) if is_base_offset(text)]
