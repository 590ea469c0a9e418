"""Selects topics, groups and topic settings by lists of names and regular expressions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from common.process.patterns import Pattern
from connect.java.patterns import java_pattern
from millstream.connect.errors import ConfigException

TOPICS_EXCLUDE: Final = r".*[\-\.]internal, .*\.replica, __.*"
GROUPS_EXCLUDE: Final = "console-consumer-.*, connect-.*, __.*"
CONFIG_PROPERTIES_EXCLUDE: Final = (
    r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
    r"message\.timestamp\.difference\.max\.ms, message\.timestamp\.type, "
    r"unclean\.leader\.election\.enable, min\.insync\.replicas"
)


@dataclass(frozen=True, slots=True)
class Patterns:
    """A list of expressions; one has to match the whole name. An empty list matches no name."""

    expressions: tuple[Pattern, ...]

    @classmethod
    def of(cls, name: str, texts: Sequence[str]) -> "Patterns":
        """Compile `texts` from the setting `name`. Raises ConfigException."""
        made = []
        for text in texts:
            try:
                made.append(java_pattern(text))
            except re.error as error:
                raise ConfigException.of_value(
                    name, text, f"Syntax error in regular expression: {error}"
                ) from error
        return cls(tuple(made))

    def match(self, name: str) -> str | None:
        """Return the expression that matches, None when none does."""
        found = (each.pattern for each in self.expressions if each.fullmatch(name))
        return next(found, None)


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Accepts names that are included and not excluded."""

    include: Patterns
    exclude: Patterns

    def takes(self, name: str) -> bool:
        return self.why_not(name) is None

    def why_not(self, name: str) -> str | None:
        """Return why a name is left out, None when it is accepted."""
        if (excluded := self.exclude.match(name)) is not None:
            return f"excluded by {excluded}"
        return None if self.include.match(name) is not None else "not included"
