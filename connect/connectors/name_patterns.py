"""Lists of regular expressions that name tables, columns and the like. Pure.

A list has commas between its expressions; `\\,` is a comma inside of one. Each expression has to
match a whole name. They are RE2's, which no name can slow down; a look-ahead or a back-reference is
refused.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, Self

import re2

from millrace.connect import ConfigException

_COMMA: Final = re.compile(r"((?:\\.|[^\\,])*)(?:,|$)", re.DOTALL)


def patterns_in(text: str) -> list[str]:
    """Return the expressions of a list."""
    parts = [match.group(1) for match in _COMMA.finditer(text)]
    return [part.strip().replace("\\,", ",") for part in parts if part.strip()]


class Patterns:
    """Some expressions; a name matches when it is all of what one of them stands for."""

    def __init__(self, texts: Iterable[str], *, is_case_sensitive: bool = False) -> None:
        """Raises ConfigException for what is no expression of RE2."""
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
                    f"{text} is no regular expression of RE2 (which has neither look-ahead nor "
                    f"back-references): {said}"
                ) from None

    @classmethod
    def of(cls, text: str | None) -> Self | None:
        """Return the expressions of a list; None when there is none."""
        texts = patterns_in(text or "")
        return cls(texts) if texts else None

    def match(self, *names: str) -> bool:
        """Tell whether one of the names is one that an expression stands for."""
        return any(one.fullmatch(name) is not None for one in self._compiled for name in names)
