"""Errors of files that say which file, also for a write: its error has only a number."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Add a file to an OSError of the block that names none."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(file)
        raise
