"""`millstream metadata-quorum add-controller | remove-controller`: change the voters (KIP-853).

`add-controller` runs on the node that is added: the node's own configuration file says who it is,
and its formatted directory which replica. Errors and output are those of Apache Kafka's tool.
"""

import argparse
from collections.abc import Mapping

from broker.cli.arguments import SubCommands, ToolFailed, ToolParser, add_sub_command
from broker.config.listeners import Endpoint, parse_endpoint
from broker.log.checkpoints import META_PROPERTIES, decode_uuid, encode_uuid
from broker.log.meta_properties import InconsistentLogDirectory, read_meta_properties
from broker.log.storage import RealStorage
from common.kafka.admin.client import AdminClient
from common.kafka.admin.cluster import add_raft_voter, remove_raft_voter
from common.kafka.protocol.messages.add_raft_voter import Listener

ADD, REMOVE = "add-controller", "remove-controller"
_IS_IT_ONE = "Is this a valid controller configuration file?"


def add_voter_commands(commands: "SubCommands[ToolParser]") -> None:
    """Add both sub-commands to the tool's parser."""
    add = add_sub_command(
        commands, "metadata-quorum", ADD, "add a controller to the voters of the quorum"
    )
    remove = add_sub_command(
        commands, "metadata-quorum", REMOVE, "remove a controller from the voters of the quorum"
    )
    remove.add_argument(
        "-i", "--controller-id", type=int, required=True, help="the id of the controller"
    )
    remove.add_argument(
        "-d",
        "--controller-directory-id",
        required=True,
        help="the directory id of the controller, as describe prints it",
    )
    for parser in (add, remove):
        parser.add_argument(
            "--dry-run", action="store_true", help="print what would be done, and do not do it"
        )


def added_controller(properties: Mapping[str, str]) -> tuple[int, bytes, list[Endpoint]]:
    """Return the id, the directory id and the endpoints of the controller of a configuration.

    Raise ToolFailed if it is none of a controller, or its directory is not formatted.
    """
    node_id = _controller_id(properties)
    directory_id = _directory_id(_metadata_directory(properties))
    return node_id, directory_id, _endpoints(properties)


def _controller_id(properties: Mapping[str, str]) -> int:
    if "node.id" not in properties:
        raise ToolFailed(f"node.id not found in configuration file. {_IS_IT_ONE}")
    try:
        node_id = int(properties["node.id"])
    except ValueError:
        raise ToolFailed(f'For input string: "{properties["node.id"]}"') from None
    if node_id < 0:
        raise ToolFailed(f"node.id was negative in configuration file. {_IS_IT_ONE}")
    if "controller" not in properties.get("process.roles", ""):
        raise ToolFailed(
            f"process.roles did not contain 'controller' in configuration file. {_IS_IT_ONE}"
        )
    return node_id


def _metadata_directory(properties: Mapping[str, str]) -> str:
    directories = properties.get("log.dirs") or properties.get("log.dir", "")
    found = properties.get("metadata.log.dir") or directories.split(",")[0].strip()
    if not found:
        raise ToolFailed(f"Neither metadata.log.dir nor log.dirs were found. {_IS_IT_ONE}")
    return found


def _directory_id(directory: str) -> bytes:
    try:
        known = read_meta_properties(RealStorage(), directory)
    except (InconsistentLogDirectory, OSError) as error:
        raise ToolFailed(str(error)) from error
    if not known:
        raise ToolFailed(f"Unable to read {META_PROPERTIES} from {directory}")
    if "directory.id" not in known:
        raise ToolFailed(f"No directory id found in {directory}")
    return decode_uuid(known["directory.id"])


def _endpoints(properties: Mapping[str, str]) -> list[Endpoint]:
    listeners: dict[str, Endpoint] = {}
    for setting in ("listeners", "advertised.listeners"):
        for text in _items(properties.get(setting, "")):
            endpoint = parse_endpoint(setting, text)
            listeners[endpoint.name] = endpoint
    names = [name.upper() for name in _items(properties.get("controller.listener.names", ""))]
    if not names:
        raise ToolFailed(f"controller.listener.names was not found. {_IS_IT_ONE}")
    for name in names:
        if name not in listeners:
            raise ToolFailed(
                f"Cannot find information about controller listener name: {name.lower()}"
            )
    found = [listeners[name] for name in names]
    return [each._replace(host=each.host or "localhost") for each in found]


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def add_controller(client: AdminClient, properties: Mapping[str, str], *, dry_run: bool) -> str:
    """Add the controller of a configuration to the voters; return the output.

    Raise ToolFailed or KafkaError.
    """
    node_id, directory_id, endpoints = added_controller(properties)
    if not dry_run:
        listeners = [Listener(name=name, host=host, port=port) for name, host, port in endpoints]
        add_raft_voter(client, node_id, directory_id, listeners)
    addresses = ", ".join(_endpoint_text(endpoint) for endpoint in endpoints)
    done = "DRY RUN of adding" if dry_run else "Added"
    return (
        f"{done} controller {node_id} with directory id {encode_uuid(directory_id)} and "
        f"endpoints: {addresses}"
    )


def _endpoint_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.name}://{host}:{endpoint.port}"


def remove_controller(client: AdminClient, options: argparse.Namespace) -> str:
    """Remove a controller from the voters; return the output. Raise ToolFailed or KafkaError."""
    if options.controller_id < 0:
        raise ToolFailed(f"Invalid negative --controller-id: {options.controller_id}")
    try:
        directory_id = decode_uuid(options.controller_directory_id)
    except ValueError as error:
        raise ToolFailed(f"Failed to parse --controller-directory-id: {error}") from error
    if not options.dry_run:
        remove_raft_voter(client, options.controller_id, directory_id)
    # Apache Kafka's tool prints two spaces after these words.
    done = "DRY RUN of removing " if options.dry_run else "Removed "
    return (
        f"{done} KRaft controller {options.controller_id} with directory id "
        f"{encode_uuid(directory_id)}"
    )
