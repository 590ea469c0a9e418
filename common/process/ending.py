"""The end of a command by a signal or by a closed pipe, and letters that its output cannot show.

SIGTERM ends a command as Ctrl-C does: it closes its clients, so that a consumer leaves its group at
once. A closed output (`| head`) ends a command without a message. The exit status is that of a
shell: 128 plus the number of the signal. A letter that the encoding of the output lacks is written
as an escape sequence; without that, a name could end a command.
"""

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from io import TextIOWrapper
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
NOBODY_READS = 128 + signal.SIGPIPE


def run_tool(main: Callable[[list[str]], int], arguments: list[str]) -> int:
    """Run a command and return its exit status, also after a signal or a closed pipe."""
    received: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        status = run_until_closed(partial(main, arguments))
    except KeyboardInterrupt:
        pass
    except SystemError:
        # confluent-kafka raises this for an exception in one of its callbacks.
        if not received:
            raise
    else:
        if not received:
            return status
    return TERMINATED if received and received[0] == signal.SIGTERM else INTERRUPTED


def end_at_once_when_interrupted() -> None:
    """Let Ctrl-C end this process without a traceback until a command has its own way to end."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_until_closed(main: Callable[[], int]) -> int:
    """Run a program that handles signals itself; return its exit status, also of a closed pipe."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            status = main()
        except SystemExit as ended:  # argparse raises it after --help, and after an error.
            status = _status_of(ended)
        sys.stdout.flush()
    except BrokenPipeError:
        # The rest of the buffer has no reader either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    return status


def _status_of(ended: SystemExit) -> int:
    """Return the status that the interpreter would end with; print a message as it would."""
    if ended.code is None or isinstance(ended.code, int):
        return ended.code or 0
    sys.stderr.write(f"{ended.code}\n")
    return 1
