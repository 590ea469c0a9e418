"""Errors of writes name their file, as on a disk that is full."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from millstream.processes.settings_files import naming, write_private
from millstream.processes.switchboard import write_whole


@contextmanager
def no_room() -> Iterator[None]:
    """Let no file of this process grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("write", [write_whole, write_private])
def test_a_write_without_room_names_the_file(
    tmp_path: Path, write: Callable[[Path, str], None]
) -> None:
    with pytest.raises(OSError, match=f"'{tmp_path}/file'$"), no_room():
        write(tmp_path / "file", "a")


def test_an_error_that_names_its_file_keeps_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"'/nowhere/a'$"), naming(tmp_path):
        Path("/nowhere/a").read_text()
