"""`python -m bench [codec | log | side-by-side ...]`: all benchmarks, or one of them."""

import sys
from importlib import import_module

PARTS = ("codec", "log", "side_by_side", "pipeline", "cluster", "metadata_scale", "greedy")

# Only run if they are named: each of Apache Kafka's timeouts takes a minute.
ON_REQUEST = (
    "cluster_counts",
    "connect",
    "connections",
    "failover",
    "groups",
    "hot_path",
    "many",
    "mirror",
    "outage",
    "processing",
    "quotas",
    "rest_proxy",
    "security",
    "share",
    "stack",
    "transactions",
)


def main(arguments: list[str]) -> int:
    """Run the named benchmarks, or all; arguments after a single name go to that benchmark."""
    name = arguments[0].replace("-", "_") if arguments else None
    if name is not None and name not in PARTS + ON_REQUEST:
        print(f"usage: python -m bench [{' | '.join(PARTS + ON_REQUEST)}] ...", file=sys.stderr)
        return 2
    for part in PARTS if name is None else (name,):
        print(f"== {part}", flush=True)
        status = import_module(f"bench.{part}").main(arguments[1:])
        if status:
            return int(status)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
