"""Memory that was touched a moment ago, for what is measured next.

A virtual machine gives memory that it does not use back to its host (free page reporting), and the
first touch of such a page costs ten microseconds instead of a quarter of one. Whoever is measured
first after a pause then pays for the pause: page cache and the client's queue are a gigabyte and
more in a cell of three seconds. So every cell begins with memory that was just touched and freed;
the host gets it back slower than a cell lasts.
"""

import mmap
from pathlib import Path

TOUCHED_BYTES = 3 * 1024**3
"""More than a cell takes: what is written three times over, and the client's own."""


def touch_memory() -> None:
    """Touch as much as a cell takes, or half of what there is, and free it."""
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available_bytes = int(fields["MemAvailable"].split()[0]) * 1024
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, min(TOUCHED_BYTES, available_bytes // 2), flags=flags).close()
