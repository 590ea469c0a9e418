"""Labs as pages of Markdown: what a reader is told, types and sees.

A fence says what it is by its first line: `console` has commands behind `$ ` and what they print,
`python file=stock.py` (or any language with `file=`) is a file of the reader. After `console` may
stand `eventually` (the effect of the command comes later, so look again), `fails` (the command ends
with another status than 0) and `skip` (what is already done where the page is run).

In what a command prints, a line `...` stands for any number of lines, `...` within a line for any
text, and a word in angle brackets, `<time>`, for a word that differs each time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

_CHECKOUT: Final = Path(__file__).parent.parent.parent / "docs" / "labs"
_PROMPT, _CONTINUED = "$ ", "> "
_ANY = re.compile(r"\.\.\.|<[a-z][a-z -]*>")


@dataclass(frozen=True)
class Prose:
    """Text of Markdown, for the reader."""

    text: str


@dataclass(frozen=True)
class File:
    """A file that the reader writes."""

    name: str
    text: str
    language: str


@dataclass(frozen=True)
class Command:
    """A command, the line of the page where it stands, and what it prints."""

    line: int
    text: str
    expected: str
    is_eventual: bool
    fails: bool
    is_skipped: bool

    def is_met_by(self, printed: str, status: int) -> bool:
        """Tell whether the page shows what was printed."""
        return (status != 0) == self.fails and is_shown(self.expected, printed)


Block = Prose | File | Command


class PageError(Exception):
    """A page cannot be read; the text says where."""


@dataclass(frozen=True)
class Page:
    """A lab: its title and what it consists of, in order."""

    title: str
    blocks: tuple[Block, ...]

    @property
    def commands(self) -> list[Command]:
        return [each for each in self.blocks if isinstance(each, Command)]


def folder_of_pages() -> Path:
    """Return the folder with the pages: in a checkout `docs/labs`, else beside this file."""
    installed = Path(str(files("demo.labs"))) / "pages"
    return installed if installed.is_dir() else _CHECKOUT


def page_names(folder: Path) -> list[str]:
    """Return the names of the labs in the order in which they are read."""
    index = (folder / "index.md").read_text(encoding="utf-8")
    return re.findall(r"^\| \[[^]]*\]\(([a-z-]+)\.md\)", index, re.MULTILINE)


def parse(text: str) -> Page:
    """Read a page. Raises PageError."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("# "):
        raise PageError("line 1: a page begins with its title")
    blocks: list[Block] = []
    done = 1
    for token in MarkdownIt().parse(text):
        if token.type != "fence" or token.map is None:
            continue
        begin, end = token.map
        if prose := "\n".join(lines[done:begin]).strip():
            blocks.append(Prose(prose))
        done = end
        language, *words = token.info.split()
        named = [word.removeprefix("file=") for word in words if word.startswith("file=")]
        if named:
            blocks.append(File(named[0], token.content, language))
        elif language == "console":
            blocks += _commands(token.content, begin + 2, words)
        else:
            blocks.append(Prose("\n".join(lines[begin:end])))
    if prose := "\n".join(lines[done:]).strip():
        blocks.append(Prose(prose))
    return Page(lines[0].removeprefix("# "), tuple(blocks))


def _commands(content: str, first_line: int, words: list[str]) -> Iterator[Command]:
    if unknown := set(words) - {"eventually", "fails", "skip"}:
        raise PageError(f"line {first_line}: a fence is not {', '.join(sorted(unknown))}")
    typed: list[str] = []
    printed: list[str] = []
    at = first_line

    def command() -> Command:
        return Command(
            at,
            "\n".join(typed),
            "\n".join(printed),
            "eventually" in words,
            "fails" in words,
            "skip" in words,
        )

    for number, line in enumerate(content.splitlines(), first_line):
        if line.startswith(_PROMPT):
            if typed:
                yield command()
            typed, printed, at = [line.removeprefix(_PROMPT)], [], number
        elif not typed:
            raise PageError(f"line {number}: a fence `console` begins with `$ `")
        elif line.startswith(_CONTINUED) and not printed:
            typed.append(line.removeprefix(_CONTINUED))
        else:
            printed.append(line)
    if typed:
        yield command()


def is_shown(expected: str, printed: str) -> bool:
    """Tell whether a text is what a page shows, with its `...` and `<words>`.

    Blanks count as one: a page has spaces where a tool prints tabs.
    """
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else _pattern(line) + r"\n"
        for line in _with_single_blanks(expected)
    )
    text = "".join(f"{line}\n" for line in _with_single_blanks(printed.strip("\n")))
    return re.fullmatch(pattern, text) is not None


def _with_single_blanks(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def _pattern(line: str) -> str:
    found = ""
    done = 0
    for match in _ANY.finditer(line):
        found += re.escape(line[done : match.start()])
        found += ".*" if match[0] == "..." else r"\S+"
        done = match.end()
    return found + re.escape(line[done:])
