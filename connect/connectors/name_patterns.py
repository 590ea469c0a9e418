"""Lists of regular expressions that select tables, columns and so on. No code here does IO.

The expressions of a list are separated by commas; `\\,` is a comma in an expression. Each one must
match a whole name. The syntax is RE2's, whose time to match is linear in the length of a name; it
has no look-ahead and no back-reference.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, Self

import re2

from millstream.connect import ConfigException

_COMMA: Final = re.compile(r"((?:\\.|[^\\,])*)(?:,|$)", re.DOTALL)


def patterns_in(text: str) -> list[str]:
    """Return the expressions of a list."""
    parts = [match.group(1) for match in _COMMA.finditer(text)]
    return [part.strip().replace("\\,", ",") for part in parts if part.strip()]


class Patterns:
    """A list of expressions; a name matches if one of them matches the whole name."""

    def __init__(self, texts: Iterable[str], *, is_case_sensitive: bool = False) -> None:
        """Raise ConfigException for an invalid expression."""
        options = re2.Options()
        options.case_sensitive = is_case_sensitive
        options.log_errors = False
        self._compiled: list[Any] = []
        for text in texts:
            try:
                self._compiled.append(re2.compile(text, options))
            except re2.error as error:
                said = error.args[0] if error.args else ""
                said = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
                raise ConfigException(
                    f"{text} is not a regular expression of RE2 (which has neither look-ahead nor "
                    f"back-references): {said}"
                ) from None

    @classmethod
    def of(cls, text: str | None) -> Self | None:
        """Return the expressions of a list; None if the list is empty."""
        texts = patterns_in(text or "")
        return cls(texts) if texts else None

    def match(self, *names: str) -> bool:
        """Return whether an expression matches one of the names."""
        return any(one.fullmatch(name) is not None for one in self._compiled for name in names)
