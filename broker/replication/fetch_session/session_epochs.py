"""The numbers of a session: its id, and the epoch that counts its requests."""

NO_SESSION = 0
FULL_EPOCH = 0
"""Of a request that names all partitions, and asks for a session."""
FINAL_EPOCH = -1
"""Of a request that names all partitions, and wants no session."""
MAX_EPOCH = (1 << 31) - 1


def next_epoch(epoch: int) -> int:
    """Return the epoch of the next request; after the largest comes 1, for 0 means all."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == MAX_EPOCH else epoch + 1
