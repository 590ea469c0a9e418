"""A real server that speaks S3, versitygw, in a folder that goes with it.

`MILLRACE_TEST_S3` names another one, as http://key:secret@host:port.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from millrace.cluster_layout import free_ports
from tests.lib.side_by_side import one_at_a_time

_PACKAGE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
_QUICKLY_BUILT = ("-gcflags=all=-N -l", "-ldflags=-s -w")
"""Neither made fast nor made to be debugged: half of what it costs to build it."""
_BUILT = Path(__file__).parents[2] / "build" / "bin"
BUILD_SECONDS = 900
"""The first time it is compiled, with two processors' worth of other tests beside it."""
_START_SECONDS = 30


class S3(NamedTuple):
    """Where a server is, and who to be there."""

    host: str
    key: str
    secret: str


@contextmanager
def s3_server() -> Iterator[S3]:
    """Run a server until the block ends; skips the test where there is no way to have one."""
    if "MILLRACE_TEST_S3" in os.environ:
        url = urlsplit(os.environ["MILLRACE_TEST_S3"])
        yield S3(f"{url.hostname}:{url.port}", str(url.username), str(url.password))
        return
    program = _program()
    port = next(free_ports())
    found = S3(f"127.0.0.1:{port}", "test-key", "test-secret")
    with tempfile.TemporaryDirectory(prefix="millrace-s3-") as folder:
        for name in ("meta", "data"):
            Path(folder, name).mkdir()
        process = subprocess.Popen(
            [
                program,
                "--port",
                found.host,
                "posix",
                "--sidecar",
                f"{folder}/meta",
                f"{folder}/data",
            ],
            env={**os.environ, "ROOT_ACCESS_KEY": found.key, "ROOT_SECRET_KEY": found.secret},
            stdout=subprocess.DEVNULL,
        )
        try:
            _wait_for(port, process)
            yield found
        finally:
            process.kill()
            process.wait()


def _program() -> str:
    """Return the program, built by Go the first time."""
    built = _BUILT / "versitygw"
    with one_at_a_time("versitygw"):
        if built.exists():
            return str(built)
        go = shutil.which("go")
        if go is None:
            pytest.skip(
                "no server that speaks S3: Go is not installed, MILLRACE_TEST_S3 names none"
            )
        environment = {**os.environ, "GOBIN": str(_BUILT)}
        done = subprocess.run(
            ["nice", go, "install", *_QUICKLY_BUILT, _PACKAGE],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=BUILD_SECONDS,
        )
        if done.returncode:
            pytest.skip(f"no server that speaks S3: {done.stderr.strip()[-300:]}")
        return str(built)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server has stopped"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server does not start")
