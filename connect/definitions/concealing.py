"""Hides secret values in texts, in whatever setting they occur. Pure.

The value of a variable is replaced by the variable, the value of a secret setting by `[hidden]`. A
very short value is hidden only where it is the whole text: `1` or `on` is part of too many words.
"""

import traceback
from collections.abc import Mapping
from typing import Any, Final

HIDDEN: Final = "[hidden]"
_SHORT: Final = 4


class Concealing:
    """Knows values, and the text that is shown instead of each."""

    def __init__(self, shown_for: Mapping[str, str]) -> None:
        # The longest first, so that one within another is not left in pieces.
        self._shown_for = sorted(
            ((value, shown) for value, shown in shown_for.items() if value),
            key=lambda each: (-len(each[0]), each),
        )

    def text(self, text: str) -> str:
        """Return a text in which no value is seen."""
        for value, shown in self._shown_for:
            if text == value:
                return shown
            if len(value) >= _SHORT:
                text = text.replace(value, shown)
        return text

    def trace(self, error: BaseException) -> str:
        """Return the trace of an error in which no value is seen: what a log may hold of it."""
        return self.text("".join(traceback.format_exception(error)))

    def error(self, error: BaseException) -> str:
        """Return what an error says, with its kind, and no value."""
        return self.text(f"{type(error).__name__}: {error}")

    def all(self, shown: Any) -> Any:
        """Return what JSON holds with every text in it concealed, names too."""
        match shown:
            case str():
                return self.text(shown)
            case Mapping():
                return {self.all(name): self.all(each) for name, each in shown.items()}
            case list() | tuple():
                return [self.all(each) for each in shown]
            case _:
                return shown

    def config(self, config: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
        """Conceal a task's settings, but for those that its connector has in the same words."""
        return {
            name: value if known.get(name) == value else self.text(value)
            for name, value in config.items()
        }


NOTHING: Final = Concealing({})


def places(error: BaseException) -> str:
    """Return the trace of an error without what it says: of a configuration nobody knows here."""
    found: traceback.TracebackException | None
    found = traceback.TracebackException.from_exception(error)
    parts = []
    while found is not None:
        kind = getattr(found, "exc_type_str", None) or getattr(found.exc_type, "__name__", "")
        lines = "".join(found.stack.format())
        parts.append(f"Traceback (most recent call last):\n{lines}{kind}\n")
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    return "\n".join(reversed(parts))
