"""The benchmark's client in C (`client.c`): the same binary for every measured server."""

import json
import subprocess
import sys

from bench.lib.servers import ROOT

CLIENT = ROOT / "bench" / "bin" / "client"


def build_client() -> None:
    """Compile the C client against the system's librdkafka."""
    CLIENT.parent.mkdir(exist_ok=True)
    source = ROOT / "bench" / "lib" / "client.c"
    if CLIENT.exists() and CLIENT.stat().st_mtime > source.stat().st_mtime:
        return
    command = ["gcc", "-O2", "-o", str(CLIENT), str(source), "-lrdkafka", "-lpthread"]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError):
        sys.exit("the benchmark's client needs gcc and librdkafka (Debian: librdkafka-dev)")


def client(*arguments: object) -> dict[str, float]:
    """Run the C client and return the figures it printed; it fails if a record is missing."""
    done = subprocess.run(
        [str(CLIENT), *map(str, arguments)], check=True, capture_output=True, text=True, timeout=600
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found
