"""The programs that a walk starts; Ctrl-C ends all of them."""

import signal
import subprocess
from typing import IO

from millstream.launch import program_command, program_environment


def start_program(module: str, *arguments: str, stderr: int | IO[str]) -> subprocess.Popen[str]:
    """Start a program, from the main thread; the caller ends it.

    A KeyboardInterrupt during the start is delayed until the process is known, so that the process
    can be ended.
    """
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        process = subprocess.Popen(
            program_command(module, *arguments),
            env=program_environment(),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts:
        process.kill()
        process.communicate()
        raise KeyboardInterrupt
    return process


def run_program(
    module: str, *arguments: str, timeout_seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end. Raise TimeoutExpired if it does not end."""
    process = start_program(module, *arguments, stderr=subprocess.PIPE)
    try:
        printed, complaints = process.communicate(timeout=timeout_seconds)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, printed, complaints)
