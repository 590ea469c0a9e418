"""The crash-safe replacement of segments by the cleaned one.

1. The cleaned files are written and synced as `.cleaned`. After a crash here, the next start
   removes them.
2. They are renamed to `.swap`, the `.log` last. After a crash here, the next start removes them
   too: all their sources exist, and the cleaned files need not be trusted.
3. The old segments are renamed to `.deleted`, the first one's `.log` first. After a crash from here
   on, the next start completes the swap.
4. The `.swap` files get their final names.
"""

from broker.log.names import (
    DELETED_EXTENSION,
    LOG_SUFFIX,
    SUFFIXES,
    TIME_INDEX_SUFFIX,
    bases_of,
    by_ending,
    segment_path,
)
from broker.log.storage import Storage, remove_files
from broker.log.walk import walk_intact
from broker.records.errors import CorruptBatch

CLEANED_EXTENSION = ".cleaned"
SWAP_EXTENSION = ".swap"
_LOG_LAST = SUFFIXES[1:] + SUFFIXES[:1]


def begin_swap(storage: Storage, directory: str, base_offset: int) -> None:
    """Rename the cleaned files to `.swap` (step 2)."""
    for suffix in _LOG_LAST:
        path = segment_path(directory, base_offset, suffix)
        if storage.status(path + CLEANED_EXTENSION) is not None:
            storage.rename(path + CLEANED_EXTENSION, path + SWAP_EXTENSION)
    storage.sync_directory(directory)


def complete_swap(storage: Storage, directory: str, base_offset: int) -> None:
    """Rename the `.swap` files to their final names (step 4)."""
    for suffix in _LOG_LAST:
        path = segment_path(directory, base_offset, suffix)
        if storage.status(path + SWAP_EXTENSION) is not None:
            storage.rename(path + SWAP_EXTENSION, path)
    storage.sync_directory(directory)


def finish_swaps(storage: Storage, directory: str) -> None:
    """After a crash, complete every swap that had reached step 3, and remove the others."""
    endings = by_ending(storage.names(directory))
    bases = bases_of(endings, LOG_SUFFIX)
    decided = set(bases_of(endings, LOG_SUFFIX + SWAP_EXTENSION)) - set(bases)
    for suffix in SUFFIXES:
        for base_offset in bases_of(endings, suffix + SWAP_EXTENSION):
            if base_offset not in decided:
                storage.remove(segment_path(directory, base_offset, suffix) + SWAP_EXTENSION)
    for base_offset in sorted(decided):
        end_offset = _end_offset(storage, segment_path(directory, base_offset, LOG_SUFFIX))
        for old in bases:
            if base_offset <= old < max(end_offset, base_offset + 1):
                remove_files(storage, [segment_path(directory, old, x) for x in SUFFIXES])
        complete_swap(storage, directory, base_offset)


def _end_offset(storage: Storage, path: str) -> int:
    """Return the end offset of a `.swap` segment; raise CorruptBatch, with nothing removed."""
    file = storage.open(path + SWAP_EXTENSION)
    times = storage.status(path.removesuffix(LOG_SUFFIX) + TIME_INDEX_SUFFIX + SWAP_EXTENSION)
    end_offset = -1
    try:
        if not file.size_bytes() and times is not None and times.size_bytes:
            raise CorruptBatch("it is empty, and its time index is not")
        for batch in walk_intact(file, 0, file.size_bytes()):
            end_offset = batch.last_offset + 1
    except CorruptBatch as error:
        raise CorruptBatch(f"{path}{SWAP_EXTENSION} is damaged: {error}") from error
    return end_offset


__all__ = ["CLEANED_EXTENSION", "DELETED_EXTENSION", "begin_swap", "complete_swap", "finish_swaps"]
