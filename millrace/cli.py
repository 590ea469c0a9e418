"""The `millrace` command: finds the program a command belongs to and becomes it."""

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

from millrace.extras import missing_for
from millrace.launch import program_command, program_environment, service_names

# Kafka's command-line tools, each a command of the broker's program.
TOOLS = {
    "topics": "create, delete, describe or change topics (kafka-topics)",
    "configs": "show and change settings and quotas (kafka-configs)",
    "metadata-quorum": "describe the metadata quorum (kafka-metadata-quorum)",
    "features": "show and change feature levels (kafka-features)",
    "leader-election": "elect leaders of partitions (kafka-leader-election)",
    "reassign-partitions": "move partitions between brokers (kafka-reassign-partitions)",
    "replica-verification": "compare the replicas of partitions (kafka-replica-verification)",
    "cluster": "cluster id, endpoints, unregistering a broker (kafka-cluster)",
    "groups": "list groups of every type (kafka-groups)",
    "consumer-groups": "list, describe, reset, delete consumer groups (kafka-consumer-groups)",
    "transactions": "look at transactions, end those that hang (kafka-transactions)",
    "get-offsets": "offsets of partitions at a time (kafka-get-offsets)",
    "delete-records": "delete records before an offset (kafka-delete-records)",
    "broker-api-versions": "API versions of the brokers (kafka-broker-api-versions)",
    "console-producer": "publish lines of standard input (kafka-console-producer)",
    "console-consumer": "print the records of topics (kafka-console-consumer)",
    "producer-perf-test": "how fast records are produced (kafka-producer-perf-test)",
    "consumer-perf-test": "how fast records are consumed (kafka-consumer-perf-test)",
    "storage": "format a node's directories, or tell what is in them (kafka-storage)",
    "dump-log": "print the files of a log directory (kafka-dump-log)",
}
# command -> (module, arguments before the user's own, what it does)
PROGRAMS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "broker": ("broker", (), "run a Kafka-compatible broker: millrace broker start"),
    **{name: ("broker", (name,), what) for name, what in TOOLS.items()},
    "registry": ("schemas.registry", (), "run the schema registry"),
    "rest-proxy": ("rest_proxy", (), "serve Kafka over HTTP, as Confluent's REST proxy does"),
    "connect": ("connect", (), "run connectors, and ask those that run (start, list, status ...)"),
    "mirror": ("mirror", (), "follow other clusters: millrace mirror mm2.properties"),
    "streams": ("streams", (), "run the live views of the orders, with Faust"),
    "spark-job": ("spark_analytics.jobs", (), "run the exact figures of the orders, with Spark"),
    "dashboard": ("spark_analytics.dashboard", (), "serve the dashboard of the Spark job"),
}
SERVICES = tuple(name.replace("_", "-") for name in service_names())
USAGE_WIDTH = max(map(len, PROGRAMS))


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns only when there is no such command, or for `demo`, `load`, `lab`."""
    arguments = sys.argv[1:] if arguments is None else arguments
    name, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if name == "demo":
        from millrace.demo import main as demo

        return demo(rest)
    if name == "load":
        from millrace.load import main as load

        return load(rest)
    if name == "lab":
        from millrace.lab import main as lab

        return lab(rest)
    if name == "service" and rest and rest[0] in SERVICES:
        become(f"services.{rest[0].replace('-', '_')}", *rest[1:])
    if name in PROGRAMS:
        module, before, _ = PROGRAMS[name]
        if problem := missing_for(name):
            sys.exit(problem)
        become(module, *before, *rest)
    if name in {"--version", "version"}:
        print(f"millrace {_version()}")
        return 0
    if name in {"--help", "-h", "help"}:
        print(_usage())
        return 0
    print(f"millrace: no command {name!r}\n\n{_usage()}", file=sys.stderr)
    return 2


def become(module: str, *arguments: str) -> NoReturn:
    """Replace this process by a program: signals and exit status are its own."""
    command = program_command(module, *arguments)
    os.execve(command[0], command, program_environment())


def _usage() -> str:
    lines = ["usage: millrace COMMAND [ARGUMENTS]", ""]
    lines += [f"  {name:{USAGE_WIDTH}}  {what}" for name, (_, _, what) in PROGRAMS.items()]
    lines.append(f"  {'service':{USAGE_WIDTH}}  run one service: {', '.join(SERVICES)}")
    lines.append(
        f"  {'lab':{USAGE_WIDTH}}  show what clusters do when something breaks: failover ..."
    )
    lines.append(f"  {'load':{USAGE_WIDTH}}  send orders at a rate, tell what becomes of them")
    lines.append(f"  {'demo':{USAGE_WIDTH}}  run the whole order pipeline on this machine")
    return "\n".join(lines)


def _version() -> str:
    try:
        return version("millrace")
    except PackageNotFoundError:
        return "(a checkout that is not installed)"
