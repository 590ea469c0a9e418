"""Runs the commands of a page, as a program: python -m tests.lib.page_runner PAGE."""

import sys
from pathlib import Path

from rich.console import Console

from demo.labs.pages import parse
from demo.labs.walkthrough import Walkthrough


def main() -> int:
    """Return 0 if every command printed what the page shows."""
    path = Path(sys.argv[1])
    page = parse(path.read_text(encoding="utf-8"))
    return 0 if Walkthrough(path.stem, page, Console(highlight=False)).run() else 1


if __name__ == "__main__":
    sys.exit(main())
