"""What every cell begins with, whatever the one before has left: an idle disk and touched memory.

Dirty pages: a cell of 1 MB batches leaves gigabytes to be written, and who comes next shares the
disk and the kernel's flushers with them. So everything is written before a cell begins.

Memory: a virtual machine gives memory that it does not use back to its host (free page reporting),
and the first touch of such a page costs ten microseconds instead of a quarter of one. Whoever is
measured first after a pause then pays for the pause: page cache and the client's queue are a
gigabyte and more in a cell of three seconds. So every cell begins with memory that was just touched
and freed; the host gets it back slower than a cell lasts.
"""

import mmap
import os
from pathlib import Path

TOUCHED_BYTES = 3 * 1024**3
"""More than a cell takes: what is written three times over, and the client's own."""


def begin_cell() -> None:
    """Write out what is dirty, then touch as much memory as a cell takes, or half of it."""
    os.sync()
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available_bytes = int(fields["MemAvailable"].split()[0]) * 1024
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, min(TOUCHED_BYTES, available_bytes // 2), flags=flags).close()
