"""The `millstream` command: finds the program a command belongs to and becomes it."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import NoReturn

from common.process.command_parser import suggestion
from millstream.cli.extras import missing_for
from millstream.cli.help_text import COMPLETIONS, OWN_HELP, TOPICS, completion, usage
from millstream.launch import program_command, program_environment, service_names

# Kafka's command-line tools, each a command of the broker's program.
TOOLS = {
    "topics": "create, delete, describe or change topics (kafka-topics)",
    "configs": "show and change settings and quotas (kafka-configs)",
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
    "transactions": "look at transactions, end those that hang (kafka-transactions)",
    "log-dirs": "log directories of brokers and their replicas (kafka-log-dirs)",
    "get-offsets": "offsets of partitions at a time (kafka-get-offsets)",
    "delete-records": "delete records before an offset (kafka-delete-records)",
    "broker-api-versions": "API versions of the brokers (kafka-broker-api-versions)",
    "console-producer": "publish lines of standard input (kafka-console-producer)",
    "console-consumer": "print the records of topics (kafka-console-consumer)",
    "console-share-consumer": "print what a share group gives out",
    "producer-perf-test": "how fast records are produced (kafka-producer-perf-test)",
    "consumer-perf-test": "how fast records are consumed (kafka-consumer-perf-test)",
    "share-consumer-perf-test": "how fast a share group consumes",
    "e2e-latency": "the time from sending to receiving (kafka-e2e-latency)",
    "verifiable-producer": "produce numbers, told as JSON (kafka-verifiable-producer)",
    "verifiable-consumer": "consume, told as JSON (kafka-verifiable-consumer)",
    "verifiable-share-consumer": "consume in a share group, told as JSON",
    "storage": "format a node's directories, or tell what is in them (kafka-storage)",
    "dump-log": "print the files of a log directory (kafka-dump-log)",
}
# command -> (module, arguments before the user's own, what it does)
PROGRAMS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "broker": (
        "broker",
        (),
        "run a broker: millstream broker start; or several: millstream cluster start",
    ),
    **{name: ("broker", (name,), what) for name, what in TOOLS.items()},
    "registry": ("schemas.registry", (), "run the schema registry"),
    "rest-proxy": ("rest_proxy", (), "serve Kafka over HTTP, as Confluent's REST proxy does"),
    "console": ("console", (), "show what is in a cluster, and change it, in a browser"),
    "connect": ("connect", (), "run connectors, and ask those that run (start, list, status ...)"),
    "mirror": ("mirror", (), "follow other clusters: millstream mirror mm2.properties"),
    "streams": ("streams", (), "run the live views of the orders, with Faust"),
    "spark-job": ("spark_analytics.jobs", (), "run the exact figures of the orders, with Spark"),
    "dashboard": ("spark_analytics.dashboard", (), "serve the dashboard of the Spark job"),
    "faults": ("broker", ("faults",), "a proxy that puts faults on demand before any Kafka"),
}
SERVICES = tuple(name.replace("_", "-") for name in service_names())
STACK_COMMANDS = {
    "up": "start Kafka, registry, REST proxy and Connect on this machine",
    "status": "show what `up` has started",
    "logs": "show what it logs",
    "stop": "stop one part of it, such as broker-1",
    "start": "start that part again",
    "down": "stop it",
}
# command -> (module whose `main`, or the named function, runs in this process, what it does).
# `cluster start` is ours among the sub-commands of a tool of Kafka's.
OWN_COMMANDS = {
    "backup": (
        "backup.command:backup",
        "write the topics, groups and rules of a cluster into a folder, while it runs",
    ),
    "restore": ("backup.command:restore", "write a backup into another cluster"),
    "certificates": (
        "millstream.cli.certificates",
        "make a certificate authority for tests, and certificates",
    ),
    "cluster start": ("stack.cluster_start", "run the brokers of a machine with many cores"),
    "explain": (
        "explain.command",
        "why a record, group or transaction is as it is, and what to do",
    ),
    "lag": (
        "lag.command",
        "how far groups are behind: records, seconds, state; once, watched, or as metrics",
    ),
    "demo": ("demo.pipeline.command", "run the whole order pipeline on this machine"),
    "lab": ("demo.labs.command", "do a lab, or watch what clusters do when something breaks"),
    "load": ("demo.load.command", "send orders at a rate, tell what becomes of them"),
    "rights": (
        "millstream.cli.rights",
        "the least rights of each program on a cluster with access rules",
    ),
}
_OF_THE_PIPELINE = ("streams", "spark-job", "dashboard")
_FOR_TESTS = ("faults",)
GROUPS = {
    "Kafka on this machine": STACK_COMMANDS,
    "Servers": {
        name: what
        for name, (_, _, what) in PROGRAMS.items()
        if name not in {*TOOLS, *_OF_THE_PIPELINE, *_FOR_TESTS}
    },
    "Any cluster": {
        name: OWN_COMMANDS[name][1] for name in ("explain", "lag", "backup", "restore")
    },
    "Kafka's tools, on any cluster": TOOLS,
    "The order pipeline": {
        **{name: OWN_COMMANDS[name][1] for name in ("demo", "lab", "load", "rights")},
        "service": f"run one service: {', '.join(SERVICES)}",
        **{name: PROGRAMS[name][2] for name in _OF_THE_PIPELINE},
    },
    "For tests": {
        "faults": PROGRAMS["faults"][2],
        "certificates": OWN_COMMANDS["certificates"][1],
    },
    "This command": {
        "help": "explain a topic, or a command",
        "version": "print the version, as --version does",
        "completion": "print the script that completes commands: bash, zsh, fish",
    },
}
COMMANDS = [name for commands in GROUPS.values() for name in commands]


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns only for those that run in this process."""
    arguments = sys.argv[1:] if arguments is None else arguments
    name, rest = _command_of(arguments)
    if name in OWN_HELP and rest[:1] in (["--help"], ["-h"]):
        print(OWN_HELP[name], end="")
        return 0
    if name in STACK_COMMANDS or name in OWN_COMMANDS:
        return _run_here(name, rest)
    if name == "service":
        return _service(rest)
    if name in PROGRAMS:
        module, before, _ = PROGRAMS[name]
        if problem := missing_for(name):
            sys.exit(problem)
        become(module, *before, *rest)
    if name == "version":
        print(f"millstream {_version()}")
        return 0
    if name in {"help", "completion"}:
        return _help(rest) if name == "help" else _completion(rest)
    hint = suggestion(name, COMMANDS)
    print(f"millstream: no command {name!r}{hint}\nAll of them: millstream --help", file=sys.stderr)
    return 2


