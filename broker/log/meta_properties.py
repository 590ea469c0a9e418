"""`meta.properties`: the identity of a log directory (KIP-631, KIP-858).

A node that loses the file must not get another identity: with a new cluster id it would belong to
no cluster, and with a new directory id to none of its partitions. So a directory that is in use and
has no such file, or an invalid one, is refused, with instructions. Only an unused one gets a new
file.
"""

from collections.abc import Mapping

from broker.log.checkpoints import (
    CHECKPOINTS,
    CLEAN_SHUTDOWN,
    META_PROPERTIES,
    PARTITION_METADATA,
    decode_uuid,
    read_properties,
)
from broker.log.names import LOG_SUFFIX
from broker.log.storage import Storage

VERSION = "1"
REQUIRED = ("cluster.id", "node.id")


class InconsistentLogDirectory(Exception):  # noqa: N818 - names a state, like DamagedLog
    """The directory belongs to another node, has no identity, or is used by another process."""


def read_meta_properties(storage: Storage, directory: str) -> dict[str, str]:
    """Return the properties; they are empty for an unused directory without the file.

    Raise InconsistentLogDirectory if the file is missing in a used directory, or invalid.
    """
    path = f"{directory}/{META_PROPERTIES}"
    if storage.status(path) is None:
        if _is_used(storage, directory):
            raise _refusal(directory, "is missing in a directory that has partitions")
        return {}
    try:
        properties = read_properties(storage, path)
    except ValueError as error:
        raise _refusal(directory, f"is not text: {error}") from error
    if properties.get("version") != VERSION:
        said = f"has version {properties['version']}" if "version" in properties else "is damaged"
        raise _refusal(directory, f"{said}, and version {VERSION} is known here")
    missing = [name for name in REQUIRED if not properties.get(name)]
    if missing:
        raise _refusal(directory, f"does not say {' and '.join(missing)}")
    try:
        decode_uuid(properties.get("directory.id", "A" * 22))
    except ValueError as error:
        raise _refusal(directory, f"has no directory.id: {error}") from error
    return properties


def require_owner(directory: str, properties: Mapping[str, str], owner: Mapping[str, str]) -> None:
    """Raise InconsistentLogDirectory if the properties name another cluster or node."""
    for name, value in owner.items():
        if properties.get(name, value) != value:
            raise InconsistentLogDirectory(
                f"{directory}/{META_PROPERTIES} says {name}={properties[name]} and this node has "
                f"{value}: start it with the other {name}, or with log.dirs of its own"
            )


def _refusal(directory: str, problem: str) -> InconsistentLogDirectory:
    return InconsistentLogDirectory(
        f"{directory}/{META_PROPERTIES} {problem}: restore it, or write it anew with version=1, "
        "cluster.id, node.id and the directory.id that the node was registered with (millstream "
        "dump-log --cluster-metadata-decoder prints them all but the cluster.id)"
    )


def _is_used(storage: Storage, directory: str) -> bool:
    """Return True if a broker has used the directory; a partly formatted one is not used."""
    if storage.status(directory) is None:
        return False
    names = storage.names(directory)
    if any(name in (*CHECKPOINTS, CLEAN_SHUTDOWN) for name in names):
        return True
    return any(_is_partition(storage, f"{directory}/{name}") for name in names)


def _is_partition(storage: Storage, path: str) -> bool:
    status = storage.status(path)
    if status is None or not status.is_directory:
        return False
    names = storage.names(path)
    return PARTITION_METADATA in names or any(name.endswith(LOG_SUFFIX) for name in names)
