"""The errors of bytes that should be a record batch, independent of any request."""


class CorruptBatch(Exception):  # noqa: N818 - the house calls storage failures so
    """The bytes do not match their header: a storage failure, or an invalid batch of a client."""


class UnreadableCompression(CorruptBatch):
    """The records of a batch cannot be decompressed with the codec in its header."""


class TooMuchAtOnce(Exception):  # noqa: N818 - nothing is wrong with the batch
    """The check of a batch takes too long, so it must be made in steps."""
