"""Putting a cleaned segment in the place of the ones it was made from, safe against a crash.

1. The cleaned files are written and synced under `.cleaned`. A crash: they are removed at start.
2. They are renamed to `.swap`, the `.log` last. A crash from here on: it is finished at start.
3. The old segments are renamed to `.deleted`.
4. The `.swap` files get their final names.
"""

from broker.log.deletion import DELETED_EXTENSION
from broker.log.segment_names import LOG_SUFFIX, SUFFIXES, bases_of, by_ending, segment_path
from broker.log.storage import Storage, remove_files
from broker.log.walk import walk_intact
from broker.records.errors import CorruptBatch

CLEANED_EXTENSION = ".cleaned"
SWAP_EXTENSION = ".swap"
_LOG_LAST = SUFFIXES[1:] + SUFFIXES[:1]


def begin_swap(storage: Storage, directory: str, base_offset: int) -> None:
    """Decide for the cleaned segment: from now on it counts, whatever happens."""
    for suffix in _LOG_LAST:
        path = segment_path(directory, base_offset, suffix)
        if storage.status(path + CLEANED_EXTENSION) is not None:
            storage.rename(path + CLEANED_EXTENSION, path + SWAP_EXTENSION)
    storage.sync_directory(directory)


def complete_swap(storage: Storage, directory: str, base_offset: int) -> None:
    """Give the swapped-in files their names; the old ones have theirs no more."""
    for suffix in _LOG_LAST:
        path = segment_path(directory, base_offset, suffix)
        if storage.status(path + SWAP_EXTENSION) is not None:
            storage.rename(path + SWAP_EXTENSION, path)
    storage.sync_directory(directory)


def finish_swaps(storage: Storage, directory: str) -> None:
    """After a crash: do steps 3 and 4 for every swap that was decided, drop the others."""
    endings = by_ending(storage.names(directory))
    decided = bases_of(endings, LOG_SUFFIX + SWAP_EXTENSION)
    for suffix in SUFFIXES[1:]:
        for base_offset in bases_of(endings, suffix + SWAP_EXTENSION):
            # Index files without their log: the crash came within step 2.
            if base_offset not in decided:
                storage.remove(segment_path(directory, base_offset, suffix) + SWAP_EXTENSION)
    bases = bases_of(endings, LOG_SUFFIX)
    for base_offset in decided:
        end_offset = _end_offset(storage, segment_path(directory, base_offset, LOG_SUFFIX))
        for old in bases:
            if base_offset <= old < max(end_offset, base_offset + 1):
                remove_files(storage, [segment_path(directory, old, x) for x in SUFFIXES])
        complete_swap(storage, directory, base_offset)


def _end_offset(storage: Storage, path: str) -> int:
    """Give where a swapped-in segment ends; raises CorruptBatch before anything is removed."""
    file = storage.open(path + SWAP_EXTENSION)
    end_offset = -1
    try:
        for batch in walk_intact(file, 0, file.size_bytes()):
            end_offset = batch.last_offset + 1
    except CorruptBatch as error:
        raise CorruptBatch(f"{path}{SWAP_EXTENSION} is damaged: {error}") from error
    return end_offset


__all__ = ["CLEANED_EXTENSION", "DELETED_EXTENSION", "begin_swap", "complete_swap", "finish_swaps"]
