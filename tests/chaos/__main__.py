"""`python -m tests.chaos --minutes N --seed S`: faults on a real cluster under load.

The exit status is 1 if the history shows an anomaly, if a partition that was expected to make
progress did not, or if the cluster did not recover. The history and the nodes' logs stay in the
folder that is printed at the end.
"""

import argparse
import logging
import random
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from tests.chaos.availability import acknowledgements
from tests.chaos.checker import check
from tests.chaos.recorder import Recorder
from tests.chaos.report import missing_kinds, print_report, row_of
from tests.chaos.run import Options, run

# Without replication a fault stops the partitions that the node leads.
REPLICATION_FACTOR = 3
WIDTH = 110


def main(arguments: list[str]) -> int:
    """Run once; return the exit status."""
    parsed = _parser().parse_args(arguments)
    seed = parsed.seed if parsed.seed is not None else random.SystemRandom().randrange(1 << 31)
    folder = Path(tempfile.mkdtemp(prefix="millstream-chaos-"))
    console = Console(highlight=False, width=WIDTH)
    # Clients log much about a lost broker.
    logging.basicConfig(filename=folder / "clients.log")
    console.print(
        f"seed {seed}, {parsed.brokers} nodes, replication factor {parsed.replication_factor}, "
        f"{parsed.minutes:g} minutes"
    )
    options = Options(
        seconds=parsed.minutes * 60,
        seed=seed,
        brokers=parsed.brokers,
        replication_factor=parsed.replication_factor,
        only=parsed.only,
    )
    recorder = Recorder(folder / "history.jsonl")
    try:
        lived = run(options, recorder, folder, console)
    finally:
        recorder.close()
    operations = recorder.operations()
    found = acknowledgements(operations)
    rows = [row_of(suffered, found) for suffered in lived.suffered]
    problems = list(lived.problems)
    problems += [f"no {kind} went well" for kind in missing_kinds(operations)]
    problems += [f"not all went on in: {row.suffered.fault}" for row in rows if not row.is_good]
    anomalies = check(operations)
    print_report(console, rows, operations, anomalies, problems)
    console.print(f"seed {seed}; history and logs in {folder}")
    return 1 if anomalies or problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long faults go on")
    parser.add_argument("--seed", type=int, help="decides faults and load; a new one by default")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--replication-factor", type=int, default=REPLICATION_FACTOR)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="only faults with this in their names, even one this replication cannot stand",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
