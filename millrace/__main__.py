"""The `millrace` command, also as `python -m millrace`."""

import sys

from millrace.ending import end_at_once_when_interrupted, run_tool


def run() -> int:
    """Run the command of this process's arguments; return its exit status."""
    end_at_once_when_interrupted()
    # Imported after that: it takes most of the time of a short command.
    from millrace.cli import main

    return run_tool(main, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
