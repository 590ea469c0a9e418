"""A program that runs during a block of a test."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: int | None = None,
    stderr: int | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Run a program whose standard output is read; kill it if it runs when the block ends.

    `Popen` alone waits for the program even when a check in the block has failed: then nobody
    tells the program to end, and the test reports a time-out in place of the check.
    """
    with subprocess.Popen(
        command, env=env, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()
