"""The outcome of each setting that the original of a connector documents.

A connector that answers to the class name of another project's connector (its *original*) takes
that connector's settings, and ignores none of them. A setting that the connector defines does what
it does in the original. Each other one has a row in the connector's table:

- `REFUSED`: a configuration that gives the setting is refused with a sentence, unless the value
  asks for what the connector does by default.
- `WARNED`: the setting cannot change what is delivered; it is accepted, and a warning names it.

A name may hold `*` for a part that the user chooses, as in `column.truncate.to.*.chars`. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final

from millstream.connect import ConfigDef, ConfigException, ConfigValue


class Outcome(Enum):
    """What becomes of a setting that the connector does not define."""

    REFUSED = "refused"
    WARNED = "accepted, without effect"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of a table."""

    name: str
    outcome: Outcome
    sentence: str
    unless: tuple[str, ...] = ()
    """The values that a refused setting may have, in lower case."""


def refused(name: str, sentence: str, *unless: str) -> list[Setting]:
    """Return the row of a setting that is refused, except for the values in `unless`."""
    return [Setting(name, Outcome.REFUSED, sentence, unless)]


def warned(sentence: str, *names: str) -> list[Setting]:
    """Return rows for settings that change nothing in the delivered data, for one reason."""
    return [Setting(name, Outcome.WARNED, sentence) for name in names]


_OF_CONNECT: Final = frozenset({"name", "topics", "topics.regex", "transforms", "predicates"})
_PREFIXES_OF_CONNECT: Final = (
    *("connector.", "tasks.", "task.", "errors.", "config.", "plugin.", "offsets."),
    *("key.converter", "value.converter", "header.converter", "transforms.", "predicates."),
    *("producer.", "consumer.", "admin.", "topic.creation.", "exactly.once.", "transaction.b"),
)
"""The prefixes of settings for Connect itself, converters, transformations and clients."""


class Outcomes:
    """The table of one connector or converter: its definition, and rows for other settings."""

    def __init__(
        self,
        original: str,
        config: ConfigDef,
        *rows: Iterable[Setting],
        families: Sequence[str] = (),
    ) -> None:
        """`families` are settings whose names have a part that the user chooses, with `*`."""
        self.original: Final = original
        self.config: Final = config
        self.rows: Final[Sequence[Setting]] = [row for some in rows for row in some]
        self._families: Final = families

    def does(self, name: str) -> bool:
        """Return whether a setting does what it does in the original."""
        return name in self.config.keys or any(fnmatchcase(name, one) for one in self._families)

    def of(self, name: str) -> Setting | None:
        """Return the row of a setting; None if it does the same, or the original has none."""
        exact = (row for row in self.rows if row.name == name)
        alike = (row for row in self.rows if "*" in row.name and fnmatchcase(name, row.name))
        return next(exact, None) or (None if self.does(name) else next(alike, None))

    def refusals(self, settings: Mapping[str, str | None]) -> dict[str, str]:
        """Return a sentence for each setting that is refused."""
        return {
            name: f"{name} is not supported: {row.sentence}"
            for name, value in settings.items()
            if (row := self.of(name)) is not None
            and row.outcome is Outcome.REFUSED
            and (value or "").strip().lower() not in row.unless
        }

    def warnings(self, settings: Mapping[str, str | None]) -> list[str]:
        """Return a sentence for each setting that is accepted without effect."""
        return [
            f"{name} has no effect: {row.sentence}"
            for name in settings
            if (row := self.of(name)) is not None and row.outcome is Outcome.WARNED
        ]

    def unknown(self, settings: Mapping[str, str | None]) -> list[str]:
        """Return a sentence for each setting that neither Connect nor the connector knows."""
        return [
            f"{name} has no effect: nobody knows it."
            for name in settings
            if self.of(name) is None
            and not self.does(name)
            and name not in _OF_CONNECT
            and not name.startswith(_PREFIXES_OF_CONNECT)
        ]

    def refuse(
        self, settings: Mapping[str, str | None], values: dict[str, ConfigValue]
    ) -> dict[str, ConfigValue]:
        """Add the refusals to the result of a validation, and return the result."""
        return with_errors(values, settings, self.refusals(settings))

    def require(self, settings: Mapping[str, str | None]) -> None:
        """Raises ConfigException with every refusal."""
        if found := self.refusals(settings):
            raise ConfigException(" ".join(found.values()))


def with_errors(
    values: dict[str, ConfigValue], settings: Mapping[str, str | None], errors: Mapping[str, str]
) -> dict[str, ConfigValue]:
    """Add one error each to the values of settings, and return the values."""
    for name, sentence in errors.items():
        values.setdefault(name, ConfigValue(name, settings.get(name)))
        values[name].error_messages.append(sentence)
    return values
