"""The answering process: it reads questions from stdin and writes answers to stdout, with lengths.

It ends at the end of its input, after an answer that left it with too much memory, and by SIGPROF
if a question takes too much processor time. It uses a thread with a large stack, because schemas
nest.
"""

import os
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import BinaryIO, Final

from schemas.registry.judge import Judge
from schemas.registry.questions import answer_to_bytes, question_from

LENGTH_BYTES: Final = 4
_STACK_BYTES: Final = 128 << 20
_RECURSION_LIMIT: Final = 5_000
_ADDRESS_SPACE_BYTES: Final = 1 << 30
_LOOK_SECONDS: Final = 1.0
_LARGE_BYTES: Final = 160 << 20


def main(answer_seconds: float) -> None:
    """Answer until the input ends; limit the processor time of each question."""
    threading.stack_size(_STACK_BYTES)
    sys.setrecursionlimit(_RECURSION_LIMIT)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE_BYTES, _ADDRESS_SPACE_BYTES))
    # Text that the packages print must not be read as an answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    thread = threading.Thread(target=_serve, args=(sys.stdin.buffer, answers, answer_seconds))
    # Ctrl-C in a terminal is for the registry, which then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    registry = os.getppid()
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_SECONDS)
        if os.getppid() != registry:
            os._exit(1)  # A killed registry cannot end a process that takes long.


def _serve(questions: BinaryIO, answers: BinaryIO, answer_seconds: float) -> None:
    judge = Judge()
    while header := questions.read(LENGTH_BYTES):
        question = question_from(questions.read(int.from_bytes(header, "big")))
        signal.setitimer(signal.ITIMER_PROF, answer_seconds)
        data = answer_to_bytes(judge.answer(question))
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(len(data).to_bytes(LENGTH_BYTES, "big") + data)
        answers.flush()
        if _resident_bytes() > _LARGE_BYTES:
            return


def _resident_bytes() -> int:
    """Return the memory of this process; 0 on systems without it in /proc.

    `ru_maxrss` cannot be used: a new process inherits it from its parent.
    """
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * resource.getpagesize()
