"""The file `quorum-state` in the metadata log's directory: replaced whole, durable on return."""

from broker.log.storage import Storage, read_file, replace_file
from broker.raft.quorum_state import (
    FILE_NAME,
    QuorumState,
    decode_quorum_state,
    encode_quorum_state,
)


def load_quorum_state(storage: Storage, directory: str) -> QuorumState:
    """Read what was last saved, or begin anew; raises DamagedQuorumState."""
    data = read_file(storage, f"{directory}/{FILE_NAME}")
    return QuorumState() if data is None else decode_quorum_state(data)


def save_quorum_state(storage: Storage, directory: str, state: QuorumState) -> None:
    """Write it so that it survives a power failure."""
    replace_file(storage, f"{directory}/{FILE_NAME}", encode_quorum_state(state))
