"""A lab in the terminal: its text, its commands one by one, and how far the reader has come."""

import os
import re
import sys
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markdown import Markdown

from demo.labs.pages import (
    Command,
    File,
    Page,
    PageError,
    Prose,
    folder_of_pages,
    page_names,
    parse,
)
from demo.labs.shell import Shell, ShellError
from millstream.launch import user_folder

_COMMAND_SECONDS: Final = 300.0
_EVENTUALLY_SECONDS: Final = 180.0
_PAUSE_SECONDS: Final = 0.3
_NO_STACK: Final = 3
"""The exit status of `millstream status` when no stack runs."""
_DELETES: Final = re.compile(r"millstream down (?:--name (\S+) )?--delete-data")
_DONE: Final = "done"
_STEP_FILE: Final = ".step"


def labs() -> dict[str, Page]:
    """Return the labs by name, in the order in which they are read. Raises PageError."""
    folder = folder_of_pages()
    found = {}
    for name in page_names(folder):
        try:
            found[name] = parse((folder / f"{name}.md").read_text(encoding="utf-8"))
        except PageError as error:
            raise PageError(f"{name}.md: {error}") from error
    return found


def standing(name: str, page: Page) -> str:
    """Return how far the reader has come in a lab: "", "step 3 of 9" or "done"."""
    try:
        told = (_folder(name) / _STEP_FILE).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
    return told if told == _DONE else f"step {told} of {len(page.commands)}"


def _folder(name: str) -> Path:
    return user_folder(os.environ) / "labs" / name


class Walkthrough:
    """Shows one lab. With a terminal it waits for Enter before each command."""

    def __init__(self, name: str, page: Page, console: Console) -> None:
        self._page = page
        self._console = console
        self._folder = _folder(name)
        self._is_asked = sys.stdin.isatty()

    def run(self) -> bool:
        """Go through the page; return False at the first command that differs from it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._console.print(Markdown(f"# {self._page.title}"))
        self._console.print(f"Files are in {self._folder}", markup=False, soft_wrap=True)
        step = 0
        with Shell(self._folder) as shell:
            if not self._may_begin(shell):
                return False
            for block in self._page.blocks:
                match block:
                    case Prose(text):
                        self._console.print(Markdown(text))
                    case File(name, text, language):
                        self._write(name, text, language)
                    case Command():
                        step += 1
                        self._remember(str(step))
                        if not self._do(shell, block, f"{step}/{len(self._page.commands)}"):
                            return False
        self._remember(_DONE)
        return True

    def _may_begin(self, shell: Shell) -> bool:
        """Tell whether no stack is there whose data the page deletes at its end."""
        text = "\n".join(each.text for each in self._page.commands)
        for name in [each or "default" for each in _DELETES.findall(text)]:
            data = user_folder(os.environ) / "stacks" / name / "data"
            status = f"millstream status --name {name}"
            if data.exists() or shell.run(status, _COMMAND_SECONDS)[1] != _NO_STACK:
                self._console.print(
                    f"There is a stack {name} already, whose data this lab would delete at its "
                    f"end.\nDelete it first: millstream down --name {name} --delete-data",
                    markup=False,
                    soft_wrap=True,
                )
                return False
        return True

    def _remember(self, step: str) -> None:
        (self._folder / _STEP_FILE).write_text(f"{step}\n", encoding="utf-8")

    def _write(self, name: str, text: str, language: str) -> None:
        (self._folder / name).write_text(text, encoding="utf-8")
        self._console.print(Markdown(f"`{name}`:\n\n```{language}\n{text}```"))

    def _do(self, shell: Shell, command: Command, place: str) -> bool:
        self._console.print(
            f"\n[{place}] $ {command.text}", markup=False, style="bold", soft_wrap=True
        )
        if command.is_skipped:
            self._console.print("(not run here: do it before the lab, if you have not)")
            return True
        if self._is_asked:
            input("Enter runs it ")
        deadline = time.monotonic() + _EVENTUALLY_SECONDS
        while True:
            try:
                printed, status = shell.run(command.text, _COMMAND_SECONDS)
            except ShellError as error:
                self._differs(command, str(error), None)
                return False
            if command.is_met_by(printed, status):
                self._console.print(printed.rstrip("\n"), markup=False, soft_wrap=True)
                return True
            if not command.is_eventual or time.monotonic() > deadline:
                self._differs(command, printed, status)
                return False
            time.sleep(_PAUSE_SECONDS)

    def _differs(self, command: Command, printed: str, status: int | None) -> None:
        said = "" if status is None else f" (exit status {status})"
        self._console.print(
            f"{printed.rstrip()}\n\nline {command.line} of the page: this differs{said}."
            f" The page shows:\n{command.expected}",
            markup=False,
            soft_wrap=True,
        )
