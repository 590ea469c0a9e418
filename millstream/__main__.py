"""The `millstream` command, also as `python -m millstream`."""

import sys

from millstream.ending import end_at_once_when_interrupted, run_tool


def run() -> int:
    """Run the command of this process's arguments; return its exit status."""
    end_at_once_when_interrupted()
    # Imported after that: it takes most of the time of a short command.
    from millstream.cli import main

    return run_tool(main, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
