"""Fuzz the HTTP servers: `make fuzz HTTP=1 MINUTES=10 SEED=2`. The status is 1 after a finding."""

import argparse
import sys

from tests.fuzz.http.run import fuzz_http
from tests.fuzz.http.servers import EVERY


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.http", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--servers", nargs="+", choices=EVERY, default=EVERY)
    parsed = parser.parse_args()
    verdicts = fuzz_http(parsed.servers, parsed.seed, parsed.minutes * 60)
    print(*verdicts, sep="\n")
    return int(any(verdict.problems for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
