"""What an index raises when it cannot do its work now."""


class IndexAwayError(OSError):
    """The index cannot be reached or written; what was asked for may be tried again."""
