"""The `with` block of what runs for a test."""

import os
from types import TracebackType
from typing import Self


class Block:
    """Starts something at the beginning of a `with` block, and closes it at the end.

    A process that is forked within the block leaves it to its parent, which still uses it.
    """

    _owner = 0

    def start(self) -> Self:
        """Start it."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop it and remove its files; also after a start that failed."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise if the block ends well, but has not done what it was made for."""

    def __enter__(self) -> Self:
        self._owner = os.getpid()
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._owner == os.getpid():
            try:
                if error is None:
                    self.check()
            finally:
                self.close()
