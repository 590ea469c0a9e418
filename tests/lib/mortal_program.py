"""A program that writes down each of its lives, and is ready when a file is there."""

import os
import sys
import time
from pathlib import Path

LIFE_SECONDS = 60


def live(lives: Path, ready: Path) -> None:
    with lives.open("a") as file:
        file.write(f"{os.getpid()}\n")
    while not ready.exists():
        time.sleep(0.01)
    print("millrace mortal ready on nowhere", flush=True)
    time.sleep(LIFE_SECONDS)


if __name__ == "__main__":
    live(*map(Path, sys.argv[1:]))
