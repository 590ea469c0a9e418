"""Regular expressions that others write: a match takes a time that ends.

google-re2 executes a pattern in a time that grows with the text alone. What it lacks, which is
look-around and references to groups, is executed by `regex`, which can try for ever as Python's
`re` does, but lets other threads run meanwhile and gives up after `PATIENCE_SECONDS`.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import re2

PATIENCE_SECONDS: Final = 0.5


class Pattern:
    """A compiled pattern, in the syntax of Python."""

    def __init__(self, text: str, too_slow: type[Exception] = ValueError) -> None:
        """Raise re.error if it is invalid. A match that takes too long raises `too_slow`."""
        self.pattern = text
        self._too_slow = too_slow
        options = re2.Options()
        options.log_errors = False
        self._patience: dict[str, Any] = {}
        compiled: Any
        try:
            compiled = re2.compile(text, options)
        except re2.error:
            # Imported only here: few patterns need it.
            import regex

            try:
                compiled = regex.compile(text)
            except regex.error as error:
                raise re.error(str(error)) from None
            self._patience = {"timeout": PATIENCE_SECONDS, "concurrent": True}
        self._compiled = compiled

    def fullmatch(self, text: str) -> "re.Match[str] | None":
        """Return the match of the whole text, None without one."""
        return self._tried(self._compiled.fullmatch, text)

    def search(self, text: str) -> "re.Match[str] | None":
        """Return the first match in the text, None without one."""
        return self._tried(self._compiled.search, text)

    def _tried(self, match: Callable[..., Any], text: str) -> "re.Match[str] | None":
        found: re.Match[str] | None
        try:
            found = match(text, **self._patience)
        except TimeoutError:
            raise self._too_slow(
                f"The pattern {self.pattern!r} needs more than {PATIENCE_SECONDS:g} s for "
                f"{text[:80]!r}: write it without look-around and references to groups, or with "
                "fewer repetitions inside repetitions"
            ) from None
        return found
