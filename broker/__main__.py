"""`python -m broker COMMAND ...`: the node and the command-line tools, by name."""

import sys
from importlib import import_module

COMMANDS = {
    "start": "start a broker node",
    "storage": "format a node's directories, or describe them (kafka-storage)",
    "dump-log": "print the files of a log directory (kafka-dump-log)",
    "topics": "create, delete, describe or change topics (kafka-topics)",
    "configs": "show and change settings of topics, brokers, clients, ... (kafka-configs)",
    "metadata-quorum": "describe the metadata quorum (kafka-metadata-quorum)",
    "features": "show and change feature levels (kafka-features)",
    "leader-election": "elect leaders of partitions (kafka-leader-election)",
    "reassign-partitions": "move partitions between brokers (kafka-reassign-partitions)",
    "replica-verification": "compare the replicas of partitions (kafka-replica-verification)",
    "cluster": "cluster id, endpoints, unregistering a broker (kafka-cluster)",
    "groups": "list groups of every type (kafka-groups)",
    "consumer-groups": "list, describe, reset, delete consumer groups (kafka-consumer-groups)",
    "transactions": "describe transactions, abort hanging ones (kafka-transactions)",
    "get-offsets": "offsets of partitions at a time (kafka-get-offsets)",
    "delete-records": "delete records before an offset (kafka-delete-records)",
    "broker-api-versions": "API versions of the brokers (kafka-broker-api-versions)",
    "console-producer": "publish lines of standard input (kafka-console-producer)",
    "console-consumer": "print the records of topics (kafka-console-consumer)",
    "producer-perf-test": "measure the rate of producing (kafka-producer-perf-test)",
    "consumer-perf-test": "measure the rate of consuming (kafka-consumer-perf-test)",
}


def main(arguments: list[str]) -> int:
    """Run one command and return its exit status."""
    if not arguments or arguments[0] not in COMMANDS:
        width = max(map(len, COMMANDS))
        for name, what in COMMANDS.items():
            print(f"  {name:{width}}  {what}", file=sys.stderr)  # noqa: T201 - this is the usage text
        return 2
    module = import_module(f"broker.cli.{arguments[0].replace('-', '_')}")
    status: int = module.main(arguments[1:])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
