"""`python -m tests.chaos.quorum --minutes N --seed S`: voters that change while nodes are killed.

Each history (`run`) has another seed. The exit status is 1 if a topic is lost, a change is not
made, or a topic takes longer than two seconds.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.quorum.run import QuorumChaos

LONGEST_PAUSE_SECONDS = 2.0


def main(arguments: list[str]) -> int:
    """Play histories; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.quorum", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long histories begin")
    parser.add_argument("--seed", type=int, default=1, help="of the first history")
    parsed = parser.parse_args(arguments)
    end, seed, longest = time.monotonic() + parsed.minutes * 60, parsed.seed, 0.0
    while True:
        say(f"seed {seed}")
        with tempfile.TemporaryDirectory(prefix="millstream-chaos-") as folder:
            chaos = QuorumChaos(Path(folder), seed, say)
            chaos.run()
        longest = max(longest, max(chaos.topics.pauses)[0])
        seed += 1
        if time.monotonic() > end:
            break
    say(f"{seed - parsed.seed} histories, longest pause {longest:.2f} s")
    return int(longest > LONGEST_PAUSE_SECONDS)


def say(line: str) -> None:
    """Tell how far it is."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
