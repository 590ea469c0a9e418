"""`make mirror-faults`: break a mirror in every way it should stand, and judge its copies.

Once with transactions and once without. Exit status 1 when something was lost, came twice under
exactly once, or out of order, or when the mirror did not go on.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.mirror.faults.run import Outcome, Suffered, run

WIDTH = 110


def print_report(console: Console, outcome: Outcome) -> None:
    table = Table("topic", "written", "copied", "lost", "twice", "verdict")
    for each in outcome.verdicts:
        numbers = (each.written, each.copied, each.lost, each.twice)
        verdict = "; ".join(each.problems) or "good"
        table.add_row(each.topic, *(f"{number:,}" for number in numbers), verdict)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mirror-faults", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the faults' order (a random one)")
    parser.add_argument("--seconds", type=float, default=60, help="how long things stay cut off")
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else random.SystemRandom().randrange(1 << 31)
    console = Console(highlight=False, width=WIDTH)

    def tell(each: Suffered) -> None:
        later = f"went on {each.went_on_after_seconds:.1f} s later"
        console.print(f"  {each.fault:40} {each.seconds:6.1f} s, {later}")

    problems = []
    for is_exactly_once in (False, True):
        mode = "exactly once" if is_exactly_once else "at least once"
        console.print(f"{mode}, seed {seed}, {asked.seconds:g} s without each other")
        folder = Path(tempfile.mkdtemp(prefix="millstream-mirror-faults-"))
        outcome = run(folder, seed, asked.seconds, is_exactly_once=is_exactly_once, tell=tell)
        print_report(console, outcome)
        console.print(f"  the mirror's log is in {folder}")
        problems += outcome.problems
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
