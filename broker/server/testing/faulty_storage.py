"""The disk of a broker under test: slow, full or failing where a rule says so."""

import errno
import os
import time
from collections.abc import Callable

from broker.faults.rule import DiskFailure, Rule
from broker.log.storage import File, RealStorage
from broker.metadata.topic_names import CLUSTER_METADATA
from broker.records.header import BytesLike

RuleFor = Callable[[str, int], Rule | None]
"""Returns the rule that acts on a write to the files of a topic's partition."""
_NUMBERS = {DiskFailure.FULL: errno.ENOSPC, DiskFailure.FAIL: errno.EIO}


class FaultyStorage(RealStorage):
    """The disk of this machine, with a rule before every write and sync of a partition's file.

    Nothing is really synced: no test waits for a power failure.
    """

    def __init__(self, rule_for: RuleFor) -> None:
        super().__init__(is_durable=False)
        self._rule_for = rule_for

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; without `create`, raise FileNotFoundError if missing."""
        file = super().open(path, create=create)
        topic, _, number = os.path.basename(os.path.dirname(path)).rpartition("-")
        if not topic or not number.isdigit() or topic == CLUSTER_METADATA:
            return file
        return _FaultyFile(file, path, self._rule_for, (topic, int(number)))


class _FaultyFile:
    """Another file, with the rules of its partition."""

    __slots__ = ("_file", "_partition", "_rule_for", "fileno", "lock", "path", "read", "size_bytes")

    def __init__(
        self, file: File, path: str, rule_for: RuleFor, partition: tuple[str, int]
    ) -> None:
        self._file = file
        self._rule_for = rule_for
        self._partition = partition
        self.path = path
        self.read, self.size_bytes = file.read, file.size_bytes
        self.fileno, self.lock = file.fileno, file.lock

    def write(self, position: int, *parts: BytesLike) -> None:
        """Write all parts in order, starting at a position."""
        self._suffer()
        self._file.write(position, *parts)

    def truncate(self, size_bytes: int) -> None:
        """Truncate the file to a size."""
        self._file.truncate(size_bytes)

    def sync(self) -> None:
        """Make the content survive a power failure."""
        self._suffer()
        self._file.sync()

    def _suffer(self) -> None:
        rule = self._rule_for(*self._partition)
        if rule is None:
            return
        if rule.disk is DiskFailure.SLOW:
            # A slow disk holds the whole loop up: the log writes on it.
            time.sleep(rule.ms / 1_000)
        elif rule.disk is not None:
            number = _NUMBERS[rule.disk]
            raise OSError(number, os.strerror(number), self.path)
