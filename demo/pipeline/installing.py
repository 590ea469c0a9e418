"""The installation of Spark's and the streams' packages, while the demo runs without them."""

import asyncio
import importlib
import os
import re
import shlex
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from common.process.tasks import spawn

_LOOK_SECONDS = 10.0
_STOP_SECONDS = 10.0
_MB = 1_000_000
_DOWNLOADING = re.compile(r"^ *Downloading (?:\S*/)?(\S+) \(([\d.]+ [kMG]B)\)$", re.MULTILINE)


async def install(command: str, folder: Path, say: Callable[[str], None]) -> bool:
    """Run the command, which starts pip; return whether it has installed everything.

    `say` gets a sentence every few seconds and at the end. In `folder`, an absolute path, are
    pip's output, logs/install.log, and meanwhile what pip downloads.
    """
    log_file, temporary = folder / "logs" / "install.log", folder / "install"
    for needed in (log_file.parent, temporary):
        needed.mkdir(parents=True, exist_ok=True)
    started_at = time.monotonic()
    try:
        status = await _run(command, log_file, temporary, say)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    if status:
        say(
            f"Spark, streams and the dashboard cannot be installed: {_reason(log_file)}"
            f" ({log_file} has more). The pipeline goes on without them"
        )
        return False
    importlib.invalidate_caches()
    say(f"Spark and streams are installed after {time.monotonic() - started_at:.0f} s")
    return True


async def _run(command: str, log_file: Path, temporary: Path, say: Callable[[str], None]) -> int:
    with log_file.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *shlex.split(command),
            # pip downloads into the folder for temporary files, where the size can be seen.
            env={**os.environ, "TMPDIR": str(temporary)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    started_at = time.monotonic()
    ended = spawn(process.wait())
    try:
        while not (await asyncio.wait([ended], timeout=_LOOK_SECONDS))[0]:
            told = how_far(_text(log_file), temporary)
            say(f"installing Spark and streams, {time.monotonic() - started_at:.0f} s: {told}")
        return await ended
    finally:
        if not ended.done():
            # The session is the command's own, so what it has started ends with it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            await asyncio.wait([ended], timeout=_STOP_SECONDS)


def how_far(printed: str, temporary: Path) -> str:
    """Return in words how far pip is, by what it has printed and what lies in its folder."""
    if "Installing collected packages" in printed:
        return "all packages are here, and are being unpacked"
    if "Building wheel" in printed:
        return "all packages are here, and Spark is being packed as a wheel"
    downloads = _DOWNLOADING.findall(printed)
    found = f"{printed.count('Collecting ')} packages found"
    if not downloads:
        return found
    name, size = downloads[-1]
    loaded = sum(file.stat().st_size for file in temporary.rglob(name))
    return f"{found}, {loaded / _MB:.0f} MB of {name} are here, of {size}"


def _reason(log_file: Path) -> str:
    """Return pip's first error, else the last line: make adds its own behind those of pip."""
    lines = [line.strip() for line in _text(log_file).splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return errors[0] if errors else (lines or ["nothing was printed"])[-1]


def _text(log_file: Path) -> str:
    return log_file.read_text(encoding="utf-8", errors="replace")
