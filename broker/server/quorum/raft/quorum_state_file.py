"""The file `quorum-state` in the metadata log's directory: replaced whole, durable on return."""

from broker.log.storage import Storage, read_file, replace_file
from broker.raft.quorum_state import (
    FILE_NAME,
    DamagedQuorumState,
    QuorumState,
    decode_quorum_state,
    encode_quorum_state,
)


def load_quorum_state(storage: Storage, directory: str) -> QuorumState:
    """Return the saved state, or an empty one without a file; raises DamagedQuorumState."""
    path = f"{directory}/{FILE_NAME}"
    data = read_file(storage, path)
    if data is None:
        return QuorumState()
    try:
        return decode_quorum_state(data)
    except DamagedQuorumState as error:
        raise DamagedQuorumState(
            f"{error} ({path}): restore it; without it this node may vote twice in an epoch, which "
            "does no harm where it is the only voter: there the file may be removed"
        ) from error


def save_quorum_state(storage: Storage, directory: str, state: QuorumState) -> None:
    """Write the state; return when it survives a power failure."""
    replace_file(storage, f"{directory}/{FILE_NAME}", encode_quorum_state(state))
