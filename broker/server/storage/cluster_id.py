"""The id of the cluster that this node belongs to: that of its log directories, or a new one.

Only a node that is its own quorum may create an id: several nodes would each create a cluster.
"""

from broker.config.broker_config import BrokerConfig
from broker.log.checkpoints import encode_uuid
from broker.log.meta_properties import InconsistentLogDirectory, read_meta_properties
from broker.log.storage import Storage
from broker.server.clock import random_uuid


def find_cluster_id(storage: Storage, config: BrokerConfig, wanted: str | None) -> str:
    """Return the wanted id (CLUSTER_ID), else the one in `meta.properties`, else a new one.

    A directory of another cluster than the wanted one is refused when it is opened. Raises
    InconsistentLogDirectory for a node of a cluster that was neither formatted nor given the id,
    and for a directory in use that does not name its cluster.
    """
    if wanted:
        return wanted
    for directory in (*config.log_dirs, config.metadata_log_dir):
        found = read_meta_properties(storage, directory).get("cluster.id")
        if found:
            return found
    if not is_alone(config):
        raise InconsistentLogDirectory(
            f"{config.log_dirs[0]} is not formatted, and this node is one of several: it cannot "
            "make up a cluster id of its own. Format it with: millstream storage format "
            "--cluster-id <id> --config server.properties (or set CLUSTER_ID, the same for all "
            "nodes; millstream storage random-uuid makes one)"
        )
    return encode_uuid(random_uuid().bytes)


def is_alone(config: BrokerConfig) -> bool:
    """Return whether this node is the only controller of its cluster."""
    others = [voter for voter in config.voters if voter.node_id != config.node_id]
    return config.is_controller and not others and not config.bootstrap_servers
