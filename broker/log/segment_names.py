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


def bases_of(names: list[str], suffix: str) -> list[int]:
    """Give the base offsets in the names of segments' files; other names are nobody's."""
    texts = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return [int(text) for text in texts if is_base_offset(text)]
