"""The end of a command-line tool by a signal or by a closed pipe.

SIGTERM ends a tool as Ctrl-C does: it closes its clients, so that a consumer leaves its group at
once. A closed output (`| head`) ends a tool without a message. The exit status is that of a shell:
128 plus the number of the signal.
"""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
NOBODY_READS = 128 + signal.SIGPIPE


def run_tool(main: Callable[[list[str]], int], arguments: list[str]) -> int:
    """Run a tool and return its exit status, also after a signal or a closed pipe."""
    received: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        status = _run(main, arguments)
    except KeyboardInterrupt:
        pass
    except SystemError:
        # confluent-kafka raises this for an exception in one of its callbacks.
        if not received:
            raise
    else:
        if not received:
            return status
    return TERMINATED if received[0] == signal.SIGTERM else INTERRUPTED


def _run(main: Callable[[list[str]], int], arguments: list[str]) -> int:
    try:
        try:
            status = main(arguments)
        except SystemExit as ended:  # argparse raises it after --help, and after an error.
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        sys.stdout.flush()
    except BrokenPipeError:
        # The rest of the buffer has no reader either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    return status
