"""The numbers of a session: its id, and the epoch that counts its requests."""

NO_SESSION = 0
FULL_EPOCH = 0
"""The epoch of a request that names all partitions and asks for a session."""
FINAL_EPOCH = -1
"""The epoch of a request that names all partitions and asks for no session."""
MAX_EPOCH = (1 << 31) - 1


def next_epoch(epoch: int) -> int:
    """Return the epoch of the next request; 1 follows the largest, because 0 is FULL_EPOCH."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == MAX_EPOCH else epoch + 1
