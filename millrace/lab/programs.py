"""Programs that a walk starts, so that Ctrl-C leaves none of them behind."""

import signal
import subprocess
from typing import IO

from millrace.launch import program_command, program_environment


def start_program(module: str, *arguments: str, stderr: int | IO[str]) -> subprocess.Popen[str]:
    """Start one, from the main thread; whoever is given it ends it.

    A KeyboardInterrupt that comes while it is started would leave it to nobody: it waits until the
    process is known, which ends it.
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
    """Run one to its end. Raises TimeoutExpired when it does not come to one."""
    process = start_program(module, *arguments, stderr=subprocess.PIPE)
    try:
        printed, complaints = process.communicate(timeout=timeout_seconds)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, printed, complaints)
