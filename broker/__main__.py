"""`python -m broker COMMAND ...`: the node and the command-line tools, by name."""

import sys
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import TextIO

from broker.cli.examples import EXAMPLES
from common.process.ending import end_at_once_when_interrupted, run_tool, run_until_closed

COMMANDS = {
    "start": "start a broker node",
    "storage": "format a node's directories, or describe them (kafka-storage)",
    "dump-log": "print the files of a log directory (kafka-dump-log)",
    "topics": "create, delete, describe or change topics (kafka-topics)",
    "configs": "show and change settings of topics, brokers, clients, ... (kafka-configs)",
    "acls": "list, add and remove access rules (kafka-acls)",
    "delegation-tokens": "create, renew and end delegation tokens (kafka-delegation-tokens)",
    "security": "check a node's settings: what is open to whom, what to change",
    "metadata-quorum": "describe the metadata quorum (kafka-metadata-quorum)",
    "features": "show and change feature levels (kafka-features)",
    "leader-election": "elect leaders of partitions (kafka-leader-election)",
    "reassign-partitions": "move partitions between brokers (kafka-reassign-partitions)",
    "replica-verification": "compare the replicas of partitions (kafka-replica-verification)",
    "cluster": "cluster id, endpoints, unregistering a broker (kafka-cluster)",
    "client-metrics": "choose the metrics that clients push (kafka-client-metrics)",
    "groups": "list groups of every type (kafka-groups)",
    "consumer-groups": "list, describe, reset, delete consumer groups (kafka-consumer-groups)",
    "share-groups": "list, describe, reset, delete share groups (kafka-share-groups)",
    "streams-groups": "list, describe, reset, delete streams groups (kafka-streams-groups)",
    "transactions": "describe transactions, abort hanging ones (kafka-transactions)",
    "log-dirs": "log directories of brokers and their replicas (kafka-log-dirs)",
    "get-offsets": "offsets of partitions at a time (kafka-get-offsets)",
    "delete-records": "delete records before an offset (kafka-delete-records)",
    "broker-api-versions": "API versions of the brokers (kafka-broker-api-versions)",
    "console-producer": "publish lines of standard input (kafka-console-producer)",
    "console-consumer": "print the records of topics (kafka-console-consumer)",
    "console-share-consumer": "print what a share group gives out (kafka-console-share-consumer)",
    "producer-perf-test": "measure the rate of producing (kafka-producer-perf-test)",
    "consumer-perf-test": "measure the rate of consuming (kafka-consumer-perf-test)",
    "share-consumer-perf-test": "measure a share group (kafka-share-consumer-perf-test)",
    "e2e-latency": "measure the time from sending to receiving (kafka-e2e-latency)",
    "verifiable-producer": "produce numbers, told as JSON (kafka-verifiable-producer)",
    "verifiable-consumer": "consume, told as JSON (kafka-verifiable-consumer)",
    "verifiable-share-consumer": "share, told as JSON (kafka-verifiable-share-consumer)",
    "faults": "a proxy that puts faults on demand before any Kafka",
}


def main(arguments: list[str]) -> int:
    """Run one command and return its exit status."""
    name, *rest = arguments or [""]
    if name in {"--help", "-h", "help"}:
        _print_usage(sys.stdout)
        return 0
    if name not in COMMANDS:
        found = get_close_matches(name, COMMANDS, n=1)
        meant = f"; did you mean {found[0]}?" if found else ""
        print(f"millstream broker: no command {name!r}{meant}\n", file=sys.stderr)  # noqa: T201 - the command line's
        _print_usage(sys.stderr)
        return 2
    end_at_once_when_interrupted()
    module = import_module(f"broker.cli.{name.replace('-', '_')}")
    tool: Callable[[list[str]], int] = module.main
    # A server stops by itself when it is told to.
    return tool(rest) if name in {"start", "faults"} else run_tool(tool, rest)


def _print_usage(to: TextIO) -> None:
    width = max(map(len, COMMANDS))
    lines = ["usage: millstream broker COMMAND [ARGUMENTS]", ""]
    lines += ["Run a node, or one of Kafka's command-line tools.", ""]
    lines += [f"  {name:{width}}  {what}" for name, what in COMMANDS.items()]
    lines += ["", "examples:", *(f"  {line}" for line in EXAMPLES["broker start"])]
    print("\n".join(lines), file=to)


if __name__ == "__main__":
    sys.exit(run_until_closed(partial(main, sys.argv[1:])))
