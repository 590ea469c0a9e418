"""A copy of a node's log directories, to which a test returns.

The copy of a directory lies in it, in a folder whose name is that of no partition; a file beside
the first copy has the time. So they outlive the process. The files may only be copied while the
node has stopped: they are complete and closed then.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from broker.log.log_directory import LOCK_FILE
from broker.server.clock import MovableClock

FOLDER = ".saved"
_KEPT = frozenset({FOLDER, LOCK_FILE})


class SavedState:
    """Owns the copies, and the time that they have."""

    def __init__(self, directories: Iterable[str], clock: MovableClock) -> None:
        self._directories = [Path(each) for each in directories]
        self._clock = clock
        self._time = self._directories[0] / f"{FOLDER}.ahead_ms"

    @property
    def is_there(self) -> bool:
        """True if there is a copy of every directory."""
        return self._time.exists() and all((each / FOLDER).is_dir() for each in self._directories)

    def save(self) -> None:
        """Copy every directory, in place of an earlier copy; raises OSError."""
        for directory in self._directories:
            shutil.rmtree(directory / FOLDER, ignore_errors=True)
            made = directory / f"{FOLDER}.new"
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            _copy(directory, made)
            made.rename(directory / FOLDER)
        self._time.write_text(str(self._clock.ahead_ms))

    def bring_back(self) -> None:
        """Make every directory what it was, and the time too; raises OSError."""
        for directory in self._directories:
            for each in _entries(directory):
                shutil.rmtree(each) if each.is_dir() else each.unlink()
            _copy(directory / FOLDER, directory)
        self._clock.begin(int(self._time.read_text()))


def _entries(directory: Path) -> list[Path]:
    return [each for each in directory.iterdir() if not each.name.startswith(tuple(_KEPT))]


def _copy(source: Path, target: Path) -> None:
    for each in _entries(source):
        if each.is_dir():
            shutil.copytree(each, target / each.name)
        else:
            shutil.copy2(each, target / each.name)
