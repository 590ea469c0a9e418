"""`millstream client-metrics`: subscriptions to metrics, with the flags of kafka-client-metrics."""

import argparse

from broker.cli.arguments import (
    add_connection,
    check_not_with,
    connection_of,
    tool,
    tool_parser,
)
from broker.log.checkpoints import encode_uuid
from broker.server.clock import random_uuid
from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import (
    ConfigEntry,
    Resource,
    ResourceType,
    alter,
    describe,
    list_resources,
)

TIMEOUT_MS = 30_000
ACTIONS = ("alter", "delete", "describe", "list")
SETTINGS = ("generate-name", "interval", "match", "metrics")
SELECTORS = (
    "client_id, client_instance_id, client_software_name, client_software_version, "
    "client_source_address, client_source_port"
)


@tool("Error while executing client metrics command : ")
def main(arguments: list[str]) -> int:
    """Run one action; return 1 if it is refused."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _check(parser, options)
    with AdminClient(connection_of(options, default_timeout_ms=TIMEOUT_MS)) as client:
        _run(client, options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser(
        "client-metrics", "Describe and change which metrics clients push to the cluster."
    )
    add_connection(parser, has_controllers=False, is_required=True)
    parser.add_argument("--alter", action="store_true", help="set the settings of a subscription")
    parser.add_argument("--delete", action="store_true", help="delete a subscription")
    parser.add_argument("--describe", action="store_true", help="show subscriptions")
    parser.add_argument("--list", action="store_true", help="list the names of the subscriptions")
    parser.add_argument("--name", help="the name of the subscription")
    parser.add_argument(
        "--generate-name", action="store_true", help="give the subscription a random name"
    )
    parser.add_argument(
        "--interval", metavar="MS", help="how often clients push; empty for the default"
    )
    parser.add_argument(
        "--match",
        metavar="K=V,...",
        help=f"the clients that shall push; a regular expression for each of: {SELECTORS}",
    )
    parser.add_argument(
        "--metrics", metavar="PREFIX,...", help="prefixes of the names of metrics; * for all"
    )
    return parser


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if sum(getattr(options, action) for action in ACTIONS) != 1:
        parser.error(
            "Command must include exactly one action: --alter, --delete, --describe or --list."
        )
    for action in ("delete", "describe"):
        check_not_with(parser, options, action, SETTINGS)
    check_not_with(parser, options, "list", ("name", *SETTINGS))
    if options.alter:
        if (options.name is not None) == options.generate_name:
            parser.error("One of --name or --generate-name must be specified with --alter.")
        if options.interval and not options.interval.removeprefix("-").isdecimal():
            parser.error("Invalid interval value. Enter an integer, or leave empty to reset.")
    if options.delete and options.name is None:
        parser.error("A client metrics resource name must be specified with --delete.")


def _run(client: AdminClient, options: argparse.Namespace) -> None:
    if options.alter:
        _alter(client, options)
    elif options.delete:
        _delete(client, options.name)
    elif options.describe:
        _describe(client, options.name)
    else:
        print("\n".join(list_resources(client, ResourceType.CLIENT_METRICS)))


def _alter(client: AdminClient, options: argparse.Namespace) -> None:
    name = encode_uuid(random_uuid().bytes) if options.generate_name else options.name
    given = {
        "interval.ms": options.interval,
        "match": options.match,
        "metrics": options.metrics,
    }
    changes = {key: value or None for key, value in given.items() if value is not None}
    alter(client, {_resource(name): changes})
    print(f"Altered client metrics config for {name}.")


def _delete(client: AdminClient, name: str) -> None:
    entries = _entries(client, name)
    alter(client, {_resource(name): {entry.name: None for entry in entries}})
    print(f"Deleted client metrics config for {name}.")


def _describe(client: AdminClient, name: str | None) -> None:
    names = list_resources(client, ResourceType.CLIENT_METRICS)
    if name is not None and name not in names:
        print(f"The client metric resource {name} doesn't exist and doesn't have dynamic config.")
        return
    for each in names if name is None else [name]:
        print(f"Client metrics configs for {each} are:")
        for entry in _entries(client, each):
            print(f"  {entry.name}={entry.value}")


def _entries(client: AdminClient, name: str) -> list[ConfigEntry]:
    return describe(client, _resource(name), with_synonyms=False)


def _resource(name: str) -> Resource:
    return Resource(ResourceType.CLIENT_METRICS, name)
