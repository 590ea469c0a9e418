"""Which cluster this node belongs to: what its log directories say, or a fresh id."""

from collections.abc import Sequence

from broker.log.checkpoints import META_PROPERTIES, encode_uuid, read_properties
from broker.log.storage import Storage
from broker.server.clock import random_uuid


def find_cluster_id(storage: Storage, log_dirs: Sequence[str], wanted: str | None) -> str:
    """Return the id in `meta.properties`, else the wanted one (CLUSTER_ID), else a new one.

    A directory of another cluster than the wanted one is refused when it is opened.
    """
    if wanted:
        return wanted
    for directory in log_dirs:
        found = read_properties(storage, f"{directory}/{META_PROPERTIES}").get("cluster.id")
        if found:
            return found
    return encode_uuid(random_uuid().bytes)
