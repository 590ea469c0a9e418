"""What is wrong with bytes that should be a record batch, apart from any request."""


class CorruptBatch(Exception):  # noqa: N818 - the house calls storage failures so
    """Bytes that are not what their header says: a storage failure, or a client's lie."""


class UnreadableCompression(CorruptBatch):
    """The compressed records of a batch are no output of the codec that its header names."""


class TooMuchAtOnce(Exception):  # noqa: N818 - nothing is wrong with the batch
    """A batch whose check takes so long that it is to be made in steps."""
