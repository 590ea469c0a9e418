"""Fuzz a node: `make fuzz MINUTES=10 SEED=2`; replay frames: `make fuzz REPLAY=broker:0003...`.

A third of the time is for coverage-guided fuzzing in one process (if Atheris is installed), the
rest for a real node over sockets, with a well-behaved client beside the fuzzer. The exit status is
1 after a finding.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile

from tests.fuzz.in_process import WITHOUT_RIGHTS, Finding, in_process_node
from tests.fuzz.over_sockets import fuzz_over_sockets


def main() -> int:
    """Run the fuzzers or a replay; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", nargs="+", metavar="LISTENER:HEX", default=[])
    parsed = parser.parse_args()
    if parsed.replay:
        return replay(parsed.replay)
    seconds = parsed.minutes * 60
    has_failed = False
    if importlib.util.find_spec("atheris") is not None:
        seconds -= seconds / 3
        has_failed = not fuzz_guided(int(seconds / 2), parsed.seed)
    verdict = fuzz_over_sockets(parsed.seed, seconds)
    print(verdict)
    return int(has_failed or bool(verdict.problems))


def fuzz_guided(seconds: int, seed: int) -> bool:
    """Run the coverage-guided fuzzer in another process; return True if it found no bug."""
    command = [sys.executable, "-m", "tests.fuzz.coverage_guided", str(seconds), str(seed)]
    # It exits without a cleanup, so its folders are made inside one that is removed here.
    with tempfile.TemporaryDirectory(prefix="millstream-fuzz-") as folder:
        environment = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    told = done.stdout + done.stderr
    lines = [line for line in told.splitlines() if "stat::" in line or "cov:" in line]
    print(f"coverage-guided, {seconds} s, seed {seed}:", *lines[-4:], sep="\n  ")
    if done.returncode:
        print(told[-8_000:])
    return done.returncode == 0


def replay(frames: list[str]) -> int:
    """Send frames to a new node, one after the other, and print the effect of each."""
    failed = 0
    with in_process_node(WITHOUT_RIGHTS) as node:
        for given in frames:
            listener, _, text = given.rpartition(":")
            try:
                answers = node.send(listener or "broker", bytes.fromhex(text))
                print(f"{given[:60]}: {[answer.hex() for answer in answers] or 'no answer yet'}")
            except Finding as finding:
                failed = 1
                print(f"{given[:60]}: {finding}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