def _command_of(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the name of the command, which may have two words, and its arguments."""
    if (both := " ".join(arguments[:2])) in OWN_COMMANDS:
        return both, arguments[2:]
    name, *rest = arguments or ["help"]
    flags = {"--version": "version", "-V": "version", "--help": "help", "-h": "help"}
    return flags.get(name, name), rest


def become(module: str, *arguments: str) -> NoReturn:
    """Replace this process by a program: signals and exit status are its own."""
    command = program_command(module, *arguments)
    os.execve(command[0], command, program_environment())


def _run_here(name: str, arguments: list[str]) -> int:
    """Run a command whose module is loaded only now: most of them need it not."""
    place = f"stack.command:{name}" if name in STACK_COMMANDS else OWN_COMMANDS[name][0]
    module, _, function = place.partition(":")
    run: Callable[[list[str]], int] = getattr(import_module(module), function or "main")
    return run(arguments)


def _service(arguments: list[str]) -> int:
    if arguments and arguments[0] in SERVICES:
        become(f"services.{arguments[0].replace('-', '_')}", *arguments[1:])
    told = f"no service {arguments[0]!r}{suggestion(arguments[0], SERVICES)}; " if arguments else ""
    print(f"millstream: {told}there are {', '.join(SERVICES)}", file=sys.stderr)
    return 2


def _help(arguments: list[str]) -> int:
    """Print all commands, a topic, or what a command says of itself."""
    if not arguments:
        print(usage(GROUPS))
        return 0
    told = arguments[0]
    if told in TOPICS:
        print(TOPICS[told], end="")
        return 0
    if told in COMMANDS:
        return main([told, "--help"])
    hint = suggestion(told, [*TOPICS, *COMMANDS])
    print(f"millstream: no topic {told!r}{hint}\nThere are {', '.join(TOPICS)}.", file=sys.stderr)
    return 2


def _completion(arguments: list[str]) -> int:
    if len(arguments) == 1 and arguments[0] in COMPLETIONS:
        # Imported here: no other command needs the words of several programs.
        from connect.client.examples import EXAMPLES
        from demo.labs.command import WALKS
        from stack.ports import PARTS, wanted_ports

        parts = list(wanted_ports(PARTS, 3, 0))
        words = {
            "service": SERVICES,
            "lab": list(WALKS),
            "connect": list(EXAMPLES),
            "cluster": ("start", "cluster-id", "list-endpoints", "unregister"),
            **dict.fromkeys(("stop", "start", "logs"), parts),
        }
        print(completion(arguments[0], COMMANDS, words, PARTS), end="")
        return 0
    print(f"millstream completion: one of {', '.join(COMPLETIONS)}", file=sys.stderr)
    return 2


def _version() -> str:
    # Imported here: only this command needs it.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("millstream")
    except PackageNotFoundError:
        return "(a checkout that is not installed)"
