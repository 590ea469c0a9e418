"""`millstream broker-api-versions`: API versions, with the flags of kafka-broker-api-versions."""

import argparse
import sys
from collections.abc import Iterable

from broker.cli.arguments import add_connection, connection_of, tool_parser
from common.kafka.admin.client import AdminClient, Node
from common.kafka.errors import KafkaError
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.messages.api_versions import ApiVersion

CONTROLLER_APIS = frozenset(
    {
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.UPDATE_RAFT_VOTER,
    }
)
"""The APIs that no broker offers its clients, which are therefore not listed as unsupported."""
KNOWN_KEYS = frozenset(ApiKey)


def main(arguments: list[str]) -> int:
    """Print the versions of every broker; return 1 if none is reachable."""
    options = _parser().parse_args(arguments)
    try:
        with AdminClient(connection_of(options)) as client:
            for node in client.nodes().nodes.values():
                print(f"{node_text(node)} -> {_broker_text(client, node)}", flush=True)
    except KafkaError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser("broker-api-versions", "Retrieve the API versions of the brokers.")
    add_connection(parser, has_controllers=False, is_required=True)
    return parser


def _broker_text(client: AdminClient, node: Node) -> str:
    try:
        return versions_text(client.api_versions(node.node_id).api_keys)
    except KafkaError as error:
        return f"ERROR: {error}"


def node_text(node: Node) -> str:
    """Return a broker's name in the format of Kafka's clients."""
    rack = "null" if node.rack is None else node.rack
    return f"{node.host}:{node.port} (id: {node.node_id} rack: {rack} isFenced: false)"


def versions_text(apis: Iterable[ApiVersion]) -> str:
    """Return the versions of every API, and the highest that this tool supports too."""
    lines = {api.api_key: _api_text(api) for api in apis}
    for key in ApiKey:
        if key not in CONTROLLER_APIS:
            lines.setdefault(key, f"{api_name(key)}({key}): UNSUPPORTED")
    return "(\n\t" + ",\n\t".join(lines[key] for key in sorted(lines)) + "\n)"


def _api_text(api: ApiVersion) -> str:
    lowest, highest = api.min_version, api.max_version
    versions = str(lowest) if lowest == highest else f"{lowest} to {highest}"
    if api.api_key not in KNOWN_KEYS:
        return f"UNKNOWN({api.api_key}): {versions}"
    key = ApiKey(api.api_key)
    return f"{api_name(key)}({key}): {versions}{_usable_text(key, lowest, highest)}"


def _usable_text(key: ApiKey, lowest: int, highest: int) -> str:
    ours = API_VERSION_RANGES.get(key)
    if ours is None:
        return ""  # This tool has no such request.
    if ours.max < lowest:
        return " [unusable: node too new]"
    if highest < ours.advertised_min:
        return " [unusable: node too old]"
    return f" [usable: {min(ours.max, highest)}]"


def api_name(key: ApiKey) -> str:
    """Return Kafka's name of an API: `LIST_OFFSETS` is ListOffsets."""
    return "".join(word.capitalize() for word in key.name.split("_"))
