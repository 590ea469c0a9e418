"""The outcome of each setting that the original of a connector documents.

A connector that answers to the class name of another project's connector (its *original*) takes
that connector's settings. Each of them has one of three outcomes, and none is ignored:

- `SAME`: the setting does what it does in the original; `test` names the test that shows it.
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
    SAME = "does the same"
    REFUSED = "refused"
    WARNED = "accepted, without effect"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of a table. Invariant: `test` is given when the outcome is SAME."""

    name: str
    outcome: Outcome
    sentence: str = ""
    test: str = ""
    unless: tuple[str, ...] = ()
    """The values that a refused setting may have, in lower case."""


def same(test: str, *names: str, sentence: str = "") -> list[Setting]:
    """Return rows for settings that do what they do in the original; one test shows it."""
    return [Setting(name, Outcome.SAME, sentence, test) for name in names]


def refused(name: str, sentence: str, *unless: str) -> list[Setting]:
    """Return the row of a setting that is refused, except for the values in `unless`."""
    return [Setting(name, Outcome.REFUSED, sentence, unless=unless)]


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
    """The table of one connector."""

    def __init__(self, original: str, *rows: Iterable[Setting]) -> None:
        self.original: Final = original
        self.rows: Final[Sequence[Setting]] = [row for some in rows for row in some]

    def of(self, name: str) -> Setting | None:
        """Return the row of a setting; None when the original does not document it."""
        exact = (row for row in self.rows if row.name == name)
        alike = (row for row in self.rows if "*" in row.name and fnmatchcase(name, row.name))
        return next(exact, None) or next(alike, None)

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

    def unknown(self, settings: Mapping[str, str | None], config: ConfigDef) -> list[str]:
        """Return a sentence for each setting that neither Connect nor the connector knows."""
        return [
            f"{name} has no effect: nobody knows it."
            for name in settings
            if self.of(name) is None
            and name not in config.keys
            and name not in _OF_CONNECT
            and not name.startswith(_PREFIXES_OF_CONNECT)
        ]

    def refuse(
        self, settings: Mapping[str, str | None], values: dict[str, ConfigValue]
    ) -> dict[str, ConfigValue]:
        """Add the refusals to the result of a validation, and return the result."""
        for name, sentence in self.refusals(settings).items():
            values.setdefault(name, ConfigValue(name, settings[name]))
            values[name].error_messages.append(sentence)
        return values

    def require(self, settings: Mapping[str, str | None]) -> None:
        """Raises ConfigException with every refusal."""
        if found := self.refusals(settings):
            raise ConfigException(" ".join(found.values()))

    def page(self) -> str:
        """Return the table as a page of documentation."""
        head = [
            f"# Settings of {self.original}",
            "",
            "This page is written from the table in the code, by",
            "`REWRITE=1 pytest tests/connect/connectors/test_setting_outcomes.py`.",
            "A `*` in a name is a part that you choose.",
            "",
            "| setting | outcome | what that means | shown by |",
            "|---|---|---|---|",
        ]
        return "\n".join([*head, *map(_line, sorted(self.rows, key=lambda row: row.name))]) + "\n"


def _line(row: Setting) -> str:
    outcome = row.outcome.value
    if row.unless:
        values = (f"`{value}`" if value else "empty" for value in row.unless)
        outcome += f", unless {' or '.join(values)}"
    cells = (f"`{row.name}`", outcome, row.sentence, f"`{row.test}`" if row.test else "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
