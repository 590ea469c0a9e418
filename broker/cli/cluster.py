"""`millstream cluster`: the id and the nodes of a cluster, with the flags of kafka-cluster."""

import argparse

from broker.cli.arguments import ToolFailed, add_sub_command, connection_of, tool, tool_parser
from common.kafka.admin.client import AdminClient
from common.kafka.admin.cluster import describe_cluster, unregister_broker
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.describe_cluster import DescribeClusterBroker


@tool()
def main(arguments: list[str]) -> int:
    """Run one command; return 1 if it is refused."""
    options = _parser().parse_args(arguments)
    options.command_config = options.command_config or options.config
    with AdminClient(connection_of(options)) as client:
        COMMANDS[options.command](client, options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser(
        "cluster",
        "Ask about a cluster, and unregister brokers. `millstream cluster start` runs the brokers "
        "of a machine with many cores.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, text in (
        ("cluster-id", "print the id of the cluster"),
        ("unregister", "make the cluster forget a broker that is gone"),
        ("list-endpoints", "print the addresses of the brokers, or of the controllers"),
    ):
        command = add_sub_command(commands, "cluster", name, text)
        bootstrap = command.add_mutually_exclusive_group(required=True)
        bootstrap.add_argument(
            "--bootstrap-server", "-b", metavar="HOST:PORT,...", help="the brokers to connect to"
        )
        bootstrap.add_argument(
            "--bootstrap-controller", "-C", metavar="HOST:PORT,...", help="the controllers"
        )
        command.add_argument("--command-config", "-c", metavar="FILE", help="client settings")
        command.add_argument("--config", metavar="FILE", help="the older name of the same")
        if name == "unregister":
            command.add_argument("--id", "-i", type=int, required=True, help="the broker's id")
        if name == "list-endpoints":
            command.add_argument(
                "--include-fenced-brokers", action="store_true", help="fenced brokers too"
            )
    return parser


def _cluster_id(client: AdminClient, options: argparse.Namespace) -> None:
    print(f"Cluster ID: {describe_cluster(client).cluster_id}")


def _unregister(client: AdminClient, options: argparse.Namespace) -> None:
    try:
        unregister_broker(client, options.id)
    except KafkaError as error:
        if error.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
        print("The target cluster does not support the broker unregistration API.")
    else:
        print(f"Broker {options.id} is no longer registered.")


def _list_endpoints(client: AdminClient, options: argparse.Namespace) -> None:
    if options.include_fenced_brokers and options.bootstrap_controller:
        raise ToolFailed(
            "The option --include-fenced-brokers is only supported with --bootstrap-server option"
        )
    answer = describe_cluster(client, include_fenced=options.include_fenced_brokers)
    is_controller = client.settings.is_controller_bootstrap
    print("\n".join(endpoint_lines(answer.brokers, are_controllers=is_controller)))


COMMANDS = {
    "cluster-id": _cluster_id,
    "unregister": _unregister,
    "list-endpoints": _list_endpoints,
}


def endpoint_lines(nodes: list[DescribeClusterBroker], *, are_controllers: bool) -> list[str]:
    """Return the table of nodes; brokers have a column for their fencing."""
    rows = [("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")]
    rows += [
        (
            str(node.broker_id),
            node.host,
            str(node.port),
            "null" if node.rack is None else node.rack,
            "fenced" if node.is_fenced else "unfenced",
            "controller" if are_controllers else "broker",
        )
        for node in nodes
    ]
    host_width = max((len(node.host) for node in nodes), default=len("HOST"))
    rack_width = max((len(node.rack) for node in nodes if node.rack), default=10)
    lines = []
    for node_id, host, port, rack, state, kind in rows:
        columns = [
            f"{node_id:<10}",
            f"{host:<{host_width}}",
            f"{port:<10}",
            f"{rack:<{rack_width}}",
        ]
        columns += [] if are_controllers else [f"{state:<10}"]
        lines.append(" ".join([*columns, f"{kind:<15}"]))
    return lines
