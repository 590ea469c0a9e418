"""`python -m bench [codec | log | side-by-side ...]`: all benchmarks, or one of them."""

import sys
from importlib import import_module

ALWAYS = (
    "broker.codec",
    "broker.log",
    "broker.side_by_side",
    "programs.pipeline",
    "broker.cluster",
    "broker.metadata_scale",
    "broker.greedy",
)

# Only run if they are named: they take many minutes, or need what is not on every machine.
ON_REQUEST = (
    "broker.cluster_counts",
    "broker.connections",
    "broker.failover",
    "broker.groups",
    "broker.hot_path",
    "broker.large_cluster",
    "broker.many",
    "broker.quotas",
    "broker.security",
    "broker.share",
    "broker.transactions",
    "programs.connect",
    "programs.console",
    "programs.first_figure",
    "programs.freshness",
    "programs.memory",
    "programs.mirror",
    "programs.outage",
    "programs.processing",
    "programs.rest_proxy",
    "programs.spark",
    "programs.stack",
    "programs.testing",
)
MODULES = {
    module.rpartition(".")[2].replace("_", "-"): f"bench.{module}" for module in ALWAYS + ON_REQUEST
}


def main(arguments: list[str]) -> int:
    """Run the named benchmark with the arguments after its name, or all that run always."""
    names = list(MODULES)[: len(ALWAYS)]
    if arguments:
        names = [arguments[0].replace("_", "-")]
    if not MODULES.keys() >= set(names):
        print(f"usage: python -m bench [{' | '.join(MODULES)}] ...", file=sys.stderr)
        return 2
    for name in names:
        print(f"== {name}", flush=True)
        status = import_module(MODULES[name]).main(arguments[1:])
        if status:
            return int(status)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
