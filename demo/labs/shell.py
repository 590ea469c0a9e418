"""One bash for the commands of a page, as a reader has one terminal."""

import os
import secrets
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_CHUNK: Final = 65_536


class ShellError(Exception):
    """A command did not end in time, or ended the shell; the text has what it printed."""


class Shell:
    """Owns the process, and all that the commands have started in the background."""

    def __init__(self, folder: Path) -> None:
        """Start it in `folder`; `millstream` and `python` are those that run here."""
        path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env={**os.environ, "PATH": path, "COLUMNS": "100", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        with self._process:
            self._process.kill()

    def run(self, command: str, seconds: float) -> tuple[str, int]:
        """Run a command; return what it printed and its exit status. Raises ShellError."""
        mark = f"end-{secrets.token_hex(8)}"
        typed = f"{{ {command}\n}} < /dev/null\nprintf '\\n%s %d\\n' {mark} $?\n"
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(typed.encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ShellError("the shell has ended") from None
        printed = self._read_until(f"\n{mark} ".encode(), time.monotonic() + seconds)
        text, _, status = printed.decode(errors="replace").rpartition(f"\n{mark} ")
        return text, int(status)

    def _read_until(self, mark: bytes, deadline: float) -> bytes:
        assert self._process.stdout is not None
        stdout = self._process.stdout.fileno()
        found = b""
        while True:
            at = found.find(mark)
            if at >= 0 and found.find(b"\n", at + len(mark)) >= 0:
                return found[: found.find(b"\n", at + len(mark))]
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([stdout], [], [], left)[0]:
                raise ShellError(f"it has not ended; it printed:\n{found.decode(errors='replace')}")
            if not (chunk := os.read(stdout, _CHUNK)):
                raise ShellError(f"the shell ended; it printed:\n{found.decode(errors='replace')}")
            found += chunk
