"""Our broker on a folder in which Apache Kafka may have run before."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def our_node(folder: Path) -> Iterator[str]:
    """Run our broker with the file that Apache Kafka was started with; gives its address."""
    command = [sys.executable, "-m", "broker", "start", str(folder / "server.properties")]
    with (
        (folder / "ours.log").open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as node,
    ):
        try:
            assert node.stdout is not None
            ready = node.stdout.readline()
            assert " ready on " in ready, (folder / "ours.log").read_text()
            yield ready.rpartition(" ")[2].strip()
        finally:
            node.terminate()
        assert node.wait(30) == 0, (folder / "ours.log").read_text()
