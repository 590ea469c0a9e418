"""The error of an index that cannot work at the moment."""


class IndexAwayError(OSError):
    """The index cannot be reached or written; what was asked for may be tried again."""
