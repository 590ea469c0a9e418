"""The order pipeline end to end: POST to final state, at a fixed rate, all on this machine.

The demo is the load: it offers orders at the asked rate whatever the pipeline does (open loop), and
its report has the figures. Broker, registry, five services and the load share the processors.
"""

import argparse
import json
import os
import subprocess
import sys

from bench.servers import ROOT

SECONDS = 60
RATES = (100, 300)


def measure(rate: int, seconds: int) -> dict[str, object]:
    """Run the demo at `rate` orders a second and return its report."""
    command = [sys.executable, "-m", "millrace", "demo", "--once", "--lite"]
    command += ["--rate", str(rate), "--count", str(rate * seconds)]
    subprocess.run(
        command,
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    report: dict[str, object] = json.loads((ROOT / "build/demo/report.json").read_text())
    return report


def main(arguments: list[str]) -> int:
    """Measure each rate and print one row."""
    parser = argparse.ArgumentParser(prog="python -m bench pipeline", description=__doc__)
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parsed = parser.parse_args(arguments)
    print("| offered, orders/s | accepted | orders/s | p50, ms | p99, ms | max, ms |")
    print("|---|---|---|---|---|---|", flush=True)
    for rate in RATES:
        report = measure(rate, parsed.seconds)
        latency = report["latency_ms"]
        assert isinstance(latency, dict)
        print(
            f"| {rate} | {report['accepted']} | {report['orders_per_second']} "
            f"| {latency['p50']} | {latency['p99']} | {latency['max']} |",
            flush=True,
        )
    return 0
