"""The parser of all commands except Kafka's tools; its help has examples, its errors have hints.

Kafka's tools have another parser (`broker.cli.arguments`), with Kafka's texts and exit statuses.
"""

import argparse
import re
import textwrap
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from common.process.json_text import is_unicode

HELP_WIDTH = 80
_WRONG_CHOICE = re.compile(r"invalid choice: '(?P<slip>[^']*)' \(choose from (?P<known>.*)\)")


class DefaultsHelpFormatter(
    argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter
):
    """Shows the default of each option, and keeps the lines of examples."""


class CommandParser(argparse.ArgumentParser):
    """Like argparse's parser, but help ends with examples, and an error suggests similar words."""

    def __init__(
        self,
        *,
        description: str | None = None,
        epilog: str = "",
        examples: Sequence[str] = (),
        formatter_class: Any = argparse.RawDescriptionHelpFormatter,
        **rest: Any,
    ) -> None:
        notes = [textwrap.fill(epilog, HELP_WIDTH)] if epilog else []
        if examples:
            notes.append("\n  ".join(["examples:", *examples]))
        super().__init__(
            description=textwrap.fill(description or "", HELP_WIDTH),
            epilog="\n\n".join(notes),
            formatter_class=formatter_class,
            **rest,
        )
        self._given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse unknown arguments here: a command's own parser has the best suggestions."""
        self._given = [] if args is None else list(args)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        if odd := odd_arguments(found):
            self.error(f"argument {odd[0]}: it is no UTF-8")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """End the program with status 2."""
        choice = _WRONG_CHOICE.search(message)
        if choice:
            hint = suggestion(choice["slip"], re.findall(r"[\w.-]+", choice["known"]))
        else:
            hint = self._flag_hint(message)
        super().error(message + hint)

    def _flag_hint(self, message: str) -> str:
        """Suggest a flag for the first unknown one, even if other arguments are invalid."""
        flags = [flag for action in self._actions for flag in action.option_strings]
        for argument in self._given:
            word = argument.partition("=")[0]
            if word.startswith("--") and not any(flag.startswith(word) for flag in flags):
                told = "" if word in message else f"; there is no {word}"
                return told + suggestion(word, flags)
        return ""


def odd_arguments(options: argparse.Namespace) -> list[str]:
    """Return the names of the options whose text is no Unicode: only a path may have odd bytes."""
    return [
        name
        for name, value in vars(options).items()
        for each in (value if isinstance(value, list) else [value])
        if isinstance(each, str) and not is_unicode(each)
    ]


def suggestion(slip: str, known: Iterable[str]) -> str:
    """Return a question with similar words; empty if no word is similar."""
    found = get_close_matches(slip, list(known), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def add_command(commands: Any, name: str, what: str, *examples: str) -> CommandParser:
    """Add a command to a parser; `what` is its description in the list and in its help."""
    description = what[:1].upper() + what[1:] + "."
    parser: CommandParser = commands.add_parser(
        name, help=what, description=description, examples=examples
    )
    return parser
