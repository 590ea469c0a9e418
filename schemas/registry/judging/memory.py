"""A cache of answers with a limit in bytes; the least recently used one is dropped."""

from collections import OrderedDict
from typing import Final

_ENTRY_BYTES: Final = 200
"""The approximate size of an entry without its answer."""


class AnswerMemory:
    """Invariant: the entries take at most `limit_bytes`."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._answers: OrderedDict[bytes, bytes] = OrderedDict()

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def get(self, key: bytes) -> bytes | None:
        answer = self._answers.get(key)
        if answer is not None:
            self._answers.move_to_end(key)
        return answer

    def put(self, key: bytes, answer: bytes) -> None:
        """Add an answer; one that is larger than the limit is left out."""
        old = self._answers.pop(key, None)
        if old is not None:
            self._size_bytes -= len(old) + _ENTRY_BYTES
        if len(answer) + _ENTRY_BYTES > self._limit_bytes:
            return
        self._answers[key] = answer
        self._size_bytes += len(answer) + _ENTRY_BYTES
        while self._size_bytes > self._limit_bytes:
            _, forgotten = self._answers.popitem(last=False)
            self._size_bytes -= len(forgotten) + _ENTRY_BYTES
