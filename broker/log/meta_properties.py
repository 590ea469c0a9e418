"""`meta.properties`: whose log directory this is (KIP-631, KIP-858).

A node that loses it must not become another: with a fresh id it would belong to no cluster, and
with a fresh directory id to none of its partitions. So a directory that is in use and has no such
file, or one that makes no sense, is refused, with what to do; only an empty one gets a new file.
"""

from broker.log.checkpoints import (
    CHECKPOINTS,
    CLEAN_SHUTDOWN,
    META_PROPERTIES,
    PARTITION_METADATA,
    decode_uuid,
    read_properties,
)
from broker.log.segment_names import LOG_SUFFIX
from broker.log.storage import Storage

VERSION = "1"
REQUIRED = ("cluster.id", "node.id")


class InconsistentLogDirectory(Exception):  # noqa: N818 - names a state, like DamagedLog
    """A directory that is another node's or nobody knows whose, or that another process uses."""


def read_meta_properties(storage: Storage, directory: str) -> dict[str, str]:
    """Read the file; empty where there is none, and nothing that would need it.

    Raises InconsistentLogDirectory for a file that is lost, or is none.
    """
    path = f"{directory}/{META_PROPERTIES}"
    if storage.status(path) is None:
        if _is_used(storage, directory):
            raise _refusal(directory, "is missing in a directory that has partitions")
        return {}
    try:
        properties = read_properties(storage, path)
    except ValueError as error:
        raise _refusal(directory, f"is no text: {error}") from error
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


def _refusal(directory: str, problem: str) -> InconsistentLogDirectory:
    return InconsistentLogDirectory(
        f"{directory}/{META_PROPERTIES} {problem}: restore it, or write it anew with version=1, "
        "cluster.id, node.id and the directory.id that the node was registered with (millrace "
        "dump-log --cluster-metadata-decoder prints them all but the cluster.id)"
    )


def _is_used(storage: Storage, directory: str) -> bool:
    """Tell whether a broker has run on a directory; one that is only half formatted is not used."""
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
