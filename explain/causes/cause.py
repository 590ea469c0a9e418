"""A row of a table of causes: how a state is found in the facts, and what is said about it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from explain.words import sentence

Figures = Mapping[str, Any]
"""What a sentence rests on, by the names in its template."""
Facts = TypeVar("Facts")


class Severity(Enum):
    """How much a finding matters; the worst first."""

    PROBLEM = "problem"
    """Something does not work."""
    NOTICE = "notice"
    """It works, but somebody may not expect it, or it may stop working."""
    FACT = "fact"
    """Where something is, or how far."""


@dataclass(frozen=True, slots=True)
class Cause(Generic[Facts]):
    """One row. `find` yields the figures of each place where the cause holds."""

    code: str
    severity: Severity
    find: Callable[[Facts], Iterable[Figures]]
    sentence: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause that holds, and its figures. It is put into words when it is read."""

    cause: Cause[Any]
    figures: Figures

    @property
    def code(self) -> str:
        """The name of the cause."""
        return self.cause.code

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return self.cause.severity

    @property
    def sentence(self) -> str:
        """What is the case."""
        return sentence(self.cause.sentence, self.figures)

    @property
    def advice(self) -> str:
        """What to do; empty for nothing."""
        return sentence(self.cause.advice, self.figures)


def problem(
    code: str, find: Callable[[Facts], Iterable[Figures]], sentence: str, advice: str
) -> Cause[Facts]:
    """Return a row about something that does not work; it always has an advice."""
    return Cause(code, Severity.PROBLEM, find, sentence, advice)


def notice(
    code: str, find: Callable[[Facts], Iterable[Figures]], sentence: str, advice: str = ""
) -> Cause[Facts]:
    """Return a row about something that is worth a look."""
    return Cause(code, Severity.NOTICE, find, sentence, advice)


def fact(
    code: str, find: Callable[[Facts], Iterable[Figures]], sentence: str, advice: str = ""
) -> Cause[Facts]:
    """Return a row about something that is as it should be."""
    return Cause(code, Severity.FACT, find, sentence, advice)


def findings(table: Sequence[Cause[Facts]], facts: Facts) -> list[Finding]:
    """Return the findings of a table, in its order."""
    return [Finding(cause, figures) for cause in table for figures in cause.find(facts)]
