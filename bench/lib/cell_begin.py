"""The start of every cell, independent of the one before: an idle disk and touched memory.

Dirty pages: a cell of 1 MB batches leaves gigabytes to be written, which would use the disk and the
kernel's flushers during the next cell. So all dirty pages are written before a cell starts.

Memory: a virtual machine gives unused memory back to its host (free page reporting), and the first
touch of such a page costs ten microseconds instead of a quarter of one. The first measurement after
a pause would include that cost: page cache and the client's queue are a gigabyte and more in a cell
of three seconds. So every cell starts with memory that was just touched and freed; the host takes
it back slower than a cell lasts.
"""

import mmap
import os
from pathlib import Path

TOUCHED_BYTES = 3 * 1024**3
"""More than a cell uses: its records three times, and the client's memory."""


def begin_cell() -> None:
    """Write all dirty pages, then touch `TOUCHED_BYTES` of memory, or half of the free memory."""
    os.sync()
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available_bytes = int(fields["MemAvailable"].split()[0]) * 1024
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, min(TOUCHED_BYTES, available_bytes // 2), flags=flags).close()
