"""The `millstream` command, also as `python -m millstream`."""

import sys

from millstream.launch import programs_folder


def run() -> int:
    """Run the command of this process's arguments; return its exit status."""
    # This process is the command's own, so it may import what the programs share.
    sys.path.insert(0, str(programs_folder()))
    from common.process.ending import end_at_once_when_interrupted, run_tool

    end_at_once_when_interrupted()
    # Imported after that: it takes most of the time of a short command.
    from millstream.cli.commands import main

    return run_tool(main, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
