"""Disks that fail below a node: a library between it and the system, with a switch in a file.

Unlike a rule of the broker it also reaches the metadata log, and the writes themselves.
"""

import shutil
import subprocess
from functools import partial
from pathlib import Path

from millstream.testing.chaos import schedule
from millstream.testing.chaos.breaking import End
from millstream.testing.node_process import NodeProcess

SHIM = Path(__file__).with_name("disk_faults.c")
# Relative to a node's data folder, where the shim looks for it.
SWITCH = Path("../disk-fault")
SLOW_WRITE_MS = 150
EIO, ENOSPC = 5, 28
DISK_ORDERS = {
    schedule.SLOW_DISK: f"slow {SLOW_WRITE_MS}",
    schedule.FAILING_DISK: f"fail {EIO}",
    schedule.FULL_DISK: f"fail {ENOSPC}",
}


def build_shim(folder: Path) -> Path | None:
    """Compile the library preloaded into the nodes; return None if there is no compiler."""
    if shutil.which("gcc") is None:
        return None
    built = folder / "disk_faults.so"
    command = ["gcc", "-O1", "-shared", "-fPIC", "-o", str(built), str(SHIM), "-ldl"]
    subprocess.run(command, check=True)
    return built


def break_disk(node: NodeProcess, name: str) -> End:
    """Break a node's disk; return what ends that."""
    switch = node.data_folder / SWITCH
    switch.write_text(DISK_ORDERS[name])
    return partial(switch.unlink, missing_ok=True)
