"""How a command-line tool ends that is told to stop, or whose output nobody reads.

SIGTERM ends a tool as Ctrl-C does: it closes its clients, so that a consumer leaves its group at
once. A reader that goes away (`| head`) ends a tool without a word. The exit status is what a shell
gives: 128 and the number of the signal.
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
    """Run a tool and return its exit status, however it ends."""
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
        # confluent-kafka's word for an exception that came while it called back.
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
        except SystemExit as ended:  # What argparse does after --help, and after a mistake.
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left in the buffer has no reader either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    return status
