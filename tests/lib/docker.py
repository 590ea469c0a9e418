"""Docker for a test run: starts the daemon if possible, and builds the image."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lib.waiting import until

ROOT = Path(__file__).parents[2]
WHEELHOUSE = ROOT / "build" / "wheelhouse"
PUBLIC_BASE = "python:3.11-slim"
OWN_BASE = "millstream-test/python:3.11"
_DEBIAN = "bookworm"
_ANSWER_SECONDS, _FETCH_SECONDS = 60, 300
"""The time after which a daemon or a network without an answer counts as missing."""
_PACKAGES = "python3-minimal,python3-venv,ca-certificates"


class NoDockerError(Exception):
    """Containers cannot run on this machine; the text says why."""


@contextmanager
def running_docker() -> Iterator[None]:
    """Use the running daemon, or run one until the block ends; raise NoDockerError."""
    if shutil.which("docker") is None:
        raise NoDockerError("there is no `docker` here")
    if _answers():
        yield
        return
    if shutil.which("dockerd") is None:
        raise NoDockerError("no Docker daemon answers, and there is no `dockerd` to start")
    if os.getuid() != 0:
        raise NoDockerError("no Docker daemon answers, and only root may start one")
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(["dockerd"], stdout=said, stderr=said) as daemon,
    ):
        try:
            until(lambda: _answers() or daemon.poll() is not None)
            if daemon.poll() is not None:
                said.seek(0)
                raise NoDockerError(f"dockerd ended: {said.read().decode()[-500:]}")
            yield
        finally:
            daemon.terminate()


def _answers() -> bool:
    return _is_done("docker", "info", seconds=_ANSWER_SECONDS)


def _is_done(*command: str, seconds: float) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=seconds).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def build_settings() -> dict[str, str]:
    """Return the compose file's variables for a build on this machine; raise NoDockerError.

    In a container pip may not trust the same certificates, so packages are fetched outside of it.
    """
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(WHEELHOUSE)]
    locked = ["--require-hashes", "--requirement", "requirements/image.txt"]
    constraints = "".join(_versions((ROOT / "requirements" / "dev.txt").read_text()))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(constraints)
        file.flush()
        for more in (locked, ["hatchling", "--constraint", file.name]):
            _run([*pip, *more], "the wheels cannot be had")
    return {"MILLSTREAM_BASE_IMAGE": _base_image(), "MILLSTREAM_PIP_NO_INDEX": "1"}


def _versions(locked: str) -> Iterator[str]:
    for line in locked.splitlines():
        if "--hash=" not in line:
            yield line.removesuffix(" \\") + "\n"


def _base_image() -> str:
    for image in (PUBLIC_BASE, OWN_BASE):
        if _is_done("docker", "image", "inspect", image, seconds=_ANSWER_SECONDS):
            return image
    if _is_done("docker", "pull", PUBLIC_BASE, seconds=_FETCH_SECONDS):
        return PUBLIC_BASE
    if shutil.which("debootstrap") is None:
        raise NoDockerError(f"no image {PUBLIC_BASE}, and no debootstrap to make one")
    with tempfile.TemporaryDirectory() as folder:
        root, archive = Path(folder) / "root", Path(folder) / "root.tar"
        _run(
            ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", _DEBIAN, str(root)],
            "no base image can be made",
        )
        with tarfile.open(archive, "w") as tar:
            tar.add(root, arcname=".")
        _run(["docker", "import", str(archive), OWN_BASE], "no base image can be made")
    return OWN_BASE


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=_FETCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise NoDockerError(f"{what}: not in {_FETCH_SECONDS} s") from None
    if done.returncode != 0:
        raise NoDockerError(f"{what}: {done.stderr.strip()[-300:]}")
