"""A program that records each of its starts, and is ready when a lock is free."""

import fcntl
import os
import signal
import sys
from pathlib import Path


def live(lives: Path, gate: Path) -> None:
    with lives.open("a") as file:
        file.write(f"{os.getpid()}\n")
    with gate.open() as opened:
        fcntl.flock(opened, fcntl.LOCK_SH)
    print("millstream mortal ready on nowhere", flush=True)
    signal.pause()


if __name__ == "__main__":
    live(*map(Path, sys.argv[1:]))
