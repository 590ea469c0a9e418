"""What the configuration and the disk say of the voters, and of this controller's own endpoints.

The voters are in the metadata log (`kraft.version` 1), or they are those of
`controller.quorum.voters`; a node with the controller role, without these and without bootstrap
servers is its own quorum. A controller that has to learn the voters from bootstrap servers was
formatted: it would otherwise begin as a quorum of its own, or wait for itself for ever.
"""

import socket
from collections.abc import Callable, Mapping

from broker.config.broker_config import BrokerConfig
from broker.config.listeners import NON_ROUTABLE, read_advertised
from broker.config.values import Values
from broker.log.meta_properties import InconsistentLogDirectory, read_meta_properties
from broker.log.storage import Storage
from broker.raft.voter_set import Endpoint, ReplicaKey, VoterNode, VoterSet

DEFAULT_LISTENER_NAME = "CONTROLLER"


def listener_name(config: BrokerConfig) -> str:
    """Return the name of the listener through which controllers reach each other."""
    names = Values(config.given).items("controller.listener.names")
    return names[0].upper() if names else DEFAULT_LISTENER_NAME


def configured_voters(config: BrokerConfig) -> VoterSet:
    """Return the voters of `controller.quorum.voters`, or this node if it is alone."""
    name = listener_name(config)
    voters = tuple(
        VoterNode(ReplicaKey(voter.node_id), (Endpoint(name, voter.host, voter.port),))
        for voter in config.voters
    )
    if not voters and config.is_controller and not config.bootstrap_servers:
        voters = (VoterNode(ReplicaKey(config.node_id)),)
    return VoterSet(voters)


def controller_endpoints(
    config: BrokerConfig,
    ports: Mapping[str, int],
    host_name: Callable[[], str] = socket.gethostname,
) -> tuple[Endpoint, ...]:
    """Return the endpoints at which others reach this controller, the one for controllers first.

    They are those of `advertised.listeners`, else of `listeners`, with this machine's name for no
    host and the bound port for port 0.
    """
    advertised = read_advertised(Values(config.given), config.controller_listeners)
    endpoints = [
        Endpoint(
            each.name,
            host_name() if each.host in NON_ROUTABLE else each.host,
            each.port or ports[each.name],
        )
        for each in advertised
    ]
    first = listener_name(config)
    return tuple(sorted(endpoints, key=lambda each: each.name != first))


def check_formatted(config: BrokerConfig, storage: Storage) -> None:
    """Raise InconsistentLogDirectory for a new controller that has only bootstrap servers."""
    if not config.is_controller or config.voters or not config.bootstrap_servers:
        return
    if not read_meta_properties(storage, config.metadata_log_dir):
        raise InconsistentLogDirectory(
            f"{config.metadata_log_dir} is not formatted, and a controller with "
            "controller.quorum.bootstrap.servers learns from there who votes. Format it with "
            "'millstream storage format --standalone' for the first controller, with "
            "'--initial-controllers' for several, or with '--no-initial-controllers' for one that "
            "joins later"
        )
